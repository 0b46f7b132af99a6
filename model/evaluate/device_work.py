"""What a drive does while it serves at a rate, as the regressors of its power law."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from iojoule.datasets import vocabulary
from iojoule.model.evaluate import device_power
from iojoule.model.evaluate.background_work import cleared_most
from iojoule.model.evaluate.bands import Floats
from iojoule.model.evaluate.frame import ENGINES, SEQUENTIAL, Frame
from iojoule.model.evaluate.surface import Points

if TYPE_CHECKING:  # performance imports this module
    from iojoule.model.evaluate.performance import PerformanceModel

MERGES_REQUESTS = np.array([vocabulary.merges_requests(name) for name in ENGINES])
"""Whether the block layer merges requests of a job, by engine."""


class DeviceWork(NamedTuple):
    """What a drive does.

    Attributes:
        regressors: Of `device_power`, shape (n, 6).
        collecting: Share of collecting that the state of the drive brings, 0 to 1, shape (n,).
        cleared_most: Written bytes a second that gaps let it keep up with, shape (n,).
    """

    regressors: Floats
    collecting: Floats
    cleared_most: Floats


def device_work(
    model: PerformanceModel,
    frame: Frame,
    points: Points,
    iops: Floats,
    read_fraction: Floats,
    write_share: Floats,
) -> DeviceWork:
    """What the drive does at a rate.

    Args:
        model: Of its profile.
        frame: The questions.
        points: Their coordinates.
        iops: Requests a second, shape (n,); likewise below.
        read_fraction: Share of reads among them.
        write_share: Share of the busy time that writes take.
    """
    profile, sequential = model.profile, frame.pattern == SEQUENTIAL
    # on a disk the arm moves for a command, unless it follows the one before
    placed = ~sequential * 1.0 if profile.is_disk else 1.0
    commands = iops * points.commands * placed
    follow = sequential & MERGES_REQUESTS[frame.engine]
    commands /= device_power.merged(
        frame.queue_depth, frame.request_bytes, profile.max_transfer_bytes, follow
    )
    writes = iops * (1 - read_fraction)
    collecting, most = model.state.collecting(frame), cleared_most(profile, frame)
    x = device_power.regressors(
        iops * read_fraction * frame.request_bytes,
        commands * read_fraction,
        writes * frame.request_bytes,
        device_power.write_operations(commands * (1 - read_fraction), sequential),
        _background_share(model, frame, points, writes, write_share, collecting, most),
    )
    return DeviceWork(x, collecting, most)


def load(requests_per_second: Floats, log_least_ns: Floats) -> Floats:
    """Share of a capacity that is used, 0 to 1, where a request takes so long of it at least."""
    return np.minimum(requests_per_second * np.exp(log_least_ns) * 1e-9, 1.0)


def _background_share(
    model: PerformanceModel,
    frame: Frame,
    points: Points,
    writes_per_second: Floats,
    write_share: Floats,
    collecting: Floats,
    most: Floats,
) -> Floats:
    """Share of the time in which the flash works on the drive's own behalf.

    A drive that collects does so as much as is written: a queue too short to fill it costs no
    more for what it writes, and no less than where gaps just let the drive keep up.
    """
    power = model.profile.device_power
    if power is None or not writes_per_second.any():
        return np.zeros(len(frame))
    least = model.log_least_write_ns(frame, points)
    share = device_power.folding(load(writes_per_second, least))
    if collecting.any():
        rate, _ = model.state.collecting_rate(frame)
        each = np.log(frame.request_bytes) - np.log(rate * 1e-9)
        collects = load(writes_per_second, np.maximum(least, each))
        joules, _ = model.state.joules_per_byte(frame)
        kept_up = joules * np.minimum(writes_per_second * frame.request_bytes, most)
        per_share = device_power.background_watts(power, np.ones((1, 6)), frame.power_state)
        least_share = np.divide(kept_up, per_share, out=np.zeros(len(frame)), where=per_share > 0.0)
        own = np.maximum(np.minimum(write_share, collects), least_share)
        share = np.maximum(share, collecting * own)
    return share
