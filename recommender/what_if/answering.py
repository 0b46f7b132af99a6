"""Answers situations and puts them side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from iojoule.datasets.profile import DeviceProfile
from iojoule.datasets.vocabulary import Evidence, Operation
from iojoule.model.prior.host import host_standing, on_host_of
from iojoule.recommender.answer import Recommendation, Row
from iojoule.recommender.candidates import useful_limit
from iojoule.recommender.estimate import Estimate
from iojoule.recommender.factors import Factors
from iojoule.recommender.recommend import Recommender
from iojoule.recommender.what_if.capped import under_cap
from iojoule.recommender.what_if.changes import changed
from iojoule.recommender.what_if.difference import differences, knobs
from iojoule.recommender.what_if.notes import notes
from iojoule.recommender.what_if.outcome import Outcome, Side, Totals, serving_row
from iojoule.recommender.what_if.shared_error import weaker
from iojoule.recommender.what_if.sharing import Serving, part_of, power_of_all, times
from iojoule.recommender.what_if.situation import ProfileOf, Situation
from iojoule.recommender.workload import Scope, WorkloadProfile
from iojoule.sim.modified_drive import UNBOUNDED, Asked, Simulating, rebuilt

POWER = {
    Scope.DEVICE: "device_power_watts",
    Scope.DEVICE_CPU: "device_cpu_power_watts",
    Scope.SYSTEM: "system_power_watts",
}
"""Scope -> field of a row that holds its power."""

LARGEST_SIMULATED_BYTES = 1 << 20
"""Ratios of larger requests are those of this size: they pass through the drive in parts of it."""


class Answerer:
    """Answers changes of one situation; what was answered once is kept.

    Another drive stands on the host of the drive to begin with. Where nobody knows what that host
    draws, two drives are compared by their own watts alone (`Outcome.compared_scope`).

    Args:
        base: How things are.
        profile_of: Finds other drives.
        simulating: How a drive that nobody built is simulated.
    """

    def __init__(
        self, base: Situation, profile_of: ProfileOf, simulating: Simulating = UNBOUNDED
    ) -> None:
        self.base = base
        self._simulating = simulating
        self._profile_of = profile_of
        self._recommenders: dict[tuple[Any, ...], tuple[DeviceProfile, Recommender]] = {}
        self._named: dict[str, DeviceProfile] = {}
        self._drives_alone: tuple[Situation, Side] | None = None
        self.base_side = self.answer(base)

    def ask(self, changes: Mapping[str, Any]) -> Outcome:
        """What the changes change.

        Args:
            changes: Field -> new value, see `recommender.what_if.changes`.

        Raises:
            InputError: A change is not what it must be, or the changed question has no answer.
        """
        situation = self.changed(changes)
        base, before = self.base, self.base_side
        host = host_standing(base.profile)
        another = situation.profile.device != base.profile.device
        if another and host != "known":
            base, before = self._of_drives_alone()
            situation = _with_scope(situation, Scope.DEVICE)
        side = before if situation == base else self.answer(situation)
        moved = knobs(before, side)
        pair = (self._serving(base, before), self._serving(situation, side))
        return Outcome(
            changes=dict(changes),
            host=host,
            compared_scope=side.answer.scope,
            base=before,
            changed=side,
            same_configuration=not moved and before.feasible == side.feasible,
            knobs=moved,
            differences=differences(before, side, pair),
            notes=notes(base, situation, side, host),
        )

    def _of_drives_alone(self) -> tuple[Situation, Side]:
        """The situation to begin with and its answer where only the drives' power counts."""
        if self._drives_alone is None:
            situation = _with_scope(self.base, Scope.DEVICE)
            side = self.base_side if situation == self.base else self.answer(situation)
            self._drives_alone = situation, side
        return self._drives_alone

    def changed(self, changes: Mapping[str, Any]) -> Situation:
        """The changed situation; raises InputError where it cannot be."""
        return changed(self.base, changes, self._profile)

    def answer(self, situation: Situation) -> Side:
        """The answer to one situation.

        Raises:
            InputError: The question has no answer, or no simulated drive stands for this one.
        """
        found = self.recommend(situation, situation.workload, situation.drives)
        row = serving_row(found)
        profile = self.recommender(situation).profile
        serving = self.serving(situation, situation.workload, row, situation.drives)
        totals = None if serving is None else totals_of(situation, serving)
        side = Side(
            drives=situation.drives,
            geometry=dict(situation.geometry),
            feasible=row is not None,
            answer=found,
            totals=totals,
            cap=None,
        )
        if situation.cap is None:
            return side
        return side.model_copy(update={"cap": under_cap(self, situation, profile, side)})

    def recommend(
        self, situation: Situation, workload: WorkloadProfile, drives: int
    ) -> Recommendation:
        """The recommendation for one of `drives` drives that share a workload."""
        recommender = self.recommender(situation)
        return recommender.recommend(part_of(workload, recommender.profile, drives), rows=1)

    def recommender(self, situation: Situation) -> Recommender:
        """The recommender of a situation's drive, built when first asked."""
        asked = asked_of(situation.workload, situation.profile) if situation.geometry else None
        key = (
            id(situation.profile), situation.preset, repr(situation.geometry), asked,
            situation.conditions,
        )  # fmt: skip
        if key not in self._recommenders:
            profile = situation.profile
            if asked is not None:
                profile = rebuilt(
                    profile, situation.preset, situation.geometry, asked, self._simulating
                )
            # with the profile kept, its id stands for it
            built = Recommender.under(profile, situation.conditions)
            self._recommenders[key] = situation.profile, built
        return self._recommenders[key][1]

    def serving(
        self, situation: Situation, workload: WorkloadProfile, row: Row | None, drives: int
    ) -> Serving | None:
        """So many drives that share a workload as a row says; None without a row."""
        if row is None:
            return None
        recommender = self.recommender(situation)
        return Serving(recommender, part_of(workload, recommender.profile, drives), row, drives)

    def _serving(self, situation: Situation, side: Side) -> Serving | None:
        row = side.row
        return self.serving(situation, situation.workload, row, situation.drives)

    def _profile(self, named: str) -> DeviceProfile:
        """Another drive on the host of the drive to begin with."""
        if named not in self._named:
            self._named[named] = on_host_of(self._profile_of(named), self.base.profile)
        return self._named[named]


