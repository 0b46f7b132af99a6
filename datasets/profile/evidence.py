"""What each part of a profile rests on, and how far a curve that nobody measured may be off."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from iojoule.datasets.schema import Section
from iojoule.datasets.vocabulary import Evidence

Rung = Literal["datasheet", "published", "few_measurements", "campaign", "simulated"]
"""The ladder from the least to the most that can be known of a drive that is there."""

NonNegative = Annotated[float, Field(ge=0)]


class CurveDoubt(Section):
    """Standard deviations (log) of a surface's parameters, one a knot of its request sizes.

    Attributes:
        unloaded_sd: Of the drive's own unloaded latency.
        capacity_sd: Of its capacity.
        correlation: Between the two.
        sharpness_sd: Of the bend.
        host_sd: Of what an unknown host adds to a request, and of its core time.
        form_sd: Of the curve itself around what drives do.
        factor: Standard deviations on each side of a 90 % interval.
    """

    unloaded_sd: list[NonNegative]
    capacity_sd: list[NonNegative]
    correlation: list[Annotated[float, Field(ge=-1, le=1)]]
    sharpness_sd: NonNegative
    host_sd: NonNegative
    form_sd: NonNegative
    factor: Annotated[float, Field(gt=0)]


class FactUsed(Section):
    """A fact that a quantity rests on, as it was published or declared."""

    name: str
    value: float
    unit: str
    source: str


class LadderEntry(Section):
    """One quantity: what it rests on.

    Attributes:
        quantity: A quantity of the learned prior, a surface, or a part of the power law.
        rung: How high on the ladder it stands.
        evidence: What predictions from it are labelled.
        value: Centre, in `unit`; None where the quantity is a whole surface.
        relative_half_width: Half of the 90 % interval in log units.
        rows: Measurements it rests on.
        facts: Facts it rests on.
        prior_drives: Drives of the catalogue whose figures the prior of it was learned from.
        next: What to measure to narrow it.
    """

    quantity: str
    rung: Rung
    evidence: Evidence
    unit: str
    value: float | None = None
    relative_half_width: NonNegative | None = None
    rows: Annotated[int, Field(ge=0)] = 0
    facts: list[FactUsed] = Field(default_factory=list)
    prior_drives: Annotated[int, Field(ge=0)] = 0
    next: str


class Ladder(Section):
    """What a profile rests on, quantity by quantity."""

    entries: list[LadderEntry]
