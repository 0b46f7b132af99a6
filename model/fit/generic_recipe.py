"""Power laws of a drive and host that have measurements but no recipe of their own.

What `iojoule measure characterise` found of writes and gaps, as parts of a recipe.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from iojoule.datasets.characteristics import Characteristics, Estimate
from iojoule.datasets.schema import Configuration, Measurement, Observations, State, Workload
from iojoule.datasets.vocabulary import DeviceState, Engine, Evidence, Operation, Pattern
from iojoule.model.evaluate.host_power import MEMORY_TRANSFERS
from iojoule.model.fit.power import fit_linear
from iojoule.model.recipe import (
    AfterWrites,
    CacheSize,
    ClockRecipe,
    CollectingRate,
    DevicePowerRecipe,
    Figure,
    HostAnchor,
    HostOperationRecipe,
    HostPowerRecipe,
    HostRecipe,
    IdleRecipe,
    SystemAnchor,
    SystemPowerRecipe,
    WakeSeen,
    WriteStateRecipe,
)

_PAGE_JOULES = 1.5e-6
_PAGE_BYTES = 16384
_FAST = 2e9
"""Bytes/s that any NVMe drive of today reaches, unless its runs show it to be slower."""

MOST_ANCHORS = 400
"""Rows of CPU or wall power that a fit uses at the most, spread evenly."""


def _assumed(value: float, sd: float, unit: str, why: str) -> Figure:
    return Figure(
        value=value, sd=sd, unit=unit, source=f"assumption: {why}", evidence=Evidence.ASSUMED
    )


def _spread(rows: list[Measurement]) -> list[Measurement]:
    step = max(1, len(rows) // MOST_ANCHORS)
    return rows[::step]


def device_power_recipe(
    measurements: list[Measurement], cap_watts: list[float]
) -> DevicePowerRecipe | None:
    """Priors for a drive whose power was measured; None where it was not.

    Idle power per state is the median of what runs report; the peak is what was seen, or the
    declared cap of PS0 where that is higher.
    """
    seen = [
        measurement
        for measurement in measurements
        if measurement.observations.device_power_watts is not None
    ]
    if not seen:
        return None
    watts = np.array([run.observations.device_power_watts for run in seen], dtype=float)
    idle: dict[int, list[float]] = {}
    for run in measurements:
        if run.observations.idle_power_watts is not None:
            state = run.configuration.power_state or 0
            idle.setdefault(state, []).append(run.observations.idle_power_watts)
    low = float(watts.min())
    states = max([len(cap_watts) - 1, *idle, *(run.configuration.power_state or 0 for run in seen)])
    idles = []
    for state in range(states + 1):
        if state in idle:
            value = float(np.median(idle[state]))
            idles.append(
                Figure(
                    value=value,
                    sd=max(0.02 * value, 0.01),
                    unit="W",
                    source="idle power of the measured runs",
                    evidence=Evidence.MEASURED,
                )
            )
        else:
            idles.append(
                _assumed(0.8 * low, 0.15 * low, "W", "idle draws 20 % less than the lightest run")
            )
    caps = [*cap_watts, *[float(watts.max()) * 1.5] * (states + 1 - len(cap_watts))]
    span = float(watts.max()) - low
    priors = {
        "base_watts": _assumed(low, 0.5 * low, "W", "the lightest run"),
        "background_watts": _assumed(2.0, 2.0, "W", "folding keeps the dies busy"),
    }
    for direction in (Operation.READ, Operation.WRITE):
        priors |= _work_priors(direction, seen, span)
    return DevicePowerRecipe(
        priors=priors,
        noise_watts=max(0.01 * float(np.median(watts)), 0.005),
        idle_watts=idles,
        cap_watts=caps,
        peak_watts=_assumed(
            max(float(watts.max()) * 1.1, caps[0]), 0.1 * caps[0], "W", "cap of PS0 or seen"
        ),
        condition="conditions of the measured runs",
    )


def _work_priors(
    direction: Operation, seen: list[Measurement], span_watts: float
) -> dict[str, Figure]:
    """Priors of one direction's joules per byte and per operation.

    Where the runs tell the two apart, that is where rates in bytes and in operations do not go
    together, both may be as large as the measured range allows. Else an operation costs what
    sensing or programming a page does, and all the rest is bytes.
    """
    own = [
        measurement
        for measurement in seen
        if measurement.workload.operation is direction
        and measurement.observations.throughput_bytes_per_second
        and (measurement.configuration.power_state or 0) == 0
    ]
    rates = np.array([run.observations.throughput_bytes_per_second or 0.0 for run in own])
    operations = rates / np.array([float(run.configuration.request_bytes) for run in own])
    vary = len(own) >= 6 and np.ptp(rates) > 0 and np.ptp(operations) > 0
    told_apart = bool(vary) and abs(float(np.corrcoef(rates, operations)[0, 1])) < 0.8
    fastest = max(_within_reach(seen) if not told_apart else 0.0, float(rates.max(initial=0.0)))
    byte = ((span_watts + 1.0) if not told_apart else span_watts) / fastest
    source = (
        f"the measured range over {fastest:.2g} B/s" if not told_apart else "the measured range"
    )
    operation, why = _PAGE_JOULES, "sensing or programming a page"
    if told_apart and span_watts / float(operations.max()) > operation:
        operation, why = span_watts / float(operations.max()), "the measured range"
    return {
        f"{direction}_joules_per_byte": _assumed(byte, 2 * byte, "J/B", source),
        f"{direction}_joules_per_operation": _assumed(operation, operation, "J", why),
    }


def _within_reach(seen: list[Measurement]) -> float:
    """Bytes/s that a drive may well move: its fastest runs, counting a page for each operation."""
    rates = [
        max(throughput, throughput / run.configuration.request_bytes * _PAGE_BYTES)
        for run in seen
        if (throughput := run.observations.throughput_bytes_per_second)
        and run.configuration.request_bytes
    ]
    return min(max(rates, default=_FAST), _FAST)


def host_power_recipe(measurements: list[Measurement], cpu_cores: int) -> HostPowerRecipe | None:
    """CPU power of the host that measured; None without both CPU power and utilisation."""
    rows = _spread(
        [
            measurement
            for measurement in measurements
            if measurement.observations.cpu_power_watts is not None
            and measurement.observations.cpu_utilisation is not None
        ]
    )
    if len(rows) < 4:
        return None
    watts = np.array([row.observations.cpu_power_watts for row in rows], dtype=float)
    low = float(watts.min())
    dram_idle, dram_each = _dram(measurements)
    return HostPowerRecipe(
        host_id=rows[0].conditions.host_id or "the host that measured",
        scope="CPU as the sensor reports it",
        cpu_cores=cpu_cores,
        priors={
            "idle_watts": _assumed(0.9 * low, 0.3 * low, "W", "the lightest run"),
            "package_watts": _assumed(0.15 * low, 0.25 * low, "W", "package awake"),
            "uncore_watts": _assumed(0.1 * low, 0.2 * low, "W", "caches and mesh at work"),
            "core_watts": _assumed(2.0, 2.0, "W", "a busy core"),
            "awake_core_watts": _assumed(0.5, 0.5, "W", "a core out of its sleep state"),
            "wakeup_joules": _assumed(2e-5, 4e-5, "J", "tens of microseconds of a core's power"),
        },
        anchors=[
            HostAnchor(
                busy_cores=row.observations.cpu_utilisation or 0.0,
                serving_cores=max(
                    min(row.configuration.jobs, cpu_cores), row.observations.cpu_utilisation or 0.0
                ),
                wakeups_per_second=row.observations.context_switches_per_second or 0.0,
                frequency_hertz=row.configuration.cpu_frequency_max_hertz,
                cstate_limit=row.configuration.cstate_limit,
                watts=row.observations.cpu_power_watts or low,
                sd=max(0.03 * low, 0.1),
                source="measured",
                evidence=Evidence.MEASURED,
            )
            for row in rows
        ],
        dram_idle_watts=dram_idle,
        dram_joules_per_byte=dram_each,
    )


def host_operation_recipe(
    expected: HostOperationRecipe | None, measurements: list[Measurement]
) -> HostOperationRecipe | None:
    """What is expected of the host's settings, with a clock where its frequency was varied.

    The reference is the highest frequency that was set, the lowest one the least that is known.
    """
    rows = [measurement.configuration.cpu_frequency_max_hertz for measurement in measurements]
    hertz = sorted({row for row in rows if row is not None})
    if expected is None or expected.clock is not None or len(hertz) < 2:
        return expected
    top = hertz[-1]
    clock = ClockRecipe(
        reference_hertz=_assumed(top, 0.05 * top, "Hz", "the highest frequency that was set"),
        minimum_hertz=_assumed(hertz[0], 0.0, "Hz", "the lowest frequency that was set"),
        base_hertz=_assumed(top, 0.05 * top, "Hz", "the highest frequency that was set"),
        static_share=_assumed(0.3, 0.2, "1", "what leaks of a busy core's power"),
        voltage_floor=_assumed(0.75, 0.15, "1", "voltage at the lowest clock"),
        uncore_share=_assumed(0.5, 0.3, "1", "caches follow the cores' clock"),
        memory_share=_assumed(0.25, 0.15, "1", "a request's waiting for memory"),
    )
    return expected.model_copy(update={"clock": clock})


def _dram(measurements: list[Measurement]) -> tuple[Figure, Figure] | tuple[None, None]:
    """Idle watts of the memory and joules for a byte moved; None where it has no counter."""
    rows = [
        (seen.throughput_bytes_per_second or 0.0, seen.dram_power_watts)
        for seen in (measurement.observations for measurement in measurements)
        if seen.dram_power_watts is not None
    ]
    if len(rows) < 4:
        return None, None
    rates, watts = np.array(rows, dtype=float).T
    moved, low = MEMORY_TRANSFERS * rates, float(watts.min())
    span = max(float(watts.max()) - low, 0.02 * low, 1e-3)
    fit = fit_linear(
        np.stack([np.ones_like(moved), moved], axis=1),
        watts,
        np.full(len(watts), max(0.02 * low, 0.02)),
        np.array([low, 0.5 * span / max(float(moved.max()), 1.0)]),
        np.array([span, span / max(float(moved.max()), 1.0)]),
    )
    idle, each = (
        Figure(
            value=float(fit.theta[i]),
            sd=float(np.sqrt(fit.covariance[i, i])),
            unit=unit,
            source=f"memory power of {len(rows)} runs",
            evidence=Evidence.MEASURED,
        )
        for i, unit in enumerate(("W", "J/B"))
    )
    return idle, each


def system_power_recipe(measurements: list[Measurement]) -> SystemPowerRecipe | None:
    """Wall power of the host that measured; None without wall, CPU and drive power together."""
    rows = _spread(
        [
            measurement
            for measurement in measurements
            if measurement.observations.system_power_watts
            and measurement.observations.cpu_power_watts
            and measurement.observations.device_power_watts
        ]
    )
    if len(rows) < 3:
        return None
    return SystemPowerRecipe(
        host_id=rows[0].conditions.host_id or "the host that measured",
        relative_sd=0.03,
        slope_prior=_assumed(1.15, 0.3, "1", "losses of a supply"),
        quadratic_prior=_assumed(2.5e-4, 2.5e-4, "1/W", "80 PLUS Gold, 87, 90 and 87 % of 500 W"),
        anchors=[
            SystemAnchor(
                parts_watts=(row.observations.cpu_power_watts or 0.0)
                + (row.observations.dram_power_watts or 0.0)
                + (row.observations.device_power_watts or 0.0),
                wall_watts=row.observations.system_power_watts or 0.0,
                source="measured",
                evidence=Evidence.MEASURED,
            )
            for row in rows
        ],
    )


SIGMAS_95 = 1.96
"""Standard deviations on each side of the characteristics' 95 % intervals."""

