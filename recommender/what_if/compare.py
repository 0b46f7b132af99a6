"""Answers situations and puts them side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.errors import InputError
from iojoule.datasets.profile import DeviceProfile
from iojoule.datasets.vocabulary import Evidence, HostStanding, Operation
from iojoule.model.evaluate.quantities import NORMAL_90
from iojoule.model.evaluate.uncertainty import Layout
from iojoule.model.prior.host import host_standing, on_host_of
from iojoule.recommender.candidates import useful_limit
from iojoule.recommender.durability import as_recommended
from iojoule.recommender.evaluate import least_watts
from iojoule.recommender.factors import Factors
from iojoule.recommender.recommend import Recommender
from iojoule.recommender.request import Current, Free, Scope, WorkloadProfile, with_fields
from iojoule.recommender.response import Estimate, Recommendation, Row
from iojoule.recommender.sla import confidence_scale
from iojoule.recommender.what_if.changes import changed, scaled
from iojoule.recommender.what_if.outcome import (
    CapWhile,
    Difference,
    KeptBy,
    Outcome,
    Side,
    Totals,
    serving_row,
)
from iojoule.recommender.what_if.sharing import (
    Serving,
    gradients_of,
    host_watts,
    part_of,
    power_of_all,
    times,
)
from iojoule.recommender.what_if.situation import PowerCap, ProfileOf, Situation
from iojoule.sim.modified_drive import UNBOUNDED, Asked, Simulating, rebuilt

HALVINGS = 12
"""Steps towards the most work that fits: it is found to a four-thousandth."""


@dataclass(frozen=True)
class _Meanwhile:
    """What is done while the cap holds; nothing where `row` is None."""

    kept_by: KeptBy
    active: int
    share: float
    row: Row | None


def under_cap(
    answerer: Answerer, situation: Situation, profile: DeviceProfile, side: Side
) -> CapWhile:
    """What happens while the situation's cap holds, and after it.

    Args:
        answerer: Recommends.
        situation: With a cap.
        profile: Of its drive, as it is built there.
        side: Its answer without the cap.

    Raises:
        InputError: The profile does not know the power that is capped.
    """
    cap = situation.cap
    assert cap is not None
    search = _Search(answerer, situation, profile, cap, side)
    found = search.meanwhile()
    scope, drives = search.scope, situation.drives
    power = None
    if found.row is not None:
        resting = (drives - found.active) * search.resting
        power = search.power_of(scaled(situation.workload, found.share), found.row, found.active)
        power = power.model_copy(
            update={name: getattr(power, name) + resting for name in ("value", "low", "high")}
        )
    served = side.answer.demand_bytes_per_second
    rate = None if served is None else served * drives
    if rate is None and side.totals is not None:
        rate = side.totals.throughput_bytes_per_second.value
    deferred = (1.0 - found.share) * (rate or 0.0) * cap.seconds
    seconds, extra = search.catch_up(deferred, rate)
    usual = search.usual_watts()
    return CapWhile(
        cap_watts=cap.watts,
        scope=scope,
        seconds=cap.seconds,
        kept_by=found.kept_by,
        active_drives=found.active,
        row=found.row,
        power_watts=power,
        served_share=found.share,
        deferred_bytes=deferred,
        joules=None if power is None else times(power, cap.seconds),
        joules_without=None if usual is None else times(usual, cap.seconds),
        catch_up_seconds=seconds,
        catch_up_joules=extra,
        least_watts=search.least,
        reason=_reason(found, search, seconds),
    )


class _Search:
    """Tries what could keep a cap."""

    def __init__(
        self,
        answerer: Answerer,
        situation: Situation,
        profile: DeviceProfile,
        cap: PowerCap,
        side: Side,
    ) -> None:
        self.answerer, self.situation, self.profile = answerer, situation, profile
        self.cap, self.side = cap, side
        self.usual_row = side.row
        self.scope: Scope = cap.scope or situation.workload.scope
        self.bound = f"{self.scope.value}_power_watts_max"
        least = least_watts(profile)[self.bound]
        if least is None:
            raise InputError(
                f"cap: the profile of {profile.model_name} knows no power of {self.scope.value}; "
                "cap the power of another scope, or measure it and fit it",
                field="cap",
            )
        host = host_watts(profile, self.scope.value)
        self.resting = least - host
        self.least = host + situation.drives * self.resting

    def meanwhile(self) -> _Meanwhile:
        """The first of what keeps the cap, or as much work as fits."""
        drives, usual = self.situation.drives, self.usual_row
        for active in range(drives, 0, -1):
            row = self._row(active, 1.0)
            if row is None:
                continue
            share = self._share(row, active)
            if active < drives:
                return _Meanwhile("fewer drives", active, share, row)
            same = usual is not None and row.configuration == usual.configuration
            return _Meanwhile("nothing to do" if same else "configuration", active, share, row)
        best = _Meanwhile("nothing", 0, 0.0, None)
        if self.situation.workload.as_fast_as_possible:
            return best
        for active in range(drives, 0, -1):
            share, found = self._most(active)
            if found is not None and share > best.share:
                best = _Meanwhile("less work", active, share, found)
        return best

    def _share(self, row: Row, active: int) -> float:
        """Share of the usual work that a configuration does; less only without a demand."""
        if self.side.totals is None or not self.situation.workload.as_fast_as_possible:
            return 1.0
        usual = self.side.totals.throughput_bytes_per_second.value
        return min(1.0, active * row.throughput_bytes_per_second.value / usual)

    def _most(self, active: int) -> tuple[float, Row | None]:
        """Most of the demand that so many drives serve within the cap."""
        low, high, found = 0.0, 1.0, None
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            row = self._row(active, middle)
            if row is None:
                high = middle
            else:
                low, found = middle, row
        return low, found

    def _row(self, active: int, share: float) -> Row | None:
        """What is recommended to each of the active drives within the cap; None if nothing is."""
        left = self.cap.watts - (self.situation.drives - active) * self.resting
        idle = self.least - (self.situation.drives - active) * self.resting
        if left <= idle:
            return None
        workload = self.situation.workload
        stated = getattr(workload.sla, self.bound)
        capped = with_fields(
            scaled(workload, share),
            {
                f"sla.{self.bound}": left if stated is None else min(left, stated),
                "sla.soft": [name for name in workload.sla.soft if name != self.bound],
            },
            "cap",
        )
        return serving_row(self.answerer.recommend(self.situation, capped, active))

    def usual_watts(self) -> Estimate | None:
        """What all drives draw without the cap."""
        row = self.usual_row
        if row is None:
            return None
        return self.power_of(self.situation.workload, row, self.situation.drives)

    def power_of(self, workload: WorkloadProfile, row: Row, drives: int) -> Estimate:
        """What so many drives draw that share a workload as a row says, in the cap's scope."""
        one: Estimate = getattr(row, f"{self.scope.value}_power_watts")
        serving = self.answerer.serving(self.situation, workload, row, drives)
        assert serving is not None
        return power_of_all(serving, self.scope.value, one)

    def catch_up(self, deferred: float, rate: float | None) -> tuple[float | None, float | None]:
        """How long what was deferred takes afterwards, and the energy beyond that of usual work."""
        row, workload = self.usual_row, self.situation.workload
        if deferred <= 0.0:
            return 0.0, 0.0
        usual = self.usual_watts()
        if row is None or rate is None or usual is None or workload.as_fast_as_possible:
            return None, None
        carried = row.capacity_bytes_per_second
        scale = confidence_scale(workload.sla.confidence)
        fastest = carried.value * (carried.low / carried.value) ** scale * self.situation.drives
        if fastest <= rate:
            return None, None
        seconds = deferred / (fastest - rate)
        chosen = {name: getattr(row.configuration, name) for name in Current.model_fields}
        busy = scaled(workload, fastest / rate).model_copy(
            update={"current": Current.model_validate(chosen)}
        )
        told = self.answerer.today(self.situation, busy, self.situation.drives)
        drawn = self.power_of(busy, told, self.situation.drives)
        return seconds, seconds * (drawn.value - usual.value)


