"""Published findings that a profile was judged by, in short."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ValidationError

from iojoule.api.documents.content import Points, Section, Text
from iojoule.datasets.errors import InputError
from iojoule.datasets.schema import validation_error


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


class _Verdict(BaseModel):
    """What is needed of one row of `iojoule validate findings -o json`."""

    fact_id: str
    device: str
    asked: bool
    answered: bool
    direction_right: bool
    magnitude_right: bool
    quantity: str
    published_text: str
    predicted_text: str


class _Verdicts(BaseModel):
    findings: list[_Verdict]


def read_findings(path: Path, device: str) -> FindingsSummary:
    """Sum up what `iojoule validate findings -o json` said of one drive.

    Raises:
        InputError: The file cannot be read, or holds something else.
    """
    try:
        rows = _Verdicts.model_validate_json(path.read_bytes()).findings
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except ValidationError as error:
        raise validation_error(error, f"{path} (`iojoule validate findings -o json`)") from None
    own = [row for row in rows if row.asked and row.device == device]
    known = [row for row in own if row.answered]
    missed = tuple(
        f"{row.fact_id} {row.quantity}: published {row.published_text}, "
        f"predicted {row.predicted_text}"
        for row in known
        if not (row.direction_right and row.magnitude_right)
    )
    return FindingsSummary(
        judged=len(known),
        direction_right=sum(row.direction_right for row in known),
        magnitude_inside=sum(row.magnitude_right for row in known),
        unanswered=len(own) - len(known),
        missed=missed,
        how="Each was judged by `iojoule validate findings` with the profile built without it.",
    )


def findings_section(summary: FindingsSummary) -> Section:
    """The section of the card."""
    said = Text(
        f"Of {summary.judged} published findings that this profile answers it has the direction of "
        f"{summary.direction_right} right, and the published value of {summary.magnitude_inside} "
        f"inside its 90 % interval; {summary.unanswered} it does not answer. {summary.how}"
    )
    blocks = (said, Text("Missed:"), Points(summary.missed)) if summary.missed else (said,)
    return Section("Published findings reproduced", blocks)
