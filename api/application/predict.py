"""Predictions for flat questions, as columns in the order of `iojoule predict`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from iojoule import __version__
from iojoule.api.application.fields import Where, check_names, placed, read_columns
from iojoule.api.application.predictors import Predictors
from iojoule.datasets.errors import InputError
from iojoule.datasets.profile import DeviceProfile
from iojoule.datasets.vocabulary import documented
from iojoule.model.evaluate.demanded import FIELDS as DEMANDED
from iojoule.model.evaluate.demanded import USEFUL
from iojoule.model.evaluate.frame import USED, used_columns
from iojoule.model.evaluate.prediction import Prediction
from iojoule.model.evaluate.quantities import GAP_QUANTITIES, QUANTITIES, with_ends
from iojoule.model.evaluate.validity import FIELDS

EVIDENCE = "evidence"


@dataclass(frozen=True)
class Answers:
    """Predictions for n questions.

    Attributes:
        profile: What answered.
        columns: The fields of the questions and their values, None = left out.
        prediction: Bands by quantity.
        quantities: Those that were asked for.
        defaults_used: Fields that were left out at least once, and what they took.
        without_effect: Fields of the questions that change no figure.
    """

    profile: DeviceProfile
    columns: dict[str, list[Any]]
    prediction: Prediction
    quantities: tuple[str, ...]
    defaults_used: dict[str, Any]
    without_effect: list[str]

    @property
    def answered(self) -> tuple[str, ...]:
        """Predicted columns."""
        return with_ends(self.quantities)

    def values(self) -> list[list[float | None]]:
        """One list per column of `answered`, None where the profile does not know."""
        found = []
        for name in self.quantities:
            band = self.prediction[name]
            for ends in (band.value, band.low, band.high):
                missing = np.isnan(ends)
                listed: list[float | None] = ends.tolist()
                if missing.any():
                    listed = [
                        None if gone else value for value, gone in zip(listed, missing, strict=True)
                    ]
                found.append(listed)
        return found

    def records(self) -> Iterator[dict[str, Any]]:
        """One record per question: its fields, the answered, and the evidence, also by quantity."""
        asked = list(self.columns)
        rows = zip(
            zip(*self.columns.values(), strict=True) if asked else [()] * len(self.evidence),
            zip(*self.values(), strict=True),
            self.evidence,
            zip(*(self.prediction.evidence_words(name) for name in self.quantities), strict=True),
            strict=True,
        )
        for cells, answered, evidence, by_quantity in rows:
            record = dict(zip(asked, cells, strict=True))
            record.update(
                (name, None if value is None else documented(value))
                for name, value in zip(self.answered, answered, strict=True)
            )
            record[EVIDENCE] = evidence
            record["evidence_by_quantity"] = {
                name: word
                for name, word in zip(self.quantities, by_quantity, strict=True)
                if record[name] is not None
            }
            yield record

    def document(self) -> dict[str, Any]:
        """The answers as one document, with the versions of all that answered."""
        return {
            "device": self.profile.device,
            "profile_version": self.profile.profile_version,
            "iojoule_version": __version__,
            "defaults_used": self.defaults_used,
            "without_effect": self.without_effect,
            "predictions": list(self.records()),
        }

    @property
    def device(self) -> str:
        """Device model of the profile."""
        return self.profile.device

    @property
    def model_name(self) -> str:
        """Its name, for people."""
        return self.profile.model_name

    @property
    def profile_version(self) -> str:
        """Version of the profile."""
        return self.profile.profile_version

    @property
    def cpu_host(self) -> str | None:
        """Whose CPU power the figures are; None: none is known."""
        whose = "your host" if self.profile.host.calibrated_apart else "the reference host"
        power = self.profile.host_power
        return None if power is None else f"{whose} {power.host_id}"

    @property
    def evidence(self) -> list[str]:
        """What throughput and latency rest on, one word a question."""
        return self.prediction.evidence_words()


def ask(
    predictors: Predictors,
    names: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    where: Where,
    place: str,
    gaps: bool = False,
) -> Answers:
    """Predict one row per question.

    Args:
        predictors: Of the device profile that answers.
        names: Fields of the questions, any of workload, state, configuration and conditions.
        rows: One cell a field; None and "" mean left out.
        where: Names row i, counted from 0, in messages.
        place: Names the whole in messages.
        gaps: Answer what gaps and writes leave behind (`GAP_QUANTITIES`) as well.

    Raises:
        InputError: An unknown field, an impossible value or combination, or a power state or
            conditions that the drive does not have; the message names row and field.
    """
    check_names(names, place, (*with_ends((*QUANTITIES, *GAP_QUANTITIES)), EVIDENCE))
    quantities = (*QUANTITIES, *GAP_QUANTITIES) if gaps else QUANTITIES
    profile = predictors.profile
    columns = read_columns(names, rows, profile, where)
    try:
        prediction, used = predictors.predict_columns(
            {
                name: values
                for name, values in columns.items()
                if name in (*USED, *DEMANDED, *USEFUL)
            },
            {name: values for name, values in columns.items() if name in FIELDS},
            len(rows),
            quantities,
        )
    except InputError as error:
        raise placed(error, where) from None
    known = [*used_columns(profile), *FIELDS, *DEMANDED]
    if any(name in columns for name in DEMANDED):
        known += USEFUL
    return Answers(
        profile=profile,
        columns=columns,
        prediction=prediction,
        quantities=quantities,
        defaults_used=used,
        without_effect=[name for name in columns if name not in known],
    )
