"""A quantity as answers state it."""

from __future__ import annotations

from iojoule.datasets.schema import Section
from iojoule.datasets.vocabulary import Evidence


class Estimate(Section):
    """A quantity in the unit of its field's name, with its 90 % interval and evidence."""

    value: float
    low: float
    high: float
    evidence: Evidence
