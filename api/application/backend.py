"""What computes a request: this process (`local`), or a service (`remote`)."""
# ruff: noqa: D102 - `Backend` and `FlatPredictions` describe the methods

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from iojoule.api.application.devices import DeviceDetail, DeviceSummary
    from iojoule.api.application.fields import FieldTable
    from iojoule.api.application.fleet import FrontierAnswer
    from iojoule.api.application.recommend import RecommendationAnswer
    from iojoule.api.application.simulate import Plan as Runs
    from iojoule.api.application.what_if_response import WhatIfAnswer
    from iojoule.api.jobs.calibration_request import CalibrationRequest
    from iojoule.datasets.profile import DeviceProfile, SourceRecord
    from iojoule.datasets.schema import AskedConditions
    from iojoule.recommender.fleet.document import Aim, Fleet
    from iojoule.recommender.fleet.plan import Plan
    from iojoule.recommender.request import WorkloadProfile
    from iojoule.sim.result import ScenarioResult
    from iojoule.sim.sweep import LeftOut

Watch = Callable[[str, float, float], None]
"""Told of progress: the stage, how much of it is done, and of how much."""


@dataclass(frozen=True)
class Excluded:
    """A measurement that a calibration left out."""

    what: str
    reason: str


@dataclass(frozen=True)
class Calibration:
    """The profile that a calibration gave, what was assumed, and what was left out."""

    profile: DeviceProfile
    notes: Sequence[str]
    excluded: Sequence[Excluded]


class FlatPredictions(Protocol):
    """Predictions for the rows of a table of fields.

    Attributes:
        columns: Fields that the rows state.
        quantities: What is predicted.
        answered: Columns of the quantities and of the ends of their intervals.
        defaults_used: Fields that were left out at least once, and what they took.
        without_effect: Fields of the rows that change no figure.
        evidence: What throughput and latency rest on, one word a row.
        cpu_host: Whose CPU power the figures are; None: none is known.
    """

    @property
    def columns(self) -> Iterable[str]: ...
    @property
    def quantities(self) -> Sequence[str]: ...
    @property
    def answered(self) -> Sequence[str]: ...
    @property
    def defaults_used(self) -> Mapping[str, Any]: ...
    @property
    def without_effect(self) -> Sequence[str]: ...
    @property
    def evidence(self) -> Sequence[str]: ...
    @property
    def device(self) -> str: ...
    @property
    def model_name(self) -> str: ...
    @property
    def profile_version(self) -> str: ...
    @property
    def cpu_host(self) -> str | None: ...

    def values(self) -> list[list[float | None]]:
        """One list for each column of `answered`; what nothing bounds is infinite."""

    def records(self) -> Iterator[dict[str, Any]]:
        """One record a row, as documents hold it."""

    def document(self) -> dict[str, Any]:
        """All of it, with the versions of what computed it."""


class Backend(Protocol):
    """One method a use case; each raises IojouleError with the same class and code in both.

    The drive of `recommend`, `predict`, `what_if` and `calibrate` is given to the constructor.
    """

    def recommend(
        self,
        workload: WorkloadProfile,
        conditions: AskedConditions,
        settings: str | None = None,
    ) -> RecommendationAnswer:
        """Which configurations meet the SLA for the least energy."""

    def predict(self, table: FieldTable, conditions: AskedConditions) -> FlatPredictions:
        """What each row of a table does."""

    def what_if(
        self,
        workload: WorkloadProfile,
        changes: Mapping[str, Any],
        *,
        drives: int,
        conditions: AskedConditions,
        watch: Watch | None = None,
    ) -> WhatIfAnswer:
        """What changes would change."""

    def fleet_plans(self, fleet: Fleet, aim: Aim, gap: float) -> Sequence[Plan]:
        """What every drive of a fleet does under each budget."""

    def fleet_frontier(
        self,
        fleet: Fleet,
        *,
        points: int,
        least_watts: float | None,
        most_watts: float | None,
        gap: float,
        watch: Watch | None = None,
    ) -> FrontierAnswer:
        """How much demand each of so many budgets buys."""

    def devices(self) -> Sequence[DeviceSummary]:
        """Every device model, and what its profile covers."""

    def device(self, name: str) -> DeviceDetail:
        """What is known of one device model."""

    def sources(self, devices: Iterable[str]) -> list[SourceRecord]:
        """What the profiles of these device models, by which the backend computes, rest on."""

    def simulate(
        self, runs: Runs, watch: Watch | None = None
    ) -> Sequence[ScenarioResult | LeftOut]:
        """The result of each run, in order."""

    def calibrate(
        self, datasets: Sequence[Path], request: CalibrationRequest, watch: Watch | None = None
    ) -> Calibration:
        """Fit a profile, and the simulator to the same measurements."""
