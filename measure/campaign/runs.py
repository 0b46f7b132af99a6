"""The runs of a plan in their order, impossible points, and the cost."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pydantic import ValidationError
from scipy.stats import qmc

from iojoule.datasets.catalogue import catalogued
from iojoule.datasets.schema import Configuration, Workload, validation_error
from iojoule.datasets.steady_state import WINDOW_ROUNDS
from iojoule.datasets.vocabulary import Completion, Engine, Operation, Pattern
from iojoule.measure.campaign.plan import (
    ALL_STATES,
    KNOBS,
    REPEATS_OF_ONE_MAX,
    SIZES,
    KnobValues,
    Order,
    Plan,
    Purge,
    Sweep,
    Value,
    read_mix,
    read_size,
)
from iojoule.measure.errors import CampaignError
from iojoule.measure.point import Point
from iojoule.model.fit.gaussian_process import coordinates

_KERNEL_RINGS = (Engine.IO_URING, Engine.IO_URING_CMD)


@dataclass(frozen=True)
class Abilities:
    """What drive and host support; None = unknown, so that nothing is left out for it.

    Attributes:
        power_states: Operational states; None without a controller.
        polls: Whether the drive has poll queues.
        passthrough: Whether the drive has the character node that io_uring_cmd needs.
        passthrough_bytes_max: Largest request of io_uring_cmd, which the kernel does not split.
        limits_power: Whether the drive takes a power limit; None without a controller.
        caps_watts: Largest power of each power state as declared.
    """

    power_states: tuple[int, ...] | None = None
    polls: bool | None = None
    schedulers: frozenset[str] | None = None
    numa_nodes: frozenset[int] | None = None
    passthrough: bool | None = None
    passthrough_bytes_max: int | None = None
    limits_power: bool | None = None
    caps_watts: Mapping[int, float] = field(default_factory=dict)

    def refusal(self, configuration: Configuration) -> str | None:
        """Why a configuration cannot be in force here; None = it can."""
        polled = configuration.completion is Completion.POLLED
        if self.polls is False and polled and configuration.engine in _KERNEL_RINGS:
            return (
                "completion: polled needs poll queues, which the drive has none of (load nvme with "
                "poll_queues=N)"
            )
        largest = self.passthrough_bytes_max
        whole = configuration.engine is Engine.IO_URING_CMD
        if whole and self.passthrough is False:
            return (
                "engine: io_uring_cmd needs the drive's character node (/dev/ngXnY, Linux 5.13 and "
                "later), which it has none of"
            )
        if whole and largest is not None and configuration.request_bytes > largest:
            return (
                f"request_bytes: io_uring_cmd is not split by the kernel, and this drive takes at "
                f"most {largest:,} bytes at once"
            )
        scheduler = configuration.scheduler
        if scheduler and self.schedulers is not None and scheduler not in self.schedulers:
            return f"scheduler: this kernel does not offer {scheduler.value}"
        node = configuration.job_numa_node
        if node is not None and self.numa_nodes is not None and node not in self.numa_nodes:
            return f"job_numa_node: this host has no node {node}"
        limit = configuration.power_limit_watts
        if limit is not None and self.limits_power is False:
            return "power_limit_watts: this drive takes no power limit (CTRATT bit 20)"
        for name in ("power_state", "post_write_power_state") if limit else ():
            if self.caps_watts.get(getattr(configuration, name), 0.0) > (limit or 0.0):
                return f"{name}: a drive offers no state that may draw more than its power limit"
        return None


def folder_name(number: int, sweep: str) -> str:
    """Name of a run's folder."""
    return f"{number:05d}-{sweep}"


@dataclass(frozen=True)
class Run:
    """One run of a campaign; `number` counts from 1, `repeat` from 0."""

    number: int
    sweep: str
    point: Point
    repeat: int
    seconds: float
    ramp_seconds: float

    @property
    def name(self) -> str:
        """Name of its folder."""
        return folder_name(self.number, self.sweep)


@dataclass(frozen=True)
class Expansion:
    """The runs of a plan, and the points that cannot exist with the reason and their number."""

    runs: tuple[Run, ...]
    impossible: dict[str, int]


