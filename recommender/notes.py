"""What a reader has to know before acting on an answer."""

from __future__ import annotations

import numpy as np

from iojoule.datasets.profile import EARLIER_LAW, FACTS_RECIPE, DeviceProfile
from iojoule.datasets.vocabulary import Completion, Engine, MixDispatch, Operation
from iojoule.model.evaluate.background_work import Balance
from iojoule.model.evaluate.columns import HOST
from iojoule.model.evaluate.latency import Arrivals
from iojoule.recommender.answer import Row
from iojoule.recommender.candidates import DEFAULT_ENGINES
from iojoule.recommender.screen import Question
from iojoule.recommender.select import Choice
from iojoule.recommender.space import Candidates
from iojoule.recommender.workload import UNMODELLED, Scope, WorkloadProfile

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
            "ranked, the first has the lowest expected objective"
        )
    notes += _not_known(profile, workload, question)
    notes += _energy(profile, workload, question)
    notes += _current(workload, current)
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
            "bursts: the queue is full while one lasts, and latencies count from when a request "
            "can be issued"
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
