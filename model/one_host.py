"""Several drives on one host: what its processors see of all of them, and what all draw.

Drives that serve alike draw n times what one draws. The host is one: its law of CPU power is
evaluated once, at the rate of all drives together, so that its packages wake up once and what they
draw without work counts once; memory and wall likewise. The application's jobs are what they are:
each serves all drives and keeps the stated depth on each.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from iojoule.model import system_power
from iojoule.model.equal_work import (
    Watts,
    Work,
    cpu_watts,
    device_watts,
    dram_watts,
    watts_of,
)
from iojoule.model.frame import Frame
from iojoule.model.prediction import Prediction
from iojoule.model.sensitivity import (
    Gradients,
    Layout,
    all_gradients,
    cpu_gradients,
    device_gradients,
    system_gradients,
)


def together(
    frame: Frame, prediction: Prediction, work: Work, drives: int
) -> tuple[Frame, Prediction, Work]:
    """What the host sees of so many equal drives: n times the rate, by the same jobs.

    Args:
        frame: Configurations of one drive, n rows.
        prediction: Of one drive.
        work: Of one drive.
        drives: How many serve alike.
    """
    if drives == 1:
        return frame, prediction, work
    costs = prediction.activity.costs
    activity = replace(prediction.activity, costs=replace(costs, depth=drives * costs.depth))
    return (
        replace(frame, queue_depth=drives * frame.queue_depth),
        replace(prediction, activity=activity),
        replace(work, requests=drives * work.requests, served_bytes=drives * work.served_bytes),
    )


def shared_gradients(
    layout: Layout, frame: Frame, prediction: Prediction, work: Work, drives: int, rest: float
) -> dict[str, Gradients]:
    """Power of all drives and their host by scope, with its gradients (`sensitivity`).

    Args:
        layout: The common parameters of the drives' profile.
        frame: Configurations of one drive, n rows.
        prediction: Of one drive.
        work: Of one drive.
        drives: How many serve alike on one host.
        rest: Share of the gaps that is long enough to rest.
    """
    profile = layout.profile
    if drives == 1:
        watts = watts_of(profile, frame, prediction, work, rest)
        return all_gradients(layout, frame, prediction, work, watts, rest)
    found: dict[str, Gradients] = {}
    one = device_watts(profile, frame, prediction, work, rest)
    alone = device_gradients(layout, frame, prediction, work, Watts(one, None, None), rest)
    if alone is not None:
        found["device"] = Gradients(
            drives * alone.watts,
            drives * alone.common,
            drives * alone.own_speed,
            drives * alone.own_fit,
        )
    all_of = together(frame, prediction, work, drives)
    cpu = cpu_watts(profile, *all_of)
    drawn = cpu_gradients(layout, *all_of, Watts(None, cpu, None))
    if drawn is not None:
        found["cpu"] = drawn
    if "device" in found and drawn is not None:
        found["device_cpu"] = both = found["device"].plus(drawn)
        if profile.system_power is not None:
            parts = both.watts + dram_watts(profile, all_of[0], all_of[2])
            wall, _ = system_power.watts(profile.system_power, parts, np.zeros(len(frame)))
            system = system_gradients(layout, both, Watts(found["device"].watts, cpu, wall))
            if system is not None:
                found["system"] = system
    return found