def _reason(found: _Meanwhile, search: _Search, seconds: float | None) -> str:
    cap, drives = search.cap, search.situation.drives
    match found.kept_by:
        case "nothing to do":
            said = "what is recommended anyway keeps the cap"
        case "configuration":
            said = "another configuration keeps the cap"
        case "fewer drives":
            said = f"the load on {found.active} of {drives} drives keeps the cap, the others rest"
        case "less work":
            fits = f"{100 * found.share:.3g} % fits"
            said = f"no configuration serves all the work within the cap; {fits}"
            if found.active < drives:
                said += f", on {found.active} of {drives} drives"
        case _:
            said = "no configuration keeps the cap while it does any work"
            if cap.watts <= search.least:
                said += (
                    f": {search.least:.3g} W are drawn without any, {search.least - cap.watts:.3g} "
                    "W more; switch drives off or raise the cap"
                )
    if found.share >= 1.0:
        return said
    if seconds is None:
        return f"{said}; the rest is lost, for there is no speed to spare afterwards"
    return f"{said}; the rest is done afterwards, or lost where it cannot wait"


def notes(base: Situation, situation: Situation, side: Side, host: HostStanding) -> list[str]:
    """In the order of weight."""
    return [
        *_of_geometry(situation),
        *_of_host(base, situation, host),
        *_of_drives(base, situation),
        *_of_cost(situation),
    ]


