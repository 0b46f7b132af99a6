"""Predictors of one profile under the conditions that questions state."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from iojoule.datasets.errors import InputError
from iojoule.datasets.profile import DeviceProfile
from iojoule.datasets.schema import AskedConditions, Conditions
from iojoule.model.evaluate import demanded
from iojoule.model.evaluate.columns import check_demand
from iojoule.model.evaluate.equal_work import Demand
from iojoule.model.evaluate.frame import Frame, make_frame
from iojoule.model.evaluate.power_limit import for_questions
from iojoule.model.evaluate.prediction import Prediction, joined
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.evaluate.quantities import QUANTITIES
from iojoule.model.evaluate.validity import FIELDS, under


class Predictors:
    """The predictor of a profile for each combination of conditions, built when first asked.

    Args:
        profile: What answers.
        conditions: Those of every question, where it does not state its own.
    """

    def __init__(self, profile: DeviceProfile, conditions: Conditions | None = None) -> None:
        self.profile = profile
        said = (conditions or Conditions()).model_dump(exclude_none=True)
        self.conditions = AskedConditions.model_validate(said)
        self._built: dict[tuple[Any, ...], Predictor] = {}

    def under(self, stated: Mapping[str, Any]) -> Predictor:
        """The predictor where some conditions are stated.

        Raises:
            InputError: The drive cannot be under a condition; names it.
        """
        known = {name: value for name, value in stated.items() if value is not None}
        key = tuple(known.get(name) for name in FIELDS)
        if key not in self._built:
            asked = self.conditions.model_copy(update=known)
            self._built[key] = Predictor(under(self.profile, asked))
        return self._built[key]

    def with_limits_of(self, columns: Mapping[str, Sequence[Any]], rows: int) -> Predictors:
        """These, or those of the drive under the power limits that rows state.

        Raises:
            InputError: The drive takes no such limit; the message starts with the row.
        """
        limited = for_questions(self.profile, columns, rows)
        return self if limited is self.profile else Predictors(limited, self.conditions)

    def predict_columns(
        self,
        columns: Mapping[str, Sequence[Any]],
        conditions: Mapping[str, Sequence[Any]],
        rows: int,
        only: Collection[str] = QUANTITIES,
    ) -> tuple[Prediction, dict[str, Any]]:
        """Predict rows, each under its own conditions; as `Predictor.predict` of `only`.

        Raises:
            InputError: As above; the message starts with the row.
        """
        limited = self.with_limits_of(columns, rows)
        if limited is not self:
            return limited.predict_columns(columns, conditions, rows, only)
        frame, used = make_frame(self.profile, columns, rows)
        asked = demanded.demands(frame, columns)
        if not conditions:
            predictor = self.under({})
            _check_demands(predictor.profile, frame, columns, asked, range(rows))
            return _answered(predictor, frame, asked, only), used
        groups: dict[tuple[Any, ...], list[int]] = {}
        for row, cells in enumerate(zip(*conditions.values(), strict=True)):
            groups.setdefault(cells, []).append(row)
        predictors = []
        for cells, places in groups.items():
            try:
                predictors.append(self.under(dict(zip(conditions, cells, strict=True))))
            except InputError as error:
                raise InputError(
                    f"row {places[0] + 1}: {error.message}", field=error.field
                ) from None
            _check_demands(predictors[-1].profile, frame, columns, asked, places)
        parts = (
            (places, _answered(one, frame.take(places), [asked[row] for row in places], only))
            for one, places in zip(predictors, groups.values(), strict=True)
        )
        return joined(parts, rows), used


def _check_demands(
    profile: DeviceProfile,
    frame: Frame,
    columns: Mapping[str, Sequence[Any]],
    asked: Sequence[Demand | None],
    places: Iterable[int],
) -> None:
    """Refuse demands above the drive's link; the message starts with the row."""
    for row in places:
        demand = asked[row]
        if demand is None or demand.bytes_per_second is None:
            continue
        stated = (name for name in demanded.FIELDS if name in columns)
        field = next(name for name in stated if columns[name][row] is not None)
        try:
            check_demand(profile, field, demand.bytes_per_second, float(frame.read_fraction[row]))
        except InputError as error:
            raise InputError(f"row {row + 1}: {error.message}", field=error.field) from None


def _answered(
    predictor: Predictor, frame: Frame, asked: Sequence[Demand | None], only: Collection[str]
) -> Prediction:
    """At full speed, or at the demand of rows that state one."""
    found = predictor.predict(frame, only=only)
    if all(demand is None for demand in asked):
        return found
    return demanded.at_demands(predictor, frame, found, asked)
