"""Predictions at a demanded rate: what is served, how late, and what drive and host draw for it.

The same evaluation as a recommendation's (`model.evaluate.equal_work`,
`model.evaluate.uncertainty`), for rows that each state a demand of their own.

Several drives on one host: what its processors see of all of them, and what all draw.

Drives that serve alike draw n times what one draws. The host is one: its law of CPU power is
evaluated once, at the rate of all drives together, so that its packages wake up once and what they
draw without work counts once; memory and wall likewise. The application's jobs are what they are:
each serves all drives and keeps the stated depth on each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iojoule.model.evaluate.bands import Band, linear_band, log_band
from iojoule.model.evaluate.columns import (
    DEMANDS,
    demanded_bytes,
    optional_numbers,
    read_column,
    refuse,
)
from iojoule.model.evaluate.equal_work import (
    Demand,
    Work,
    cpu_watts,
    device_watts,
    dram_watts,
    host_load,
    wall_watts,
    watts_of,
    within_cap,
    work_of,
)
from iojoule.model.evaluate.frame import Frame
from iojoule.model.evaluate.host_work import switches_log_sd
from iojoule.model.evaluate.latency import QUANTITIES as LATENCIES
from iojoule.model.evaluate.latency import alone_of
from iojoule.model.evaluate.prediction import Prediction, joined
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.evaluate.quantities import NORMAL_90
from iojoule.model.evaluate.uncertainty import (
    Gradients,
    Layout,
    all_gradients,
    by_scope,
    cpu_gradients,
    device_gradients,
)

FIELDS = (*DEMANDS, "arrival_process")
"""Columns that state a demand."""

USEFUL = ("useful_request_bytes", "request_bytes_coalescible")
"""Columns that say what of a request the application asked for; they matter to a demand only."""

POWERS = ("device", "cpu", "system")


def demands(frame: Frame, columns: Mapping[str, Sequence[Any]]) -> list[Demand | None]:
    """The demand of each row in useful bytes; None where it runs at full speed.

    Of a request all bytes are useful unless `USEFUL` says otherwise, as of a workload. Pauses for
    thinking are a demand too: they limit the rate.

    Raises:
        InputError: A demand is not above 0, or more bytes are useful than a request has; names row
            and field.
    """
    rows = len(frame)
    useful, limit = (optional_numbers(name, columns, rows) for name in USEFUL)
    useful = np.where(np.isnan(useful), frame.request_bytes, useful)
    refuse(
        useful > frame.request_bytes, USEFUL[0], useful.astype(np.int64), "is above request_bytes"
    )
    limit = np.fmax(useful, limit)
    rate = demanded_bytes(columns, rows, useful)
    think, gap, burst = (
        np.nan_to_num(optional_numbers(name, columns, rows))
        for name in ("think_time_ns", "idle_gap_seconds_p50", "burst_bytes")
    )
    process, unsaid = read_column(columns.get("arrival_process"), rows)
    return [
        Demand.stated(
            None if np.isnan(rate[row]) else float(rate[row]),
            float(useful[row]),
            float(limit[row]),
            process=None if unsaid[row] else str(process[row]),
            think_ns=float(think[row]),
            burst_bytes=float(burst[row]),
            gap_seconds=float(gap[row]),
        )
        if think[row] > 0 or not np.isnan(rate[row])
        else None
        for row in range(rows)
    ]


def at_demands(
    predictor: Predictor, frame: Frame, prediction: Prediction, row_demands: Sequence[Demand | None]
) -> Prediction:
    """The prediction with the rows that state a demand answered at it."""
    groups: dict[Demand | None, list[int]] = {}
    for row, demand in enumerate(row_demands):
        groups.setdefault(demand, []).append(row)
    layout = Layout(predictor.profile)
    parts = (
        (rows, _at(predictor, layout, frame.take(rows), prediction.rows(rows), demand))
        for demand, rows in groups.items()
    )
    return joined(parts, len(frame))


def _at(
    predictor: Predictor,
    layout: Layout,
    frame: Frame,
    prediction: Prediction,
    demand: Demand | None,
) -> Prediction:
    if demand is None:
        return prediction
    alone = predictor.predict(alone_of(frame), only=tuple(LATENCIES))
    work = work_of(frame, prediction, demand, alone)
    watts = watts_of(layout.profile, frame, prediction, work, demand.rest)
    powers = all_gradients(layout, frame, prediction, work, watts, demand.rest)
    held = work.elasticity
    down, up = np.exp(-held * work.log_capacity_half), np.exp(held * work.log_capacity_up)
    code = prediction["iops"].evidence
    bands = dict(prediction.bands)
    for name, value in (
        ("iops", work.requests),
        ("throughput_bytes_per_second", work.served_bytes),
    ):
        bands[name] = Band(value, value * down, value * up, code)
    for name in LATENCIES.keys() & bands.keys():
        bands[name] = work.latencies.band(name)
    for scope in POWERS:
        name = f"{scope}_power_watts"
        if scope in powers and name in bands:
            power = powers[scope]
            band = linear_band(power.watts, power.sd(layout), bands[name].evidence)
            if scope == "device":
                most = within_cap(layout.profile, frame, work, band.value, band.high)
                band = replace(band, high=most)
            bands[name] = band
    _host(layout, frame, prediction, work, bands)
    for name, before in prediction.bands.items():  # what runs at full speed is as it was predicted
        if name in bands and name not in LATENCIES:
            now = bands[name]
            same = work.at_full_speed & (np.abs(now.value - before.value) <= 1e-9 * now.value)
            bands[name] = _chosen(same, before, now)
    return replace(prediction, bands=bands)


def _host(
    layout: Layout, frame: Frame, prediction: Prediction, work: Work, bands: dict[str, Band]
) -> None:
    """What the host does at the served rate, as far as it was predicted; in place."""
    requests = work.requests
    load, _ = host_load(layout.profile, frame, prediction, work)
    if "cpu_utilisation" in bands:
        before = bands["cpu_utilisation"]
        sd = np.log(before.high / before.value) / NORMAL_90
        for name, value, log_sd in (
            ("cpu_utilisation", load.busy_cores, sd),
            ("context_switches_per_second", load.wakeups_per_second, switches_log_sd(sd)),
        ):
            bands[name] = log_band(value, log_sd, before.evidence)
    if "cpu_joules_per_operation" in bands:
        cpu = bands["cpu_power_watts"]
        bands["cpu_joules_per_operation"] = Band(
            cpu.value / requests, cpu.low / requests, cpu.high / requests, cpu.evidence
        )
    if "dram_power_watts" in bands and layout.profile.host_power is not None:
        before = bands["dram_power_watts"]
        memory = np.asarray(dram_watts(layout.profile, frame, work)) + np.zeros(len(frame))
        half = before.high - before.value
        bands["dram_power_watts"] = Band(
            np.where(np.isnan(before.value), np.nan, memory),
            memory - half,
            memory + half,
            before.evidence,
        )


def _chosen(mask: NDArray[np.bool_], band: Band, other: Band) -> Band:
    """The one band where the mask says so, else the other."""
    return Band(
        np.where(mask, band.value, other.value),
        np.where(mask, band.low, other.low),
        np.where(mask, band.high, other.high),
        other.evidence,
    )


def together(
    frame: Frame, prediction: Prediction, work: Work, drives: int
) -> tuple[Frame, Prediction, Work]:
    """What the host sees of so many equal drives: n times the rate, by the same jobs."""
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
    single_watts = device_watts(profile, frame, prediction, work, rest)
    alone = device_gradients(layout, frame, prediction, work, single_watts, rest)
    device = None if alone is None else alone.times(drives)
    all_of = together(frame, prediction, work, drives)
    cpu = cpu_watts(profile, *all_of)
    drawn = cpu_gradients(layout, *all_of, cpu)
    drives_watts = None if device is None else device.watts
    wall = wall_watts(profile, all_of[0], all_of[2], drives_watts, cpu)
    return by_scope(layout, device, drawn, wall)