def _of_geometry(situation: Situation) -> Iterator[str]:
    if not situation.geometry:
        return
    yield (
        "nobody measured this drive: what was predicted of the one that was measured is multiplied "
        "by what the simulator says changes (evidence: simulated), and its intervals are widened "
        "by what such ratios erred on drives that were simulated as a truth"
    )
    yield "idle power, power states' caps and mixes' interference are those of the measured drive"
    if situation.workload.read_fraction < 1.0:
        yield (
            "writes are simulated while the drive takes them without collecting garbage; how fast "
            "it collects is that of the measured drive"
        )


def _of_host(base: Situation, situation: Situation, host: HostStanding) -> Iterator[str]:
    if base.profile.device == situation.profile.device:
        return
    if host != "known":
        yield (
            f"the power of the host of {base.profile.model_name} is {host}: only the power of the "
            "drives is compared. Measure the host (iojoule measure host) and pass --host"
        )
        return
    power = base.profile.host_power
    yield (
        f"both drives stand on the host {power.host_id if power else base.profile.host.host_id}, "
        f"that of {base.profile.model_name}: its settings and its law of CPU power are the same"
    )


def _of_drives(base: Situation, situation: Situation) -> Iterator[str]:
    if situation.drives > 1 or base.drives > 1:
        yield (
            "the drives share the load evenly and stand in one host, whose processors serve all "
            "of them: its power is that of the whole rate; the answer's rows are those of one drive"
        )


def _of_cost(situation: Situation) -> Iterator[str]:
    if (
        situation.workload.factors.electricity_price_per_kwh is not None
        and situation.workload.scope is Scope.DEVICE
    ):
        yield "cost is that of the drives' energy alone; a scope of device_cpu adds the processors"


Floats = NDArray[np.float64]

OF_HOST = ("cpu", "system")
"""Blocks of parameters that belong to the host."""


