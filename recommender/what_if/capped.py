"""A power cap for a while: what keeps it, what is left undone, and what catches up afterwards.

In turn: the recommendation as it is, another configuration of all drives (a power state, or less
polling), the load on fewer drives while the others rest, and less work, as much as fits. What
rests draws the profile's idle power. Work that is left undone is done afterwards in the
configuration that is recommended without a cap, at most at the rate R that this holds with the
SLA's confidence:

    t = deferred / (R - demand),    extra energy = t (P(R) - P(demand)).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from iojoule.datasets.errors import InputError
from iojoule.datasets.profile import DeviceProfile
from iojoule.recommender.answer import Row
from iojoule.recommender.estimate import Estimate
from iojoule.recommender.screen import least_watts
from iojoule.recommender.sla import confidence_scale
from iojoule.recommender.what_if.changes.demand import scaled
from iojoule.recommender.what_if.outcome import CapWhile, KeptBy, Side, serving_row
from iojoule.recommender.what_if.sharing import host_watts, power_of_all, times
from iojoule.recommender.what_if.situation import PowerCap, Situation
from iojoule.recommender.workload import Current, Scope, WorkloadProfile
from iojoule.recommender.workload_fields import with_fields

if TYPE_CHECKING:
    from iojoule.recommender.what_if.answering import Answerer

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
        told = self.answerer.recommend(self.situation, busy, self.situation.drives).current
        assert told is not None  # it is stated
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