def expand(plan: Plan, abilities: Abilities) -> Expansion:
    """The runs of a plan, in order.

    Raises CampaignError if a value is invalid or no run is possible.
    """
    runs: list[tuple[Sweep, Point, int]] = []
    impossible: dict[str, int] = {}
    defaults: dict[str, Value] = {"engine": Engine.IO_URING}
    if any("power_limit_watts" in sweep.knobs for sweep in plan.sweep):
        defaults |= {"power_limit_watts": 0} if abilities.limits_power else {}
    for sweep in plan.sweep:
        seen: set[str] = set()
        for values in _combinations(sweep, plan.seed, abilities.power_states):
            point = _point(sweep, values, abilities, defaults)
            if isinstance(point, str):
                impossible[point] = impossible.get(point, 0) + 1
                continue
            if point.key in seen:
                continue
            seen.add(point.key)
            runs += [(sweep, point, repeat) for repeat in range(sweep.repeats or plan.repeats)]
    if not runs:
        reasons = "; ".join(impossible) or "its sweeps hold nothing"
        raise CampaignError(f"plan {plan.name}: no run is possible: {reasons}")
    ordered = _ordered(runs, plan)
    return Expansion(
        tuple(
            Run(
                number,
                sweep.name,
                point,
                repeat,
                sweep.seconds or plan.run.seconds,
                plan.run.ramp_seconds if sweep.ramp_seconds is None else sweep.ramp_seconds,
            )
            for number, (sweep, point, repeat) in enumerate(ordered, start=1)
        ),
        impossible,
    )


def _ordered(runs: list[tuple[Sweep, Point, int]], plan: Plan) -> list[tuple[Sweep, Point, int]]:
    """Shuffle, but keep patterns apart where the drive is preconditioned for each.

    Sequential runs come first, on the drive as filled; repeats of one point lie apart, so that
    drift shows as scatter and not as an effect.
    """
    if plan.order is Order.RANDOM:
        rounds: dict[int, list[tuple[Sweep, Point, int]]] = {}
        for run in runs:
            rounds.setdefault(run[2], []).append(run)
        source = random.Random(plan.seed)
        runs = []
        for repeat in sorted(rounds):
            source.shuffle(rounds[repeat])
            runs += rounds[repeat]
    if plan.precondition.until_steady:
        runs.sort(key=lambda run: run[1].workload.pattern is Pattern.RANDOM)
    return runs


def _combinations(
    sweep: Sweep, seed: int, power_states: Sequence[int] | None
) -> Iterator[dict[str, Value]]:
    knobs = {name: _spelled_out(name, knob, power_states) for name, knob in sweep.knobs.items()}
    if sweep.samples is None:
        for chosen in itertools.product(*(knob.values for knob in knobs.values())):
            yield dict(zip(knobs, chosen, strict=True))
        return
    varied = {name: knob for name, knob in knobs.items() if len(knob.values) > 1}
    fixed = {name: knob.values[0] for name, knob in knobs.items() if len(knob.values) == 1}
    if not varied:
        yield fixed
        return
    # a power of two keeps the sequence balanced; what is too much is cut off at the end
    power = int(np.ceil(np.log2(sweep.samples)))
    points = qmc.Sobol(len(varied), scramble=True, rng=seed).random_base2(power)
    for row in points[: sweep.samples]:
        yield fixed | {
            name: knob.values[min(int(share * len(knob.values)), len(knob.values) - 1)]
            for share, (name, knob) in zip(row, varied.items(), strict=True)
        }


def _spelled_out(name: str, knob: KnobValues, power_states: Sequence[int] | None) -> KnobValues:
    if name != "power_state" or ALL_STATES not in knob.values:
        return knob
    if power_states is None:
        raise CampaignError(
            "power_state: the plan asks for every operational state, but no controller is known; "
            "name it with --controller, or leave the knob out"
        )
    return KnobValues(values=tuple(power_states))


