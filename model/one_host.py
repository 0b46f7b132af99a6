"""Several drives on one host: what its processors see of all of them, and what all draw.

Drives that serve alike draw n times what one draws. The host is one: its law of CPU power is
evaluated once, at the rate of all drives together, so that its packages wake up once and what they
draw without work counts once; memory and wall likewise. The application's jobs are what they are:
each serves all drives and keeps the stated depth on each.
"""

from __future__ import annotations

from dataclasses import replace

from iojoule.model.equal_work import (
    Work,
    cpu_watts,
    device_watts,
    wall_watts,
    watts_of,
)
from iojoule.model.frame import Frame
from iojoule.model.prediction import Prediction
from iojoule.model.sensitivity import (
    Gradients,
    Layout,
    all_gradients,
    by_scope,
    cpu_gradients,
    device_gradients,
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
    one = device_watts(profile, frame, prediction, work, rest)
    alone = device_gradients(layout, frame, prediction, work, one, rest)
    device = None if alone is None else alone.times(drives)
    all_of = together(frame, prediction, work, drives)
    cpu = cpu_watts(profile, *all_of)
    drawn = cpu_gradients(layout, *all_of, cpu)
    drives_watts = None if device is None else device.watts
    wall = wall_watts(profile, all_of[0], all_of[2], drives_watts, cpu)
    return by_scope(layout, device, drawn, wall)
