"""Explains a recommendation: notes, causes of the saving, and what else decides it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.profile import EARLIER_LAW, FACTS_RECIPE, DeviceProfile
from iojoule.datasets.vocabulary import (
    Completion,
    Engine,
    Evidence,
    MixDispatch,
    Operation,
    impossible,
)
from iojoule.model.evaluate.background_work import Balance
from iojoule.model.evaluate.bands import EVIDENCE
from iojoule.model.evaluate.columns import HOST
from iojoule.model.evaluate.frame import COMPLETIONS, ENGINES, SCHEDULERS, Frame
from iojoule.model.evaluate.latency import Arrivals
from iojoule.model.evaluate.operating_point import HostPaths, code_of
from iojoule.recommender.candidates import DEFAULT_ENGINES
from iojoule.recommender.evaluate import Question
from iojoule.recommender.request import UNMODELLED, Free, Scope, WorkloadProfile
from iojoule.recommender.response import Attribution, KnobEffect, Row, Saving
from iojoule.recommender.rows import Details, over
from iojoule.recommender.select import Choice
from iojoule.recommender.space import Candidates, configuration_of, knobs

OF_THE_WHOLE_HOST = ("cpu_governor", "cpu_frequency_max_hertz", "cstate_limit")
"""Knobs that touch other work on the host."""


def write(
    profile: DeviceProfile,
    workload: WorkloadProfile,
    question: Question,
    candidates: Candidates,
    current: Row | None,
    recommended: Row | None,
    choice: Choice,
) -> list[str]:
    """Notes of an answer, most important first."""
    notes = [profile.gaps[0]] if profile.recipe == FACTS_RECIPE else []
    if EARLIER_LAW in profile.gaps and question.scope is not Scope.DEVICE:
        notes.append(EARLIER_LAW)
    if choice.passed is not None:
        notes.append(
            f"no change: no candidate saves {workload.least_saving_percent:g} % with a probability "
            "of at least 0.9; measure_next lists what to measure, iojoule verify proves a saving "
            "in pairs of runs"
        )
    if choice.action == "ranking":
        notes.append(
            "nothing was said about what runs today ([current]), so no saving is stated: rows are "
            "ranked, the best expected one first"
        )
    notes += _not_known(profile, workload, question)
    notes += _energy(profile, workload, question)
    notes += _current(workload, current)
    notes += _observed(question)
    if recommended is not None and current is not None:
        notes += _change(current, recommended)
    if workload.free is None:
        engines = ", ".join(engine.value for engine in DEFAULT_ENGINES)
        notes.append(
            "nothing was said about free knobs: those of requests and drive varied, engines "
            f"{engines} and today's; other engines are candidates where free.engine lists them"
        )
    unknown = [
        name
        for name in OF_THE_WHOLE_HOST
        if workload.free is not None
        and getattr(workload.free, name) == ()
        and len(np.unique(candidates.hosts[:, HOST.index(name)])) == 1
    ]
    if unknown:
        notes.append(
            f"kept as today, the profile does not know what they do on its host: "
            f"{', '.join(unknown)}; iojoule measure host finds it"
        )
    known = {
        "apst_enabled": profile.idle is not None,
        "job_numa_node": True,  # refused where the profile does not know it
        "post_write_power_state": profile.write_state is not None
        and bool(profile.write_state.background),
    }
    kept = [
        name
        for name in UNMODELLED
        if getattr(workload.current, name) is not None and not known.get(name, False)
    ]
    if kept:
        notes.append(f"no effect on the figures, the profile does not know it: {', '.join(kept)}")
    if (
        workload.workload.operation is Operation.MIXED
        and workload.workload.mix_dispatch is MixDispatch.SEPARATED
    ):
        notes.append("mix_dispatch separated is predicted as interleaved: no data tell them apart")
    if candidates.balance is not None:
        notes.append(_state(workload, candidates.balance, candidates))
    if question.tail != "latency_p99_ns":
        notes.append(
            "no p99 latency is known for this workload: the front minimises the mean latency"
        )
    return [*notes, *workload.notes]


def _not_known(profile: DeviceProfile, workload: WorkloadProfile, question: Question) -> list[str]:
    """What nobody measured of the drive's write cache, and what would tell."""
    notes, flush = [], question.demand.flush
    if flush is not None and not flush.is_known:
        notes.append(
            "what a flush or forced write costs on this drive is not known, so bounds on "
            "throughput and latency are not shown to hold: measure with and without "
            "(flush_every_writes in a plan) and fit"
        )
    elif flush is not None and (profile.flush is None or workload.workload.force_unit_access):
        notes.append(
            "a flush or forced write is assumed to take 20 µs (5 to 80), for a drive with "
            "power-loss protection has nothing to write back: measure with and without and fit"
        )
    writes = workload.workload.operation is not Operation.READ
    by_chance = question.demand.arrivals in (Arrivals.POISSON, Arrivals.EVEN)
    if writes and by_chance and profile.write_buffer_bytes is None:
        notes.append(
            "the drive's write buffer is not known: latencies are those without any, and may be as "
            "short as their lower ends; measure writes with a demand (demand_bytes_per_second in "
            "a plan, engine libaio) and fit"
        )
    return notes