def power_change(
    before: Serving,
    after: Serving,
    scope: str,
    watts: tuple[Estimate, Estimate],
    weights: tuple[float, float] = (1.0, 1.0),
) -> Estimate:
    """After less before, with its 90 % interval.

    Args:
        before: How things are.
        after: How they would be.
        scope: Whose power: device, device_cpu or system.
        watts: Power of all drives before and after.
        weights: What each is multiplied by, such as hours times a price.
    """
    base, changed = watts
    value = weights[1] * changed.value - weights[0] * base.value
    same = before.recommender is after.recommender
    same &= before.row.configuration == after.row.configuration
    names = _shared(before.recommender.layout, after.recommender.layout)
    covariance = _block(before.recommender.layout, names)
    one, other = _gradient(before, scope, names), _gradient(after, scope, names)
    own = [
        weight * np.sqrt(max(_sd(told) ** 2 - _variance(gradient, covariance), 0.0))
        for weight, told, gradient in zip(weights, watts, (one, other), strict=True)
    ]
    variance = (own[1] - own[0]) ** 2 if same else own[0] ** 2 + own[1] ** 2
    variance += _variance(weights[1] * other - weights[0] * one, covariance)
    half = NORMAL_90 * float(np.sqrt(variance))
    evidence = weaker(base.evidence, changed.evidence)
    return Estimate(value=value, low=value - half, high=value + half, evidence=evidence)


def weaker(one: Evidence, other: Evidence) -> Evidence:
    """What rests on both; what was simulated says so, although some evidence is weaker."""
    guessed = {Evidence.DATASHEET, Evidence.ASSUMED} & {one, other}
    if Evidence.SIMULATED in (one, other) and not guessed:
        return Evidence.SIMULATED
    return max((one, other), key=list(Evidence).index)


def _sd(told: Estimate) -> float:
    return 0.5 * (told.high - told.low) / NORMAL_90


def _shared(one: Layout, other: Layout) -> list[str]:
    """Blocks of parameters that two profiles have in common."""
    if one.profile.device == other.profile.device:
        return list(one.at)
    if one.profile.host_power is not None and one.profile.host_power == other.profile.host_power:
        return list(OF_HOST)
    return []


def _places(layout: Layout, names: list[str]) -> NDArray[np.intp]:
    ranges = [np.arange(layout.at[name].start, layout.at[name].stop) for name in names]
    return np.concatenate([np.zeros(0, dtype=np.intp), *ranges]).astype(np.intp)


def _block(layout: Layout, names: list[str]) -> Floats:
    places = _places(layout, names)
    return layout.covariance[np.ix_(places, places)]


def _variance(gradient: Floats, covariance: Floats) -> float:
    return max(float(gradient @ covariance @ gradient), 0.0)


def _gradient(serving: Serving, scope: str, names: list[str]) -> Floats:
    """Gradient of the power of all drives by the shared parameters."""
    places = _places(serving.recommender.layout, names)
    return np.asarray(gradients_of(serving)[scope].common[0][places])


OF_POWER = (
    "device_power_watts",
    "power_watts",
    "kwh_per_year",
    "cost_per_year",
    "co2_kilograms_per_year",
)
"""What is power, or follows from it by what is known; so does the energy of work that is held."""

OF_SCOPE = frozenset({*OF_POWER, "joules_per_useful_gb"} - {"device_power_watts"})
"""What counts the energy of a scope: that of another scope is no more and no less of it."""


def knobs(base: Side, changed: Side) -> dict[str, tuple[Any, Any]]:
    """What the two sides set otherwise; nothing where no configuration serves one of them."""
    one, other = base.row, changed.row
    if one is None or other is None:
        return {}
    pairs = {
        name: (getattr(one.configuration, name), getattr(other.configuration, name))
        for name in Free.model_fields
    }
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def differences(
    base: Side, changed: Side, serving: tuple[Serving | None, Serving | None]
) -> list[Difference]:
    """By quantity, of what both sides know; `serving` says who stands behind their rows."""
    before, after = serving
    if base.totals is None or changed.totals is None or before is None or after is None:
        return []
    found = []
    another_scope = base.answer.scope is not changed.answer.scope
    for name in Totals.model_fields:
        one, other = getattr(base.totals, name), getattr(changed.totals, name)
        if one is None or other is None or (another_scope and name in OF_SCOPE):
            continue
        power = _of_power(name, base, changed)
        if one == other:
            change = one.model_copy(update=dict.fromkeys(("value", "low", "high"), 0.0))
        elif power is not None and power[1] == power[2]:
            change = _together(one, other)
        elif power is not None:
            scope, *watts = power
            weights = (_slope(one, watts[0]), _slope(other, watts[1]))
            change = power_change(before, after, scope, (watts[0], watts[1]), weights)
            half, value = change.high - change.value, other.value - one.value
            ends = {"value": value, "low": value - half, "high": value + half}
            change = change.model_copy(update=ends)  # what is known for sure, as wear, comes on top
        else:
            change = _apart(one, other)
        found.append(_difference(name, one, other, change))
    return found