LEAST_LOG_SD = 0.05
"""A session differs from another by more than a fit within one may say."""

FOLDING_MOST = 0.99
"""Share of the cache that is full, at the most, when watts change: the rate falls after that."""

SOURCE = "iojoule measure characterise"


def characterised_writes(characteristics: Characteristics) -> WriteStateRecipe | None:
    """Cache, rate beyond it and work afterwards; None where none of them was found."""
    size = _positive(characteristics.estimate("slc-cache", "cache_bytes"))
    full = _positive(characteristics.estimate("slc-cache", "cache_bytes_by_power"))
    slow = _positive(characteristics.estimate("slc-cache", "write_slow_bytes_per_second"))
    joules = characteristics.estimate("background", "background_joules_per_byte")
    seconds = _seconds_per_byte(characteristics)
    told_by = "background"
    delay = characteristics.estimate(told_by, "background_delay_seconds")
    if delay is None or delay.value is None:  # no burst was large enough for any
        told_by = "slc-cache"
        delay = characteristics.estimate(told_by, "fold_delay_seconds")
    fold = _positive(characteristics.estimate("slc-cache", "fold_seconds"))
    if size is None and seconds is None and joules is None:
        return None
    after_writes = []
    if seconds is not None:
        after_writes.append((1e9, 1e9 * seconds[0], seconds[1], Pattern.RANDOM, "background"))
    if size is not None and fold is not None:  # the cache was filled in order, and then emptied
        log_sd = float(np.hypot(size[1], fold[1]))
        after_writes.append((size[0], fold[0], log_sd, Pattern.SEQUENTIAL, "slc-cache"))
    return WriteStateRecipe(
        cache=[
            CacheSize(
                bytes=size[0],
                log_sd=size[1],
                folding_from=None if full is None else min(full[0] / size[0], FOLDING_MOST),
                evidence=Evidence.MEASURED,
                source=f"{SOURCE}: slc-cache",
            )
        ]
        if size is not None
        else [],
        collecting=[
            CollectingRate(
                pattern=Pattern.SEQUENTIAL,
                bytes_per_second=slow[0],
                log_sd=slow[1],
                evidence=Evidence.MEASURED,
                source=f"{SOURCE}: slc-cache",
            )
        ]
        if slow is not None
        else [],
        after_writes=[
            AfterWrites(
                bytes_written=written,
                seconds=work,
                pattern=pattern,
                log_sd=log_sd,
                evidence=Evidence.MEASURED,
                source=f"{SOURCE}: {question}",
            )
            for written, work, log_sd, pattern, question in after_writes
        ],
        background_joules_per_byte=_figure(joules, "J/B", "background"),
        background_delay_seconds=_figure(delay, "s", told_by),
        full_work_joules=_figure(
            characteristics.estimate("slc-cache", "full_work_joules"), "J", "slc-cache"
        ),
    )


