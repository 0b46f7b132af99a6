"""Published findings that a profile was judged by, in short."""

from __future__ import annotations

from dataclasses import dataclass

from iojoule.api.model_card.content import Points, Section, Text


@dataclass(frozen=True)
class FindingsSummary:
    """How many published findings the profile reproduces.

    Attributes:
        judged: Findings that the profile answers.
        direction_right: Of these, those whose direction is right.
        magnitude_inside: Of these, those whose published value lies inside the interval.
        unanswered: Findings of this drive that it does not answer.
        missed: Those that it gets wrong, in words.
        how: How they were judged, for instance the command.
    """

    judged: int
    direction_right: int
    magnitude_inside: int
    unanswered: int
    missed: tuple[str, ...]
    how: str


def findings_section(summary: FindingsSummary) -> Section:
    """The section of the card."""
    said = Text(
        f"Of {summary.judged} published findings that this profile answers it has the direction of "
        f"{summary.direction_right} right, and the published value of {summary.magnitude_inside} "
        f"inside its 90 % interval; {summary.unanswered} it does not answer. {summary.how}"
    )
    blocks = (said, Text("Missed:"), Points(summary.missed)) if summary.missed else (said,)
    return Section("Published findings reproduced", blocks)
