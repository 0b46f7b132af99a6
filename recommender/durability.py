"""What a power cut would take, and what weaker durability would buy where the SLA allows it.

A drive with a volatile write cache may lose what it has acknowledged since the last flush (NVMe
Base specification, Flush command); with power-loss protection it loses nothing. A job that flushes
after every n writes has at most n of them unflushed, so a power cut takes at most n of each job.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from iojoule.datasets.profile import DeviceProfile
from iojoule.model.evaluate.equal_work import Demand
from iojoule.model.evaluate.latency import Flush
from iojoule.recommender.candidates import demand_of
from iojoule.recommender.request import Observed, WorkloadProfile
from iojoule.recommender.response import DurabilityAnswer, PowerCut, Row, Weaker

FURTHER_APART = (10, 100)
"""How many times as far apart flushes are tried, before there are none."""

ALLOW = "allow weaker durability"
"""What an SLA must say."""

PROTECTED_FLUSH_NS = (20_000.0, 0.7)
"""Time of a flush by a drive with power-loss protection, ns, and its log sd: an assumption, a
command that finds nothing to do takes 5 to 80 us."""


def flush_of(profile: DeviceProfile, workload: WorkloadProfile) -> Flush | None:
    """What waiting for flushes, or for forced writes, costs; None where the work waits for none.

    A drive whose cache survives a power cut has nothing to write back: a flush is a command.
    """
    stated = workload.workload
    every = 1 if stated.force_unit_access else stated.flush_every_writes
    share = 1.0 - workload.read_fraction
    if not every or share == 0.0:
        return None
    if profile.flush is not None and not stated.force_unit_access:
        seconds = profile.flush.seconds
        return Flush(share / every, 1e9 * seconds.value, seconds.sd)
    if profile.valid_for.power_loss_protection:
        return Flush(share / every, *PROTECTED_FLUSH_NS)
    return Flush(share / every, np.nan)


def demand_with_flushes(
    profile: DeviceProfile, workload: WorkloadProfile, current_bytes: int
) -> Demand:
    """The demand of a workload profile, and what its flushes cost on a drive."""
    return replace(demand_of(workload, current_bytes), flush=flush_of(profile, workload))


def ladder(profile: DeviceProfile, workload: WorkloadProfile) -> list[WorkloadProfile]:
    """The question as it is, then with ever weaker durability of which the effect is known."""
    flush = flush_of(profile, workload)
    if not workload.sla.allow_weaker_durability or flush is None or not flush.is_known:
        return [workload]
    return [workload, *_weaker(workload)]


def as_recommended(workload: WorkloadProfile, answer: DurabilityAnswer | None) -> WorkloadProfile:
    """The question with flushes as far apart as its answer puts them."""
    if answer is None or not answer.weakened:
        return workload
    return _flushing(workload, answer.flush_every_writes)


def least_weak(objectives: Sequence[tuple[float, float]], as_good: float, worth: float) -> int:
    """The strongest durability whose best configuration is as good as that of any.

    Args:
        objectives: By step of the ladder: by how much preferred bounds are missed, and the least
            objective; infinite where nothing is feasible.
        as_good: Amount by which preferred bounds may be missed beyond the least that can be.
        worth: Share of the least objective that a weaker step must save.
    """
    feasible = [place for place, (_, least) in enumerate(objectives) if least < float("inf")]
    if not feasible:
        return 0
    missed = min(objectives[place][0] for place in feasible)
    near = [place for place in feasible if objectives[place][0] <= missed + as_good]
    best = min(objectives[place][1] for place in near)
    return next(place for place in near if objectives[place][1] <= best + worth * abs(best))


def durability_of(
    profile: DeviceProfile,
    asked: WorkloadProfile,
    chosen: WorkloadProfile,
    current: Row | None,
    recommended: Row,
) -> DurabilityAnswer | None:
    """What a power cut takes, today and as recommended; None for a workload that only reads.

    Args:
        profile: Of the drive.
        asked: The question as it was.
        chosen: The step of `ladder` that is recommended.
        current: Today's configuration; None where nothing was said about it.
        recommended: The configuration to use.
    """
    if asked.read_fraction == 1.0:
        return None
    every, today = (one.workload.flush_every_writes for one in (chosen, asked))
    options = [
        Weaker(
            setting=f"flush_every_writes {step or 'none'}",
            loses=_power_cut(profile, one, recommended),
            known=_known(profile, step),
        )
        for one in _weaker(asked)
        for step in [one.workload.flush_every_writes]
    ]
    return DurabilityAnswer(
        weaker_allowed=asked.sla.allow_weaker_durability,
        weakened=every != today,
        flush_every_writes=every,
        power_cut=_power_cut(profile, chosen, recommended),
        power_cut_today=None if current is None else _power_cut(profile, asked, current),
        options=[*options, *_beside_flushes(profile, asked)],
        reason=_reason(profile, asked, every),
    )


def _power_cut(profile: DeviceProfile, workload: WorkloadProfile, row: Row) -> PowerCut:
    asked, chosen = workload.workload, row.configuration
    if profile.valid_for.power_loss_protection or asked.force_unit_access:
        return PowerCut(writes=0.0, written_bytes=0.0, seconds=0.0)
    if not asked.flush_every_writes:
        return PowerCut(writes=None, written_bytes=None, seconds=None)
    lost = float(asked.flush_every_writes * chosen.jobs)
    bytes_ = lost * chosen.request_bytes
    return PowerCut(
        writes=lost, written_bytes=bytes_, seconds=bytes_ / row.host_bytes_written_per_second
    )


def _weaker(asked: WorkloadProfile) -> list[WorkloadProfile]:
    """The question with flushes further apart, and with none."""
    every = asked.workload.flush_every_writes
    if not every or asked.workload.force_unit_access:
        return []
    steps: list[int | None] = [*(every * times for times in FURTHER_APART), None]
    return [_flushing(asked, step) for step in steps]


def _flushing(asked: WorkloadProfile, every: int | None) -> WorkloadProfile:
    """The question with another distance of flushes, and without what was seen at today's."""
    stated = asked.workload.model_copy(update={"flush_every_writes": every})
    return asked.model_copy(update={"workload": stated, "observed": Observed()})


