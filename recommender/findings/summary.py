"""How often the models agree with what was published, all in all and by kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pydantic import BaseModel, ConfigDict

from iojoule.recommender.findings.table import Row, asked_rows, counted_rows

DISPUTED_GROUP = "disputed, not counted"
"""Group of the rows of `findings.disputed`."""


class Share(BaseModel):
    """Counts of one group of rows; percentages are of `rows`, answered or not."""

    model_config = ConfigDict(frozen=True)

    group: str
    rows: int
    answered: int
    direction_right: int
    magnitude_right: int
    baseline_direction_right: int
    baseline_magnitude_right: int

    @property
    def direction_percent(self) -> float:
        """Share of right directions."""
        return 100.0 * self.direction_right / max(self.rows, 1)

    @property
    def magnitude_percent(self) -> float:
        """Share of magnitudes within the interval."""
        return 100.0 * self.magnitude_right / max(self.rows, 1)


def shares(rows: Iterable[Row]) -> list[Share]:
    """All rows that count, then by paper, by class and by evidence; last what is disputed."""
    every = list(asked_rows(rows))
    asked = list(counted_rows(every))
    kinds: Sequence[tuple[str, Callable[[Row], str]]] = (
        ("paper", lambda row: row.paper),
        ("class", lambda row: row.class_),
        ("evidence", lambda row: row.evidence or "not answered"),
    )
    found = [_share("all", asked)]
    for kind, key in kinds:
        for name in sorted({key(row) for row in asked}):
            own = [row for row in asked if key(row) == name]
            found += [_share(f"{kind} {name}", own)]
    found.append(_share(DISPUTED_GROUP, [row for row in every if row.disputed]))
    return found


def _share(group: str, rows: Sequence[Row]) -> Share:
    return Share(
        group=group,
        rows=len(rows),
        answered=sum(row.answered for row in rows),
        direction_right=sum(row.direction_right for row in rows),
        magnitude_right=sum(row.magnitude_right for row in rows),
        baseline_direction_right=sum(row.baseline_direction_right for row in rows),
        baseline_magnitude_right=sum(row.baseline_magnitude_right for row in rows),
    )
