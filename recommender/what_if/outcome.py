"""The answer to what if: pydantic models that go to JSON as they are. Units are in the names."""

from __future__ import annotations

from typing import Any, Literal

from iojoule.datasets.schema import Section
from iojoule.datasets.vocabulary import HostStanding
from iojoule.recommender.request import Scope
from iojoule.recommender.response import Estimate, Recommendation, Row

OUTCOME_VERSION = 2
"""Version of the outcome's JSON layout."""


class Totals(Section):
    """What all drives do in the recommended configuration; None where nobody knows.

    Attributes:
        throughput_bytes_per_second: Useful bytes served.
        capacity_bytes_per_second: Useful bytes that they could serve at full speed.
        latency_mean_ns: While serving; likewise the 99th percentile.
        device_power_watts: Mean power of the drives.
        power_watts: Mean power of the question's scope.
        joules_per_useful_gb: Of the scope, for 10^9 useful bytes.
        kwh_per_year: Of the scope, for a year (8766 h) of this work.
        cost_per_year: Of that year by the workload profile's factors; CO2 likewise.
    """

    throughput_bytes_per_second: Estimate
    capacity_bytes_per_second: Estimate
    latency_mean_ns: Estimate
    latency_p99_ns: Estimate | None
    device_power_watts: Estimate | None
    power_watts: Estimate | None
    joules_per_useful_gb: Estimate | None
    kwh_per_year: Estimate | None
    cost_per_year: Estimate | None
    co2_kilograms_per_year: Estimate | None


KeptBy = Literal["nothing to do", "configuration", "fewer drives", "less work", "nothing"]


class CapWhile(Section):
    """A power cap for a while: what is done meanwhile, and after it.

    Attributes:
        cap_watts: The most that may be drawn, in `scope`; kept with the SLA's confidence.
        seconds: For how long.
        kept_by: What keeps it: the recommended configuration as it is; another configuration (such
            as a power state); load on fewer drives; less work; or nothing.
        active_drives: Drives that serve; the others rest.
        row: One serving drive meanwhile; None where nothing is served.
        power_watts: Of all drives meanwhile.
        served_share: Share of the work that is served.
        deferred_bytes: Useful bytes that are not.
        joules: Energy while it holds; `joules_without` without a cap.
        catch_up_seconds: How long the deferred work takes afterwards, at the speed that the SLA
            allows; None where there is no speed to spare, so that what cannot wait is lost.
        catch_up_joules: Energy that this takes beyond that of the usual work.
        least_watts: What is drawn without any work.
        reason: All this in words.
    """

    cap_watts: float
    scope: Scope
    seconds: float
    kept_by: KeptBy
    active_drives: int
    row: Row | None
    power_watts: Estimate | None
    served_share: float
    deferred_bytes: float
    joules: Estimate | None
    joules_without: Estimate | None
    catch_up_seconds: float | None
    catch_up_joules: float | None
    least_watts: float | None
    reason: str


def serving_row(found: Recommendation) -> Row | None:
    """The configuration that serves: what is recommended, else today's where it keeps the SLA.

    Without either it is the first of the Pareto set that keeps the SLA; None where nothing does.
    """
    rows = (found.recommended, found.current, *found.pareto)
    return next((row for row in rows if row is not None and row.meets_sla), found.recommended)


class Side(Section):
    """The answer to one situation.

    Attributes:
        drives: How many share the load.
        geometry: Fields of the simulated drive that are set otherwise.
        feasible: Whether some configuration holds demand and SLA.
        answer: The recommendation for one drive's part of the load; of its Pareto set one row.
        totals: All drives together; None where nothing is feasible.
        cap: What a power cap does.
    """

    drives: int
    geometry: dict[str, Any]
    feasible: bool
    answer: Recommendation
    totals: Totals | None
    cap: CapWhile | None

    @property
    def row(self) -> Row | None:
        """The configuration that serves, of one drive (`serving_row`)."""
        return serving_row(self.answer)


class Difference(Section):
    """One quantity before and after.

    Attributes:
        quantity: Field of `Totals`.
        base: Before; `changed` after.
        change: After less before, with its 90 % interval.
        change_percent: Of the value before.
        certain: Whether the interval of the change excludes zero.
    """

    quantity: str
    base: Estimate
    changed: Estimate
    change: Estimate
    change_percent: float
    certain: bool


class Outcome(Section):
    """What changes if something changes.

    Attributes:
        outcome_version: Version of this layout.
        changes: What was changed.
        host: What the power of the host rests on, which both sides share: somebody measured or
            published it, it is assumed, or unknown.
        compared_scope: Whose power is compared. Where the scope changes or its power is not known,
            or the drive changes and the host's power is not known, it is that of the drives alone,
            whatever the workload profile asks.
        base: The answer as things are; `changed` as they would be.
        same_configuration: Whether the same configuration is recommended.
        knobs: Knob -> its setting in the base and in the changed recommendation, where they differ.
        differences: By quantity.
        notes: What a reader has to know before acting on it.
    """

    outcome_version: int = OUTCOME_VERSION
    changes: dict[str, Any]
    host: HostStanding
    compared_scope: Scope
    base: Side
    changed: Side
    same_configuration: bool
    knobs: dict[str, tuple[Any, Any]]
    differences: list[Difference]
    notes: list[str]
