"""Effects of power states from runs that have no twin in PS0: the fit answers in its place.

A handful of runs spread over power states seldom holds two that differ in nothing else. What the
fitted surface says of a run's configuration in PS0 then stands beside it; where a twin was
measured, it counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from iojoule.datasets.profile import DeviceProfile
from iojoule.datasets.schema import Measurement, Observations
from iojoule.datasets.vocabulary import Operation
from iojoule.model.fitting.measured_states import twin_key
from iojoule.model.fitting.recipe import PowerStateRecipe
from iojoule.model.fitting.rows import SETTINGS
from iojoule.model.fitting.state_effects import exported_effects
from iojoule.model.predictor import Predictor


def with_predicted_twins(
    profile: DeviceProfile,
    measurements: Sequence[Measurement],
    effects_of: Callable[[Sequence[Measurement]], list[PowerStateRecipe]],
) -> DeviceProfile:
    """The profile with the effects of power states that twins, measured or predicted, tell.

    Args:
        profile: With the effects that measured twins tell.
        measurements: What it was fitted to.
        effects_of: Says what runs tell of power states.
    """
    twins = predicted_twins(profile, measurements)
    if not twins:
        return profile
    found = effects_of([*measurements, *twins])
    return profile.model_copy(update={"power_state_effects": exported_effects(found)})


def predicted_twins(
    profile: DeviceProfile, measurements: Sequence[Measurement]
) -> list[Measurement]:
    """What the profile says, in PS0, of runs below it that have no measured twin there.

    Only of operations and patterns with a surface of their own: what stands in for another knows
    too little to be compared with.
    """
    seen = {
        (one.workload.operation, twin_key(one))
        for one in measurements
        if not one.configuration.power_state
    }
    alone = [
        one
        for one in measurements
        if one.configuration.power_state
        and one.workload.operation is not Operation.MIXED
        and one.at_full_speed
        and profile.surface(one.workload.operation, one.workload.pattern) is not None
        and (one.workload.operation, twin_key(one)) not in seen
    ]
    if not alone:
        return []
    columns = {name: [getattr(one.configuration, name) for one in alone] for name in SETTINGS}
    columns["operation"] = [one.workload.operation.value for one in alone]
    columns["pattern"] = [one.workload.pattern.value for one in alone]
    columns["power_state"] = [0] * len(alone)
    answer, _ = Predictor(profile).predict_columns(columns, len(alone))
    return [
        Measurement(
            workload=one.workload,
            configuration=one.configuration.model_copy(update={"power_state": 0}),
            observations=Observations(
                throughput_bytes_per_second=float(
                    answer["throughput_bytes_per_second"].value[place]
                ),
                latency_mean_ns=float(answer["latency_mean_ns"].value[place]),
                latency_p99_ns=_known(float(answer["latency_p99_ns"].value[place])),
            ),
        )
        for place, one in enumerate(alone)
    ]


def _known(value: float) -> float | None:
    return value if np.isfinite(value) else None