BEYOND_CACHE = 1.5
"""A run that writes so many times what the cache takes shows what comes after it."""

SEEN_RATE_LOG_SD = 0.2
"""How far the rate of another run may be from one that is seen so; an assumption."""


def random_collecting(
    characteristics: Characteristics, rows: Sequence[Measurement]
) -> CollectingRate | None:
    """Rate of random writes past the cache, by runs that began with it empty.

    Of W bytes in T seconds the cache took C at its own rate r, the rest came at (W - C) / (T - C /
    r). The fastest run counts: others may have asked for less. None where no run wrote enough.
    """
    size = _positive(characteristics.estimate("slc-cache", "cache_bytes"))
    fast = _positive(characteristics.estimate("slc-cache", "write_fast_bytes_per_second"))
    if size is None or fast is None:
        return None
    rates = []
    for row in rows:
        written = row.observations.host_bytes_written or 0.0
        rate = row.observations.throughput_bytes_per_second
        if (
            row.workload.operation is Operation.WRITE
            and row.workload.pattern is Pattern.RANDOM
            and not row.configuration.power_state
            and row.at_full_speed
            and rate
            and _shows_what_follows(row, size[0])
        ):
            seconds = written / rate - size[0] / fast[0]
            rates.append((written - size[0]) / seconds if seconds > 0 else rate)
    if not rates:
        return None
    return CollectingRate(
        pattern=Pattern.RANDOM,
        bytes_per_second=max(rates),
        log_sd=SEEN_RATE_LOG_SD,
        evidence=Evidence.MEASURED,
        source=f"{len(rates)} runs that wrote more than the cache takes",
    )


