"""Draws what was found: one SVG per question."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

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
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    with mpl.rc_context(style):
        figure = Figure(figsize=(7.0, 4.2), layout="constrained")
        axes = figure.add_subplot()
        question.draw(axes, answer.evidence, answer.estimates)
        axes.set_title(question.title, loc="left")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # dates and versions would make two pictures of the same answer differ
            figure.savefig(part, format="svg", metadata={"Date": None, "Creator": "iojoule"})
            part.replace(path)
        except OSError as error:
            raise CampaignError(f"{path}: cannot be written ({error.strerror})") from None
        finally:
            part.unlink(missing_ok=True)
