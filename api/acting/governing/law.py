"""The control law of one drive: from what was seen and forecast to the setting of the next period.

Model-predictive: the settings are compared at the demand of the next period by what a profile
predicts, corrected by how measured latency and watts compare with what was predicted for the
setting in force (offset-free control). Nothing here reads a clock or a file: the same observations
give the same decisions.

In order of rank:

1. Watts. Only settings within the budget are considered; if none is, the one of least power.
2. Latency as measured. A breach switches to the safest setting at once and holds it for a while,
   which doubles with each further breach.
3. Latency as forecast. A setting that would not keep the SLA is left at once.
4. Saving. The cheapest setting that keeps the SLA with room to spare is taken when it has saved
   enough for long enough, and while switches are left.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

FEWEST_REQUESTS = 20
"""An interval with fewer says nothing about latency, unless requests wait and none is completed."""

_LEARNING_SHARE = 0.2
"""Weight of one interval in the corrections: they follow a change within about ten intervals."""
_STEP_MAX = math.log(2.0)
_LATENCY_CORRECTION_MAX = math.log(4.0)
_WATTS_CORRECTION_MAX = math.log(1.5)

_OVER_BUDGET_IN_A_ROW = 2
"""Intervals above the budget of watts before the forecast is distrusted: one may be a burst."""

_SAFETY_SWITCHES = 2
"""Switches that a saving leaves over: the way back, and one more."""


class Reason(StrEnum):
    """Why a setting is in force."""

    BEGIN = "begin"
    BREACH = "breach"
    HOLD_OFF = "hold_off"
    BUDGET = "budget"
    OVER_BUDGET = "over_budget"
    FORECAST = "forecast"
    UNREACHABLE = "sla_unreachable"
    NO_EVIDENCE = "no_evidence"
    SAVING = "saving"
    WAITING = "waiting"
    NO_SWITCHES = "no_switches_left"
    RESTING = "resting"
    THROTTLED = "throttled"
    CHEAPEST = "cheapest"


@dataclass(frozen=True)
class Rules:
    """How cautious the law is.

    Attributes:
        margin: Share of each bound of latency that a forecast leaves free; twice that for a setting
            that is to be taken for its saving.
        saving_share: Least saving of a change, of the watts that are forecast for the present one.
        saving_seconds: For so long without a break it must have been forecast.
        switches: So many at the most in `switches_seconds`; what protects SLA or budget may exceed
            it, a saving never.
        switches_seconds: See there.
        hold_off_seconds: For so long after a breach nothing is saved; twice as long after each
            further breach, up to `hold_off_max_seconds`.
        hold_off_max_seconds: See there.
    """

    margin: float = 0.1
    saving_share: float = 0.02
    saving_seconds: float = 30.0
    switches: int = 12
    switches_seconds: float = 3600.0
    hold_off_seconds: float = 60.0
    hold_off_max_seconds: float = 3600.0


@dataclass(frozen=True)
class Forecast:
    """What one setting would do at the demand of the next period.

    Attributes:
        watts: Mean power, as predicted.
        watts_bound: Its one-sided bound at the confidence of the SLA.
        latency_share: Latency over its bound, the worst of the SLA's, each at its confidence;
            infinite where the demand cannot be carried, 0 without a bound.
        capacity: Requests a second at full speed.
        known: Whether measurements of the drive carry it, not its class or data sheet.
    """

    watts: float
    watts_bound: float
    latency_share: float
    capacity: float
    known: bool = True


@dataclass(frozen=True)
class Observation:
    """What was seen in the last interval.

    Attributes:
        at_seconds: End of the interval on a clock that never goes back.
        requests: Completed in it.
        latency_share: Measured latency over its bound, the worst; None where nothing was served.
        predicted_share: What the setting in force was to have at the rate of this interval, without
            any correction; None where it is not known which one was in force.
        watts: As an instrument measured; None without one.
        predicted_watts: Likewise.
        may_sleep: Whether the drive may be asleep: a switch would wake it.
        is_throttled: Whether best-effort groups are limited: their wants are not seen.
    """

    at_seconds: float
    requests: float = 0.0
    latency_share: float | None = None
    predicted_share: float | None = None
    watts: float | None = None
    predicted_watts: float | None = None
    may_sleep: bool = False
    is_throttled: bool = False

    @property
    def is_breach(self) -> bool:
        """Whether a bound was exceeded by what can be judged."""
        share = self.latency_share
        return share is not None and share > 1.0 and not 0 < self.requests < FEWEST_REQUESTS


@dataclass(frozen=True)
class Decision:
    """What is to be in force.

    Attributes:
        setting: Which, by its place among the forecasts.
        reason: Why.
        switched: Whether it was another one before.
        keeps: Whether it is forecast to keep the SLA.
        limit_watts: Power limit that the drive itself is to enforce, because every setting is
            forecast above the budget; None for none.
        switches_left: In the present window.
        hold_off_seconds: That are still to pass.
    """

    setting: int
    reason: Reason
    switched: bool
    keeps: bool
    limit_watts: float | None
    switches_left: int
    hold_off_seconds: float


@dataclass
class Law:
    """The state of one drive's control; settings are counted from the first, fastest one.

    Args:
        rules: How cautious it is.
        setting: What is in force at the beginning.
    """

    rules: Rules
    setting: int = 0
    log_latency_correction: float = 0.0
    log_watts_correction: float = 0.0
    _cheaper_since: float | None = None
    _held_until: float = -math.inf
    _last_breach: float = -math.inf
    _hold_off: float = 0.0
    _over_budget: int = 0
    _switches: deque[float] = field(default_factory=deque)

    def decide(
        self, seen: Observation, forecasts: Sequence[Forecast], budget_watts: float | None = None
    ) -> Decision:
        """The setting for the next period.

        Args:
            seen: The last interval.
            forecasts: One for each setting.
            budget_watts: What the drive may draw; None for any.
        """
        self._learn(seen)
        self._over_budget = self._over_budget + 1 if self._is_over(seen, budget_watts) else 0
        corrected = [self._corrected(one) for one in forecasts]
        setting, reason = self._choose(seen, corrected, budget_watts)
        switched = setting != self.setting
        if switched:
            self._switches.append(seen.at_seconds)
            self.setting = setting
            self._cheaper_since = None
        chosen = corrected[setting]
        above = budget_watts is not None and chosen.watts_bound > budget_watts
        return Decision(
            setting=setting,
            reason=reason,
            switched=switched,
            keeps=chosen.latency_share <= 1.0,
            limit_watts=budget_watts if above else None,
            switches_left=self._left(seen.at_seconds),
            hold_off_seconds=max(self._held_until - seen.at_seconds, 0.0),
        )

    def _choose(
        self, seen: Observation, forecasts: Sequence[Forecast], budget: float | None
    ) -> tuple[int, Reason]:
        now, here = seen.at_seconds, self.setting
        within = [
            place
            for place, one in enumerate(forecasts)
            if budget is None or one.watts_bound <= budget
        ]
        if not within or self._over_budget >= _OVER_BUDGET_IN_A_ROW:
            least = min(range(len(forecasts)), key=lambda place: forecasts[place].watts_bound)
            return least, Reason.OVER_BUDGET
        safest = max(within, key=lambda place: (forecasts[place].capacity, -place))
        if seen.is_breach:
            self._hold(now)
            return safest, Reason.BREACH
        if now < self._held_until:
            return safest, Reason.HOLD_OFF
        keeps = [
            place for place in within if forecasts[place].latency_share <= 1.0 - self.rules.margin
        ]
        cheapest = min(keeps, key=lambda place: forecasts[place].watts, default=safest)
        if here not in within:
            return cheapest, Reason.BUDGET
        if not all(forecasts[place].known for place in (here, cheapest)):
            return safest, Reason.NO_EVIDENCE
        if here not in keeps:
            return cheapest, Reason.FORECAST if keeps else Reason.UNREACHABLE
        return self._saving(seen, forecasts, keeps)

    def _saving(
        self, seen: Observation, forecasts: Sequence[Forecast], keeps: Sequence[int]
    ) -> tuple[int, Reason]:
        """The cheapest setting, if the change is worth it."""
        here, rules = self.setting, self.rules
        roomy = [one for one in keeps if forecasts[one].latency_share <= 1.0 - 2.0 * rules.margin]
        best = min((here, *roomy), key=lambda place: forecasts[place].watts)
        saving = forecasts[here].watts - forecasts[best].watts
        if best == here or saving < rules.saving_share * forecasts[here].watts:
            self._cheaper_since = None
            return here, Reason.CHEAPEST
        if seen.may_sleep or seen.is_throttled:
            self._cheaper_since = None
            return here, Reason.RESTING if seen.may_sleep else Reason.THROTTLED
        if self._cheaper_since is None:
            self._cheaper_since = seen.at_seconds
        if seen.at_seconds - self._cheaper_since < rules.saving_seconds:
            return here, Reason.WAITING
        if self._left(seen.at_seconds) < _SAFETY_SWITCHES:
            return here, Reason.NO_SWITCHES
        return best, Reason.SAVING

    def _hold(self, now: float) -> None:
        """Begin or prolong a hold-off; a breach within one belongs to the breach before."""
        rules = self.rules
        if now >= self._held_until:
            recent = now - self._last_breach < rules.hold_off_max_seconds
            doubled = 2.0 * self._hold_off if recent else 0.0
            self._hold_off = min(max(rules.hold_off_seconds, doubled), rules.hold_off_max_seconds)
        self._held_until = now + self._hold_off
        self._last_breach = now

    def _is_over(self, seen: Observation, budget: float | None) -> bool:
        return budget is not None and seen.watts is not None and seen.watts > budget

    def _learn(self, seen: Observation) -> None:
        """Bring the corrections nearer to what was measured."""
        if seen.requests >= FEWEST_REQUESTS:
            self.log_latency_correction = _nearer(
                self.log_latency_correction,
                seen.latency_share,
                seen.predicted_share,
                _LATENCY_CORRECTION_MAX,
            )
        self.log_watts_correction = _nearer(
            self.log_watts_correction, seen.watts, seen.predicted_watts, _WATTS_CORRECTION_MAX
        )

    def _corrected(self, one: Forecast) -> Forecast:
        watts = math.exp(self.log_watts_correction)
        return Forecast(
            watts=one.watts * watts,
            watts_bound=one.watts_bound * watts,
            latency_share=one.latency_share * math.exp(self.log_latency_correction),
            capacity=one.capacity,
            known=one.known,
        )

    def _left(self, now: float) -> int:
        while self._switches and self._switches[0] <= now - self.rules.switches_seconds:
            self._switches.popleft()
        return max(self.rules.switches - len(self._switches), 0)


def _nearer(
    correction: float, measured: float | None, predicted: float | None, largest: float
) -> float:
    """The correction after one more interval; as it was where either figure is missing."""
    if not measured or not predicted or not math.isfinite(predicted):
        return correction
    step = math.log(measured / predicted) - correction
    step = _LEARNING_SHARE * min(max(step, -_STEP_MAX), _STEP_MAX)
    return min(max(correction + step, -largest), largest)


def shares(budget_watts: float, floors: Sequence[float], needs: Sequence[float]) -> list[float]:
    """Divide a budget of watts among drives.

    Args:
        budget_watts: Of all together.
        floors: Watts of each drive's setting of least power.
        needs: Watts of each drive's cheapest setting that keeps its SLA, no less than its floor.

    Returns:
        Watts of each drive; they add up to the budget. Where it covers all needs, what is over is
        divided equally; where it does not, each drive has its floor and an equal share of what it
        needs above that; where it covers no floors, it is divided in proportion to them.
    """
    over = budget_watts - sum(needs)
    if over >= 0:
        return [need + over / len(needs) for need in needs]
    above_floors = budget_watts - sum(floors)
    if above_floors <= 0:
        return [budget_watts * floor / sum(floors) for floor in floors]
    wanted = sum(needs) - sum(floors)
    return [
        floor + above_floors * (need - floor) / wanted
        for floor, need in zip(floors, needs, strict=True)
    ]