def _shows_what_follows(run: Measurement, cache_bytes: float) -> bool:
    """Whether a run wrote well past its cache."""
    return (run.observations.host_bytes_written or 0.0) >= BEYOND_CACHE * cache_bytes


def characterised_runs(
    characteristics: Characteristics, rows: Sequence[Measurement]
) -> list[Measurement]:
    """The writes past the cache as a run beside others, if none of these wrote for so long."""
    size = _positive(characteristics.estimate("slc-cache", "cache_bytes"))
    rate = _positive(characteristics.estimate("slc-cache", "write_slow_bytes_per_second"))
    watts = _positive(characteristics.estimate("slc-cache", "write_slow_watts"))
    if size is None or rate is None or watts is None or not rows:
        return []
    if any(_shows_what_follows(run, size[0]) for run in rows):
        return []
    fills = characteristics.answers["slc-cache"].evidence.named("fill ")
    return [
        Measurement(
            workload=Workload(operation=Operation.WRITE, pattern=Pattern.SEQUENTIAL),
            configuration=Configuration(
                request_bytes=int(fill["request_bytes"]),
                queue_depth=int(fill["queue_depth"]),
                engine=Engine.LIBAIO,
            ),
            state=State(device_state=DeviceState.COLLECTING),
            conditions=rows[0].conditions,
            observations=Observations(
                throughput_bytes_per_second=rate[0], device_power_watts=watts[0]
            ),
        )
        for fill in fills[:1]
    ]