def _known(profile: DeviceProfile, step: int | None) -> str:
    if profile.flush is None:
        return "no effect, the profile has no cost of a flush"
    cost, apart = profile.flush.seconds, profile.flush.every_writes
    told = f"a flush takes {1e3 * cost.value:.3g} ms ({cost.evidence.value})"
    if step is None or apart[0] <= step <= apart[1]:
        return told
    return f"{told}; measured for {apart[0]} to {apart[1]} writes apart"


def _beside_flushes(profile: DeviceProfile, asked: WorkloadProfile) -> list[Weaker]:
    """Settings of which no profile knows an effect; the finding of one drive is named as such."""
    nothing = PowerCut(writes=None, written_bytes=None, seconds=None)
    found = []
    if asked.workload.force_unit_access:
        found.append(
            Weaker(
                setting="force_unit_access false",
                loses=nothing,
                known="no effect, the profile has no cost of it",
            )
        )
    if asked.current.filesystem == "ext4":
        found.append(
            Weaker(
                setting="mount_options commit=60",
                loses=PowerCut(writes=None, written_bytes=None, seconds=60.0),
                known="PostgreSQL under TPC-C on a Samsung 980 PRO: 15 % more transactions per "
                "joule (000, section 6.4); it is in none of the figures here",
            )
        )
    return found


def _reason(profile: DeviceProfile, asked: WorkloadProfile, every: int | None) -> str:
    today = asked.workload.flush_every_writes
    said = "untouched; flushes, forced unit access and file systems stay as they are"
    if every != today:
        now = f"a flush after every {every} writes" if every else "no flushes"
        said = f"weaker, as the SLA allows: {now}, today one after every {today}"
    elif asked.sla.allow_weaker_durability:
        said += ", for nothing that is known of weaker ones is worth it"
    else:
        said += f"; nothing weaker was considered, the SLA does not say '{ALLOW}'"
    flush = flush_of(profile, asked)
    if flush is not None and not flush.is_known:
        said += (
            f"; no bound on throughput or latency is shown to hold: the profile of "
            f"{profile.model_name} has no cost of a flush or forced write. Measure with and "
            "without (flush_every_writes in a plan) and fit"
        )
    if profile.valid_for.power_loss_protection:
        said += "; the drive's cache survives a power cut"
    return said