def _state(workload: WorkloadProfile, found: Balance, candidates: Candidates) -> str:
    """Which state the demand leads to within the horizon."""
    horizon = _span(workload.horizon_seconds)
    share = found.collecting[candidates.states]
    filled = [str(one) for one in candidates.states[share > 0]]
    if not filled:
        return (
            f"the drive's state follows from the demand: over {horizon} background work keeps the "
            "cache from filling up, so the cache takes the writes"
        )
    first = _span(float(found.full_seconds[candidates.states].min()))
    where = "" if (share > 0).all() else f" in power states {', '.join(filled)}"
    return (
        f"the drive's state follows from the demand: over {horizon} the cache fills up{where}, "
        f"after {first} at the earliest, and garbage collection sets the rate of writes; state "
        "horizon_seconds, how requests arrive (burst_bytes, idle_gap_seconds_p50) or "
        "state.device_state if that is not so"
    )


def _span(seconds: float) -> str:
    """A length of time in a unit that suits it."""
    for unit, length in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * length:
            return f"{seconds / length:.3g} {unit}" if seconds < 1e7 * length else "ages"
    return f"{seconds:.3g} s"


def _energy(profile: DeviceProfile, workload: WorkloadProfile, question: Question) -> list[str]:
    notes = []
    if question.objective is None:
        missing = [
            name
            for name, part in (
                ("drive", profile.device_power),
                ("CPU", profile.host_power if workload.scope is not Scope.DEVICE else True),
                ("whole system", profile.system_power if workload.scope is Scope.SYSTEM else True),
            )
            if part is None
        ]
        known = profile.device_power is not None and workload.scope is not Scope.DEVICE
        notes.append(
            f"the profile of {profile.model_name} has no power of the {' and '.join(missing)}, so "
            "nothing is said about energy: candidates are ranked by performance alone"
            + ("; scope device ranks them by the drive's energy" if known else "")
        )
        return notes
    if workload.scope is Scope.DEVICE:
        notes.append("energy is that of the drive alone; the host draws many times as much")
    if workload.scope is not Scope.DEVICE and profile.host_power is not None:
        whose = "your" if profile.host.calibrated_apart else "the reference"
        notes.append(
            f"CPU power is that of {whose} host {profile.host_power.host_id} "
            f"({profile.host_power.scope}), its idle power included"
        )
    demand = question.demand
    if demand.bytes_per_second is None:
        notes.append(
            "no demand is stated: watts are those of the running drive, and configurations do "
            "different amounts of work; compare joules per useful GB"
        )
        return notes
    if demand.arrivals is Arrivals.BURSTS:
        notes.append(
            "bursts: one fills the queue as far as it has requests, and latencies count from when "
            "a request can be issued"
        )
        return notes
    assumed = " (assumed; state arrival_process = bursts or steady)" * demand.arrivals_assumed
    process = "at equal intervals" if demand.arrivals is Arrivals.EVEN else "by chance (Poisson)"
    notes.append(
        f"requests arrive {process}{assumed}: latencies count from arrival and include the wait "
        "for a slot"
    )
    return notes