def _seconds_per_byte(characteristics: Characteristics) -> tuple[float, float] | None:
    """Of background work and its log sd: joules over watts, else the slope of its duration.

    The end of the work is seen to a fraction of a second, which is long beside work that is short.
    """
    joules, watts = (
        _positive(characteristics.estimate("background", name))
        for name in ("background_joules_per_byte", "background_watts")
    )
    if joules is not None and watts is not None:
        return joules[0] / watts[0], math.hypot(joules[1], watts[1])
    return _positive(characteristics.estimate("background", "background_seconds_per_byte"))


def characterised_gaps(characteristics: Characteristics) -> IdleRecipe | None:
    """Wake-up from the operational idle state, and settling; None where neither was found."""
    wake = _positive(characteristics.estimate("idle", "wake_seconds_ps0"))
    answer = characteristics.answers.get("settle")
    settle = None if answer is None else answer.estimates.get("settle_joules")
    if settle is not None and settle.value is None and settle.high:  # no more than that
        settle = settle.model_copy(update={"value": settle.high / 2.0})
    joules = _figure(settle, "J", "settle")
    if wake is None and joules is None:
        return None
    source = f"{SOURCE}: idle"
    wakes = [WakeSeen(seconds=wake[0], log_sd=wake[1], source=source)] if wake else []
    return IdleRecipe(wakes=wakes, settle_joules=joules)


def _positive(estimate: Estimate | None) -> tuple[float, float] | None:
    """Value and log sd of an estimate; None where it is missing or zero."""
    if (
        estimate is None
        or estimate.value is None
        or estimate.low is None
        or estimate.high is None
        or estimate.value <= 0
    ):
        return None
    low = max(estimate.low, 1e-3 * estimate.value)
    return estimate.value, max(math.log(estimate.high / low) / (2 * SIGMAS_95), LEAST_LOG_SD)


def _figure(estimate: Estimate | None, unit: str, name: str) -> Figure | None:
    if estimate is None or estimate.value is None or estimate.low is None or estimate.high is None:
        return None
    return Figure(
        value=estimate.value,
        sd=max((estimate.high - estimate.low) / (2 * SIGMAS_95), LEAST_LOG_SD * estimate.value),
        unit=unit,
        source=f"{SOURCE}: {name}",
        evidence=Evidence.MEASURED,
    )


def characterised_idle_watts(characteristics: Characteristics) -> dict[int, Figure]:
    """Idle power of every state that was measured for itself."""
    watts = {}
    for state in characteristics.drive.power_states:
        estimate = characteristics.estimate("idle", f"idle_watts_ps{state.index}")
        if (
            estimate is None
            or estimate.value is None
            or estimate.low is None
            or estimate.high is None
        ):
            continue
        watts[state.index] = Figure(
            value=estimate.value,
            # what a session differs from another by is more than what a minute's mean may err
            sd=max((estimate.high - estimate.low) / 4, 0.005 * estimate.value),
            unit="W",
            source="idle power measured for itself (iojoule measure characterise)",
            evidence=Evidence.MEASURED,
        )
    return watts


def measured_host(known: HostRecipe, measurements: Sequence[Measurement]) -> HostRecipe:
    """The host that the measurements name, where they agree on one."""
    hosts = {run.conditions.host_id for run in measurements} - {None}
    cores = [run.conditions.cpu_cores_available for run in measurements]
    return HostRecipe(
        host_id=str(hosts.pop()) if len(hosts) == 1 else known.host_id,
        cpu_cores=max((count for count in cores if count), default=known.cpu_cores),
    )
