"""What is judged: one device profile and everything that answers from it, as plain values.

Laws see answers as the JSON layout has them (dictionaries), so that they stay valid whatever the
classes behind them become.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np

from iojoule.datasets.catalogue import Drive, load_catalogue
from iojoule.datasets.errors import InputError, UnknownDeviceError
from iojoule.datasets.profile import DeviceProfile
from iojoule.datasets.schema import Conditions
from iojoule.model.evaluate.bands import EVIDENCE
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.evaluate.timeline import Phase, follow
from iojoule.model.evaluate.validity import under
from iojoule.recommender.fleet.document import Fleet
from iojoule.recommender.fleet.planner import Planner
from iojoule.recommender.recommend import Recommender
from iojoule.recommender.request import parse_workload
from iojoule.recommender.what_if.compare import Answerer
from iojoule.recommender.what_if.situation import Situation

ProfileOf = Callable[[str], DeviceProfile]
Answer = dict[str, Any]

POWER = {
    "device": "device_power_watts",
    "device_cpu": "device_cpu_power_watts",
    "system": "system_power_watts",
}
"""Scope -> field of a row."""


class UnstatedError(ValueError):
    """A workload profile as the laws presuppose it is not understood."""


@dataclass(frozen=True)
class Figure:
    """A quantity with its 90 % interval and evidence; an end may be infinite ("unbounded")."""

    value: float
    low: float
    high: float
    evidence: str

    @property
    def text(self) -> str:
        """Value and interval."""
        return f"{self.value:.4g} [{self.low:.3g}, {self.high:.3g}]"


def number(value: Any) -> float:
    """A number as answers state it: "unbounded" is infinite, None is NaN."""
    if value is None:
        return float("nan")
    return float("inf") if value == "unbounded" else float(value)


def figure(row: Mapping[str, Any] | None, name: str) -> Figure | None:
    """One estimate of a row; None where it is unknown."""
    stated = None if row is None else row.get(name)
    return None if stated is None else estimate(stated)


def estimate(stated: Mapping[str, Any]) -> Figure:
    """An estimate as an answer states it."""
    word = stated["evidence"]
    return Figure(
        number(stated["value"]),
        number(stated["low"]),
        number(stated["high"]),
        str(getattr(word, "value", word)),
    )


def value(row: Mapping[str, Any] | None, name: str) -> float:
    """The value of an estimate of a row; NaN where it is unknown."""
    found = figure(row, name)
    return float("nan") if found is None else found.value


class Served:
    """Answers of the same profile through another door; the defaults know no other door."""

    def recommend(self, profile: DeviceProfile, workload: Answer) -> Answer | None:
        """A recommendation as JSON; None where this door has none."""
        return None

    def predict(self, profile: DeviceProfile, rows: Sequence[Answer]) -> list[Answer] | None:
        """Predictions as JSON, one a row; None where this door has none."""
        return None


class Subject:
    """One profile, and what answers from it.

    Args:
        profile: The profile.
        profile_of: Finds other drives by catalogue id.
        drives: Catalogue ids of other drives.
        served: Another door to the same answers, compared where there is one.
    """

    def __init__(
        self,
        profile: DeviceProfile,
        profile_of: ProfileOf,
        drives: Sequence[str] = (),
        served: Served | None = None,
    ) -> None:
        self.profile = profile
        self.profile_of = profile_of
        self.drives = tuple(one for one in drives if one != profile.device)
        self.served = served or Served()
        self.memo: dict[Any, Any] = {}
        self._recommender: Recommender | None = None

    @property
    def device(self) -> str:
        """Id of the drive."""
        return self.profile.device

    @property
    def drive(self) -> Drive | None:
        """What the catalogue knows of the drive; None where it does not know it."""
        try:
            return load_catalogue().get(self.device)
        except UnknownDeviceError:
            return None

    def other(self, device: str) -> Subject:
        """Another drive as a subject; kept."""
        key = ("other", device)
        if key not in self.memo:
            self.memo[key] = Subject(self.profile_of(device), self.profile_of, self.drives)
        found: Subject = self.memo[key]
        return found

    def with_profile(self, **changed: Any) -> Subject:
        """The same subject with some fields of its profile set otherwise; kept."""
        key = ("changed", repr(sorted(changed.items())))
        if key not in self.memo:
            profile = self.profile.model_copy(update=changed)
            self.memo[key] = Subject(profile, self.profile_of, self.drives)
        found: Subject = self.memo[key]
        return found

    def recommend(self, workload: Mapping[str, Any]) -> Answer:
        """The recommendation for a workload profile.

        Raises:
            UnstatedError: The workload profile itself is not understood.
            IojouleError: The profile has no answer.
        """
        return self.recommender.recommend(self._parsed(workload)).model_dump()

    def today(self, workload: Mapping[str, Any]) -> Answer:
        """The row of the configuration that a workload profile states as current.

        Raises: as `recommend`.
        """
        return self.recommender.today(self._parsed(workload)).model_dump()

    @property
    def recommender(self) -> Recommender:
        """Built when first needed."""
        if self._recommender is None:
            self._recommender = Recommender.under(self.profile)
        return self._recommender

    def predict(self, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Figure]]:
        """Predictions of flat questions at full speed; unknown quantities are left out.

        Raises:
            InputError: A row cannot be.
        """
        names = {name for row in rows for name in row}
        columns = {name: [row.get(name) for row in rows] for name in names}
        found, _ = self.recommender.predictor.predict_columns(columns, len(rows))
        answered: list[dict[str, Figure]] = [{} for _ in rows]
        for name, band in found.bands.items():
            known = np.flatnonzero(~np.isnan(band.value))
            ends = [part[known].tolist() for part in (band.value, band.low, band.high)]
            words = [EVIDENCE[code] for code in band.evidence[known].tolist()]
            for place, *figures in zip(known.tolist(), *ends, words, strict=True):
                answered[place][name] = Figure(*figures)
        return answered

    def predict_under(self, conditions: Mapping[str, Any], row: Mapping[str, Any]) -> Figure:
        """IOPS of one question under stated conditions.

        Raises:
            StaleProfileError, InputError: Not under these conditions.
        """
        profile = under(self.profile, Conditions.model_validate(dict(conditions)))
        columns = {name: [cell] for name, cell in row.items()}
        found, _ = Predictor(profile).predict_columns(columns, 1)
        band = found["iops"]
        value, low, high = (float(end[0]) for end in (band.value, band.low, band.high))
        return Figure(value, low, high, found.evidence_words("iops")[0])

    def what_if(
        self, workload: Mapping[str, Any], changes: Mapping[str, Any], drives: int = 1
    ) -> Answer:
        """What some changes change; raises as `recommend`."""
        base = Situation(self.profile, self._parsed(workload), drives=drives)
        return Answerer(base, self.profile_of).ask(dict(changes)).model_dump()

    def fleet(self, fleet: Mapping[str, Any]) -> Answer:
        """The plan of a fleet of this drive."""
        planner = Planner(Fleet.model_validate(dict(fleet)), {self.device: self.profile})
        return planner.plans()[0].model_dump()

    def timeline(
        self,
        fields: Mapping[str, Any],
        phases: Sequence[tuple[str, float, float | None]],
        step_seconds: float,
    ) -> dict[str, np.ndarray[Any, Any]]:
        """A drive along phases of (write | idle, seconds, bytes a second); arrays over steps.

        Raises:
            InputError: The profile knows nothing of writes over time.
        """
        story = follow(
            self.recommender.predictor,
            dict(fields),
            [
                Phase(seconds, write=name == "write", bytes_per_second=rate)
                for name, seconds, rate in phases
            ],
            step_seconds=step_seconds,
        )
        names = (
            "seconds",
            "bytes_per_second",
            "watts",
            "watts_low",
            "watts_high",
            "cache_bytes",
            "background",
            "collecting",
        )
        return {name: np.asarray(getattr(story, name)) for name in names}

    def documents(self) -> dict[str, Any]:
        """Everything in which numbers say what they rest on: the profile, and shipped recipes."""
        found: dict[str, Any] = {"profile": json.loads(self.profile.model_dump_json())}
        for entry in files("iojoule.model").joinpath("recipes").iterdir():
            if entry.name.endswith(".toml"):
                found[f"recipe {entry.name}"] = tomllib.loads(entry.read_text(encoding="utf-8"))
        return found

    def _parsed(self, workload: Mapping[str, Any]) -> Any:
        try:
            return parse_workload(dict(workload))
        except InputError as error:
            raise UnstatedError(f"refused: {error.message}") from None