def _of_power(name: str, base: Side, changed: Side) -> tuple[str, Estimate, Estimate] | None:
    """The power that a quantity is a multiple of: its scope, before and after; else None."""
    if base.totals is None or changed.totals is None:
        return None
    held = base.answer.mode == changed.answer.mode == "equal_work"
    if name not in OF_POWER and not (name == "joules_per_useful_gb" and held):
        return None
    scope, field = (
        ("device", name)
        if name == "device_power_watts"
        else (base.answer.scope.value, "power_watts")
    )
    one, other = getattr(base.totals, field), getattr(changed.totals, field)
    return None if one is None or other is None else (scope, one, other)


def _slope(told: Estimate, watts: Estimate) -> float:
    """By how much a quantity grows for a watt."""
    spread = watts.high - watts.low
    return (told.high - told.low) / spread if spread > 0 else told.value / watts.value


def _together(one: Estimate, other: Estimate) -> Estimate:
    """The change where the two err by one and the same: end less end."""
    ends = sorted((other.low - one.low, other.high - one.high))
    value = other.value - one.value
    return one.model_copy(update={"value": value, "low": ends[0], "high": ends[1]})


def _apart(one: Estimate, other: Estimate) -> Estimate:
    """The change where the two err apart: the ends' distances join in quadrature."""
    value = other.value - one.value
    down = ((other.value - other.low) ** 2 + (one.high - one.value) ** 2) ** 0.5
    up = ((other.high - other.value) ** 2 + (one.value - one.low) ** 2) ** 0.5
    evidence = weaker(one.evidence, other.evidence)
    return Estimate(value=value, low=value - down, high=value + up, evidence=evidence)


def _difference(name: str, one: Estimate, other: Estimate, change: Estimate) -> Difference:
    return Difference(
        quantity=name,
        base=one,
        changed=other,
        change=change,
        change_percent=100.0 * change.value / one.value if one.value else 0.0,
        certain=change.low > 0 or change.high < 0,
    )


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
        differ = differences(before, side, pair)
        told = {each.quantity for each in differ}
        alone = "device_power_watts" in told and "power_watts" not in told
        same = side.answer.scope is before.answer.scope and not alone
        return Outcome(
            changes=dict(changes),
            host=host,
            compared_scope=side.answer.scope if same else Scope.DEVICE,
            base=before,
            changed=side,
            same_configuration=not moved and before.feasible == side.feasible,
            knobs=moved,
            differences=differ,
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
        workload = as_recommended(situation.workload, found.durability)
        serving = self.serving(situation, workload, row, situation.drives)
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

    def today(self, situation: Situation, workload: WorkloadProfile, drives: int) -> Row:
        """What one of `drives` drives that share a workload does as it is configured."""
        recommender = self.recommender(situation)
        return recommender.today(part_of(workload, recommender.profile, drives))

    def recommender(self, situation: Situation) -> Recommender:
        """The recommender of a situation's drive, built when first asked."""
        asked = asked_of(situation.workload, situation.profile) if situation.geometry else None
        key = (
            id(situation.profile),
            situation.preset,
            repr(situation.geometry),
            asked,
            situation.conditions,
        )
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
        recommender = self.recommender(situation).with_limits_of(workload)
        return Serving(recommender, part_of(workload, recommender.profile, drives), row, drives)

    def _serving(self, situation: Situation, side: Side) -> Serving | None:
        workload = as_recommended(situation.workload, side.answer.durability)
        return self.serving(situation, workload, side.row, situation.drives)

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
            row.co2_kilograms_per_year,
            None if grams is None else grams / 1000.0,
            factors,
            row,
            yearly,
            drives,
        ),
    )
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