def _point(
    sweep: Sweep, values: dict[str, Value], abilities: Abilities, defaults: dict[str, Value]
) -> Point | str:
    """The point of these values, or the reason why it cannot exist."""
    where = f"sweep {sweep.name}"
    parts: dict[str, dict[str, Any]] = {"workload": {}, "configuration": {}}
    for name, value in values.items():
        try:
            if name == "request_bytes_mix":
                mix, mean = read_mix(value)
                parts["workload"][name] = mix
                parts["configuration"]["request_bytes"] = mean
                continue
            parts[KNOBS[name]][name] = read_size(value) if name in SIZES else value
        except ValueError as error:
            raise CampaignError(f"{where}: {name}: {error}", field=name) from None
    state = parts["configuration"].get("power_state")
    if state is not None:
        _known_state(where, state, abilities.power_states)
    if parts["configuration"].get("power_limit_watts") is not None:
        _known_controller(where, "power_limit_watts", abilities.power_states)
    if parts["workload"]["operation"] != "mixed":
        parts["workload"].pop("read_fraction", None)
        parts["workload"].pop("mix_dispatch", None)
    try:
        workload = Workload.model_validate(parts["workload"])
        configuration = Configuration.model_validate(_filled(parts["configuration"], defaults))
    except ValidationError as error:
        message = validation_error(error, where)
        if "contradict" in message.message or error.errors()[0]["loc"]:
            raise CampaignError(message.message, field=message.field) from None
        return message.message.removeprefix(f"{where}: ").partition(" (found")[0]
    return abilities.refusal(configuration) or Point(workload, configuration)


def _filled(configuration: dict[str, Any], defaults: dict[str, Value]) -> dict[str, Any]:
    """What is left out takes the value that would be in force, so that the record states it."""
    fields: dict[str, Any] = {**defaults, **configuration}
    if "completion" not in fields:
        fields["completion"] = "polled" if fields["engine"] == Engine.SPDK else "interrupt"
    return fields


def _known_controller(where: str, name: str, power_states: Sequence[int] | None) -> Sequence[int]:
    if power_states is None:
        raise CampaignError(
            f"{where}: {name} is asked for, but no controller is known; name it with "
            "--controller, or leave the knob out",
            field=name,
        )
    return power_states


def _known_state(where: str, state: Any, power_states: Sequence[int] | None) -> None:
    power_states = _known_controller(where, "power_state", power_states)
    if state not in power_states:
        raise CampaignError(
            f"{where}: power_state {state} is none of the drive's operational states "
            f"({', '.join(map(str, power_states))})",
            field="power_state",
        )


def space_filling(points: Sequence[Point], count: int, seed: int) -> list[int]:
    """Indices of `count` points, spread evenly over the knobs that vary.

    Each element of a scrambled Sobol sequence takes the nearest unused point; once all are used,
    points repeat.
    """
    positions, _ = coordinates([point.configuration for point in points])
    # a power of two keeps the sequence balanced; what is too much is cut off at the end
    power = int(np.ceil(np.log2(max(2, count))))
    sequence = qmc.Sobol(positions.shape[1], scramble=True, rng=seed).random_base2(power)
    free = np.ones(len(points), dtype=bool)
    chosen: list[int] = []
    for element in sequence[:count]:
        distance = ((positions - element) ** 2).sum(axis=1)
        place = int(np.where(free, distance, np.inf).argmin())
        free[place] = False
        chosen.append(place)
        if not free.any():
            free[:] = True
    return chosen


OVERHEAD_SECONDS = 1.5
"""A run takes so much longer than its times: starting fio, looking at the drive, storing."""

UNKNOWN_WRITE_BYTES_PER_SECOND = 7e9
"""Taken for a drive that the catalogue does not know: as fast as PCIe 4.0 with four lanes."""

_SETTLE_AFTER_WRITES_SHARE = 0.25
_FORMAT_SECONDS = 60.0


@dataclass(frozen=True)
class Cost:
    """Upper bounds of a campaign's cost.

    Attributes:
        preparation_seconds: Part of `seconds` before the first run.
        bytes_written_max: At the drive's full rate.
        endurance_bytes: Rated endurance; None = unknown.
        repeats_seconds_max: Not part of `seconds`; what repeats write is in `bytes_written_max`.
    """

    runs: int
    points: int
    seconds: float
    preparation_seconds: float
    bytes_written_max: float
    write_bytes_per_second: float
    rate_source: str
    endurance_bytes: float | None
    repeats_max: int = 0
    repeats_seconds_max: float = 0.0

    @property
    def endurance_share(self) -> float | None:
        """Share of the rated endurance that is written at the most."""
        return self.bytes_written_max / self.endurance_bytes if self.endurance_bytes else None