def _current(workload: WorkloadProfile, current: Row | None) -> list[str]:
    if current is None or current.meets_sla:
        return []
    if current.busy_share >= 1.0 and not workload.as_fast_as_possible:
        full = (
            "today's configuration cannot serve the demand: it is full at "
            f"{current.throughput_bytes_per_second.value:.4g} useful bytes a second, so its watts "
            "are for less work; compare joules per useful GB"
        )
        return [full]
    missed = (
        "today's configuration is not shown to keep the SLA: a bound does not hold at the "
        f"confidence of {workload.sla.confidence:g}"
    )
    return [missed]


def _observed(question: Question) -> list[str]:
    """What was measured beside what is predicted of it."""
    if question.observed is None:
        return []
    known = (
        "latency of today's configuration is what was measured; what its prediction errs corrects "
        "those of similar configurations"
    )
    notes = [known]
    for name, (measured, predicted) in question.observed.outside.items():
        notes.append(
            f"{name} was measured {measured / predicted:.3g} times as long as predicted, outside "
            "the interval: state demand and [current] as they are, or measure this drive and fit"
        )
    return notes


def _latency_paid(current: Row, recommended: Row) -> list[str]:
    """Where power is bought with latency: both, with intervals."""
    before, after = current.latency_p99_ns, recommended.latency_p99_ns
    if before is None or after is None or after.value <= before.value * 1.01:
        return []
    ends = [
        f"{one.value / 1e3:.4g} us [{one.low / 1e3:.4g}, "
        + ("unbounded]" if np.isinf(one.high) else f"{one.high / 1e3:.4g}]")
        for one in (before, after)
    ]
    return [f"power is bought with latency: p99 rises from {ends[0]} to {ends[1]}"]


def _change(current: Row, recommended: Row) -> list[str]:
    new, old = recommended.configuration, current.configuration
    notes = []
    if recommended.concurrency > current.concurrency:
        notes.append(
            f"the application must keep {recommended.concurrency} requests in flight, today it "
            f"keeps {current.concurrency}"
        )
    if new.power_state != old.power_state or new.queue_depth * new.jobs < (
        old.queue_depth * old.jobs
    ):
        notes += _latency_paid(current, recommended)
    if new.completion is Completion.POLLED and old.completion is not Completion.POLLED:
        notes.append(
            "polled completions need poll queues (nvme.poll_queues) and direct I/O"
            if new.engine is not Engine.SPDK
            else "spdk takes the drive away from the kernel and its file systems"
        )
    if new.request_bytes != old.request_bytes:
        notes.append(
            f"requests of {new.request_bytes} bytes: latencies are those of the enlarged requests"
        )
    if (new.power_state or 0) != (old.power_state or 0):
        notes.append(
            "a power state is a setting of the drive (Set Features, feature 2); it returns to PS0 "
            "with a reset unless saved"
        )
    if new.standby_timer_seconds and new.standby_timer_seconds != old.standby_timer_seconds:
        notes.append(
            "standby stops the platters: the first request after it waits for the spin-up, which "
            "wears the disk; `hdparm -S` loses the timer with a power cycle"
        )
    if any(getattr(new, name) != getattr(old, name) for name in OF_THE_WHOLE_HOST):
        notes.append(
            "governor, clock and C-state limit hold for all that runs on those cores, not for "
            "this workload alone"
        )
    return notes


Rows = NDArray[np.intp]
Flags = NDArray[np.bool_]

MOST_PLAYERS = 8
"""So many knobs make 256 configurations."""

ROUTE = ("engine", "completion", "submission_polling", "scheduler")
CONCURRENCY = ("queue_depth", "jobs")
STATE, LIMIT = "power_state", "power_limit_watts"
OF_POWER = (STATE, LIMIT, "background_state")

TOO_MANY = "more requests in flight than the application has"
UNKNOWN = "a path through the host that the profile does not know"


@dataclass(frozen=True)
class Between:
    """The configurations between today's and the recommended one.

    Attributes:
        players: The knobs that change; those that only change together stand in one tuple.
        sets: Which players have changed, as a bit mask, for each row of `frame`; without the first
            (nobody) and the last (everybody).
        frame: Those configurations.
        weights: Fair share of a player in energies by mask, shape (players, 2^players): energy
            saved = weights @ energy.
        orders: In how many orders the players can be changed one after the other.
        impossible: How many configurations between the two cannot exist, by reason.
    """

    players: tuple[tuple[str, ...], ...]
    sets: Rows
    frame: Frame
    weights: Floats
    orders: int
    impossible: dict[str, int]


