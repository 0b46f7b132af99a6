"""How much of a throughput's error all configurations of a workload share.

Where a surface was learned from many measurements, its errors are local: two configurations err
each by itself. Where it rests on one figure, or on another pattern's surface, it is off as a
whole: by its ceiling where the drive is saturated, by its unloaded latency where it is not. What a
configuration errs beyond the first one (today's), because it is extrapolated further, stays its
own. How far a configuration is saturated is the elasticity of latency by the requests in flight.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.profile import DeviceProfile
from iojoule.model.equal_work import Work
from iojoule.model.frame import PATTERNS, Frame
from iojoule.model.host_paths import code_of
from iojoule.model.loaded_surface import BORROWED_SD
from iojoule.model.predictor import NORMAL_90, Prediction, Predictor

Floats = NDArray[np.float64]

STEP = 1.02
"""Factor on the queue depth by which the elasticity is taken."""


def with_shared_surface(
    predictor: Predictor, frame: Frame, prediction: Prediction, work: Work
) -> Work:
    """Fill in what the rows share with the first one; meant for the few rows of an answer."""
    profile, fraction = predictor.profile, float(frame.read_fraction[0])
    pattern = PATTERNS[int(frame.pattern[0])]
    read, write = _log_sd(profile, "read", pattern), _log_sd(profile, "write", pattern)
    variance = fraction * read**2 + (1.0 - fraction) * write**2
    if variance == 0.0:
        return work
    paths = predictor.performance.paths
    own = np.where(paths.measured, 0.0, paths.relative_sd)[code_of(frame)] ** 2
    own += profile.between_drives_relative_sd.value**2
    most = np.maximum((work.log_capacity_half / NORMAL_90) ** 2 - own, 0.0)
    shared = np.minimum(most, most[0])
    if (fraction > 0.0 and read == 0.0) or (fraction < 1.0 and write == 0.0):  # one was learned
        shared = np.minimum(shared, variance)
    deeper = replace(frame, queue_depth=frame.queue_depth * STEP)
    moved = predictor.predict(deeper, only=())["latency_mean_ns"].value
    elasticity = np.log(moved / prediction["latency_mean_ns"].value) / np.log(STEP)
    return replace(
        work,
        surface_sd=np.sqrt(shared),
        saturation=np.clip(elasticity, 0.0, 1.0),
    )


def _log_sd(profile: DeviceProfile, operation: str, pattern: str) -> float:
    surface = profile.surface(operation, pattern)
    if surface is None:
        return BORROWED_SD
    return 0.0 if surface.residuals else surface.relative_sd