def cost(plan: Plan, runs: Sequence[Run], model: str, target_bytes: int, states: int) -> Cost:
    """Estimate a plan."""
    rate, source, endurance = _drive(model)
    repeats = plan.repeats_of_doubtful(len(runs))
    each = [_written(run, rate) for run in runs]
    written = sum(each) + sum(_dearest(each, repeats))
    times = [run_seconds(plan, run) for run in runs]
    precondition = plan.precondition
    patterns = {run.point.workload.pattern for run in runs}
    preparation = _preparation(plan, len(patterns), target_bytes / rate)
    baselines = states * plan.settle.baseline_seconds
    seconds = sum(times) + preparation + 2 * baselines
    if precondition.fill_passes:
        written += precondition.fill_passes * target_bytes
    if precondition.until_steady:
        written += len(patterns) * precondition.rounds_max * precondition.round_seconds * rate
    if plan.bytes_written_max is not None:
        written = min(written, plan.bytes_written_max)
    return Cost(
        runs=len(runs),
        points=len({(run.sweep, run.point.key) for run in runs}),
        seconds=seconds,
        preparation_seconds=preparation + baselines,
        bytes_written_max=written,
        write_bytes_per_second=rate,
        rate_source=source,
        endurance_bytes=endurance,
        repeats_max=repeats,
        # idle power is measured once more after what it made doubtful
        repeats_seconds_max=sum(_dearest(times, repeats)) + (baselines if repeats else 0.0),
    )


def _dearest(costs: Sequence[float], repeats: int) -> list[float]:
    """The highest costs that so many repeats can have."""
    return sorted([*costs] * REPEATS_OF_ONE_MAX, reverse=True)[:repeats]


def run_seconds(plan: Plan, run: Run) -> float:
    """Time of a run on a prepared drive: settling, ramp, run, a quarter of the longest wait."""
    waits = plan.settle.after_writes_seconds_max * _SETTLE_AFTER_WRITES_SHARE
    planned = run.seconds + run.ramp_seconds + plan.settle.seconds + OVERHEAD_SECONDS
    return planned + (min(waits, 2 * run.seconds) if run.point.writes else 0.0)


def _preparation(plan: Plan, patterns: int, pass_seconds: float) -> float:
    precondition = plan.precondition
    seconds = precondition.fill_passes * pass_seconds
    if precondition.until_steady:
        seconds += patterns * 2 * WINDOW_ROUNDS * precondition.round_seconds
    return seconds + (_FORMAT_SECONDS if precondition.purge is Purge.FORMAT else 0.0)


def _written(run: Run, rate: float) -> float:
    """At the most: the drive's rate, or what the demand or the share of writes leaves of it."""
    if not run.point.writes:
        return 0.0
    workload = run.point.workload
    share = 1.0
    if workload.operation is Operation.MIXED:
        share = 1.0 - (workload.read_fraction if workload.read_fraction is not None else 0.5)
    demand = workload.demand_bytes_per_second
    if workload.demand_operations_per_second:
        demand = workload.demand_operations_per_second * run.point.configuration.request_bytes
    return min(rate, demand or rate) * share * (run.seconds + run.ramp_seconds)


def _drive(model: str) -> tuple[float, str, float | None]:
    drive = catalogued(model)
    if drive is None:
        return UNKNOWN_WRITE_BYTES_PER_SECOND, "no catalogue entry: PCIe 4.0 x4", None
    endurance = drive.fact("endurance_bytes_written")
    rated = float(endurance.value) if endurance and not isinstance(endurance.value, str) else None
    for metric in ("sequential_write_throughput", "sequential_write_throughput_max"):
        fact = drive.fact(metric)
        if fact is not None and fact.unit == "bytes/s" and not isinstance(fact.value, str):
            return float(fact.value), f"{drive.id}, {metric}", rated
    return UNKNOWN_WRITE_BYTES_PER_SECOND, f"{drive.id} states no rate: PCIe 4.0 x4", rated