def between(today: Frame, best: Frame, paths: HostPaths, most_bytes: float) -> Between:
    """Lay out what lies between two configurations, each a frame of one row; they differ.

    Args:
        today: The one; `best` the other.
        best: The other.
        paths: Paths through the host that the profile knows.
        most_bytes: Useful bytes that the application can have in flight.
    """
    differs = (knobs(today) != knobs(best))[0]
    changed = [name for name, by in zip(Free.model_fields, differs, strict=True) if by]
    if LIMIT in changed:  # the state that stands for it changes with it
        changed.remove(STATE)
    for players in _groupings(changed):
        frame = _mixed(today, best, players)
        reasons = _reasons(frame, paths, most_bytes)
        reasons[0] = reasons[-1] = ""
        exists = np.array([not reason for reason in reasons])
        found = fair_weights(len(players), exists)
        if found is not None:
            kept = np.flatnonzero(exists)[1:-1]
            without = dict(Counter(reason for reason in reasons if reason))
            return Between(players, kept, frame.take(kept), found[0], found[1], without)
    raise AssertionError("all knobs at once are always one step")


def _groupings(changed: Sequence[str]) -> Iterator[tuple[tuple[str, ...], ...]]:
    """Knobs one by one; then those of the route as one, with those of concurrency, and all."""
    for together in ((), ROUTE, ROUTE + CONCURRENCY, tuple(changed)):
        group = tuple(name for name in changed if name in together)
        players: tuple[tuple[str, ...], ...] = tuple(
            (name,) for name in changed if name not in group
        )
        players += (group,) if group else ()
        if len(players) <= MOST_PLAYERS:
            yield players


def _mixed(today: Frame, best: Frame, players: Sequence[tuple[str, ...]]) -> Frame:
    """Every combination of old and new, row m with the players whose bit is set in m changed."""
    count = 1 << len(players)
    masks = np.arange(count)
    rows = today.take(np.zeros(count, dtype=np.intp))
    taken = {}
    host = rows.host.copy()
    for bit, name in chain.from_iterable(
        ((bit, name) for name in names) for bit, names in enumerate(players)
    ):
        new = (masks >> bit & 1).astype(bool)
        if name in HOST:
            host[new, HOST.index(name)] = best.host[0, HOST.index(name)]
            continue
        for field in OF_POWER if name in OF_POWER else (name,):
            taken[field] = np.where(new, getattr(best, field)[0], getattr(today, field)[0])
    return replace(rows, host=host, **taken)


def _reasons(frame: Frame, paths: HostPaths, most_bytes: float) -> list[str]:
    """Why each row cannot exist; empty where it can."""
    codes = code_of(frame)
    found = []
    for row in range(len(frame)):
        depth, jobs = int(frame.queue_depth[row]), int(frame.jobs[row])
        why = impossible(
            ENGINES[frame.engine[row]],
            COMPLETIONS[frame.completion[row]],
            queue_depth=depth,
            scheduler=SCHEDULERS[frame.scheduler[row]],
            submission_polling=bool(frame.submission_polling[row]),
        )
        if why is not None:
            found.append(why[1].split(";")[0].split(":")[0])
        elif not paths.keys[codes[row]]:
            found.append(UNKNOWN)
        elif depth * jobs * float(frame.request_bytes[row]) > most_bytes:
            found.append(TOO_MANY)
        else:
            found.append("")
    return found


def fair_weights(players: int, exists: Flags) -> tuple[Floats, int] | None:
    """Weights of the Shapley value over the orders that exist, and how many these are.

    Args:
        players: How many.
        exists: Whether the configuration with the players of a bit mask changed can exist, shape
            (2^players,).

    Returns:
        Shape (players, 2^players), such that `weights @ energy` is what each player saves; None
        where no order exists.
    """
    return _fair_weights(players, exists.tobytes())


