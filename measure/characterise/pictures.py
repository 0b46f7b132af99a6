"""Draws what was found: one SVG per question."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from iojoule.datasets.atomic import write_atomically
from iojoule.datasets.characteristics import Answer
from iojoule.measure.characterise.question import Question
from iojoule.measure.errors import CampaignError


def draw(question: Question, answer: Answer, path: Path) -> None:
    """Draw an answer.

    Raises:
        CampaignError: The file cannot be written; nothing half written stays.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    style: Any = {
        "svg.hashsalt": "iojoule",
        "svg.fonttype": "path",
        "font.size": 10,
        "axes.spines.top": False,
    }
    with mpl.rc_context(style):
        figure = Figure(figsize=(7.0, 4.2), layout="constrained")
        axes = figure.add_subplot()
        question.draw(axes, answer.evidence, answer.estimates)
        axes.set_title(question.title, loc="left")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # dates and versions would make two pictures of the same answer differ
            metadata = {"Date": None, "Creator": "iojoule"}
            write_atomically(path, lambda at: figure.savefig(at, format="svg", metadata=metadata))
        except OSError as error:
            raise CampaignError(f"{path}: cannot be written ({error.strerror})") from None