def _with_scope(situation: Situation, scope: Scope) -> Situation:
    workload = situation.workload
    if workload.scope is scope:
        return situation
    return replace(situation, workload=workload.model_copy(update={"scope": scope}))


def asked_of(workload: WorkloadProfile, profile: DeviceProfile) -> Asked:
    """What must be simulated to answer a workload on a drive built otherwise."""
    stated = workload.workload
    kinds = [Operation.READ, Operation.WRITE]
    if stated.operation is not Operation.MIXED:
        kinds = [stated.operation]
    today = workload.current.request_bytes or int(profile.defaults["request_bytes"])
    useful, limit = useful_limit(workload, today)
    wanted = {useful, limit, today}
    if workload.free is not None:
        wanted |= set(workload.free.request_bytes or ())
    least, most = (min(end, LARGEST_SIMULATED_BYTES) for end in (min(wanted), max(wanted)))
    octaves = max(1, int(np.ceil(np.log2(most / least) / 2)))
    grid = {least, most, *(least << (2 * step) for step in range(octaves))}
    return Asked(
        tuple((kind, stated.pattern) for kind in kinds),
        tuple(sorted(size for size in grid if size <= most)),
    )


def totals_of(situation: Situation, serving: Serving) -> Totals:
    """What all drives of a situation do, each as its row says."""
    drives, scope, row = serving.drives, situation.workload.scope, serving.row
    profile = serving.recommender.profile
    one: Estimate | None = getattr(row, POWER[scope])
    power = None if one is None else power_of_all(serving, scope.value, one)
    device, energy, yearly = row.device_power_watts, row.joules_per_useful_gb, row.kwh_per_year
    served = times(row.throughput_bytes_per_second, drives)
    if one is not None and power is not None and drives > 1:
        energy = times(power, 1e9 / served.value)
        yearly = None if yearly is None else times(power, yearly.value / one.value)
    factors = situation.workload.factors
    grams = factors.grid_carbon_grams_per_kwh
    totals = Totals(
        throughput_bytes_per_second=served,
        capacity_bytes_per_second=times(row.capacity_bytes_per_second, drives),
        latency_mean_ns=row.latency_mean_ns,
        latency_p99_ns=row.latency_p99_ns,
        device_power_watts=None if device is None else times(device, drives),
        power_watts=power,
        joules_per_useful_gb=energy,
        kwh_per_year=yearly,
        cost_per_year=_yearly(
            row.cost_per_year, factors.electricity_price_per_kwh, factors, row, yearly, drives
        ),
        co2_kilograms_per_year=_yearly(
            row.co2_kilograms_per_year, None if grams is None else grams / 1000.0, factors, row,
            yearly, drives,
        ),
    )  # fmt: skip
    return totals if profile.rebuilt is None else _simulated(totals)


def _yearly(
    one: Estimate | None,
    per_kwh: float | None,
    factors: Factors,
    row: Row,
    kwh: Estimate | None,
    drives: int,
) -> Estimate | None:
    """Money or CO2 of all drives: their energy, and so many times the wear of one."""
    if one is None or per_kwh is None or kwh is None or row.kwh_per_year is None or drives == 1:
        return one
    rate = per_kwh * factors.overhead
    wear = drives * (one.value - rate * row.kwh_per_year.value)
    ends = {name: rate * getattr(kwh, name) + wear for name in ("value", "low", "high")}
    return one.model_copy(update=ends)


def _simulated(totals: Totals) -> Totals:
    """The same, said to rest on the simulator unless something weaker is under it."""
    told = {
        name: known.model_copy(update={"evidence": weaker(known.evidence, Evidence.SIMULATED)})
        for name in Totals.model_fields
        if (known := getattr(totals, name)) is not None
    }
    return totals.model_copy(update=told)