@lru_cache(maxsize=64)
def _fair_weights(players: int, exists: bytes) -> tuple[Floats, int] | None:
    """As `fair_weights`.

    With f orders from nobody to S and g from S to everybody, f(S) g(S + i) orders of all change i
    right after S.
    """
    count, bits = 1 << players, [1 << bit for bit in range(players)]
    there = np.frombuffer(exists, dtype=bool)
    to, onward = [0] * count, [0] * count
    to[0] = onward[-1] = 1
    for mask in range(1, count):
        if there[mask]:
            to[mask] = sum(to[mask ^ bit] for bit in bits if mask & bit)
    for mask in reversed(range(count - 1)):
        if there[mask]:
            onward[mask] = sum(onward[mask | bit] for bit in bits if not mask & bit)
    orders = to[-1]
    if not orders:
        return None
    weights = np.zeros((players, count))
    for place, bit in enumerate(bits):
        for mask in range(count):
            if mask & bit or not (there[mask] and there[mask | bit]):
                continue
            share = to[mask] * onward[mask | bit] / orders
            weights[place, mask] += share
            weights[place, mask | bit] -= share
    return weights, orders


def alone(players: int, exists: Flags) -> tuple[Floats, Flags]:
    """Weights of each player changed first, from today's configuration, and whether that exists."""
    weights = np.zeros((players, 1 << players))
    steps = np.array([1 << bit for bit in range(players)])
    weights[:, 0] = 1.0
    weights[np.arange(players), steps] = -1.0
    return weights, exists[steps]


def last(players: int, exists: Flags) -> tuple[Floats, Flags]:
    """Weights of each player changed last, and whether what is before that step exists."""
    everybody = (1 << players) - 1
    weights = np.zeros((players, 1 << players))
    before = np.array([everybody ^ (1 << bit) for bit in range(players)])
    weights[np.arange(players), before] = 1.0
    weights[:, everybody] -= 1.0
    return weights, exists[before]


Floats = NDArray[np.float64]


def attribution(
    details: Details, between: Between, today: int, best: int, rows: Sequence[int], saving: Saving
) -> Attribution | None:
    """Say what each player brings.

    Args:
        details: The judged rows.
        between: What lies between the two configurations.
        today: Row of today's configuration.
        best: Row of the recommended one.
        rows: Rows of `between.frame`.
        saving: Of the recommended configuration against today's.
    """
    players = len(between.players)
    row_of = np.full(1 << players, -1, dtype=np.intp)
    row_of[0], row_of[-1], row_of[between.sets] = today, best, rows
    exists = row_of >= 0
    first, first_known = alone(players, exists)
    final, final_known = last(players, exists)
    weights = _by_row(
        np.concatenate([between.weights, first, final]), row_of, len(details.judged.frame)
    )
    found = details.sums(weights, today, [best] * len(weights))
    if found is None:
        return None
    codes = details.evidence_codes(details.question.scope.value)
    words = [Evidence(EVIDENCE[int(codes[used].max(initial=0))]) for used in weights != 0]
    percent = over(found.percent, 1.0, words, 100.0)
    joules = over(found.joules_per_byte, 1e9, words, found.most_watts / found.rate)
    settings = [configuration_of(details.judged.frame, row) for row in (today, best)]
    effects = [
        KnobEffect(
            knobs=list(names),
            before={name: getattr(settings[0], name) for name in names},
            after={name: getattr(settings[1], name) for name in names},
            share_percent=percent[place],
            share_joules_per_useful_gb=joules[place],
            alone_percent=percent[players + place] if first_known[place] else None,
            last_percent=percent[2 * players + place] if final_known[place] else None,
        )
        for place, names in enumerate(between.players)
    ]
    demand = details.question.demand.bytes_per_second
    served = details.judged.work.served_bytes[list(rows)]
    return Attribution(
        knobs=sorted(effects, key=lambda one: -one.share_percent.value),
        together_percent=saving.percent,
        orders=between.orders,
        impossible=between.impossible,
        below_demand=0 if demand is None else int((served < demand * (1.0 - 1e-9)).sum()),
    )


def _by_row(by_mask: Floats, row_of: NDArray[np.intp], count: int) -> Floats:
    """Weights by judged row; what does not exist has none."""
    weights = np.zeros((len(by_mask), count))
    there = row_of >= 0
    weights[:, row_of[there]] = by_mask[:, there]
    return weights
