"""Draws with matplotlib and returns SVG that is the same to the byte each time.

Text stays text, so that it can be read out and searched; each drawing has a title and a
description. Ids begin with the drawing's name, because several of them share one page.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

from iojoule.api.model_card.content import Picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, PAPER = "#1b1b1b", "#ffffff"
"""Colours that a page may replace by its own."""

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00")
"""Okabe and Ito's palette, which people with any common colour vision deficiency can tell apart."""
STYLES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
"""One a colour, for those who see none."""

STYLE: dict[str, Any] = {
    "svg.hashsalt": "iojoule",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "figure.facecolor": PAPER,
    "axes.facecolor": PAPER,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
}


@contextmanager
def panels(count: int) -> Iterator[tuple[Figure, list[Any]]]:
    """A figure with so many panels side by side, in the cards' one style."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9.0, 3.9), layout="constrained")
        axes = figure.subplots(1, count, squeeze=False)[0].tolist()
        for one in axes:
            one.grid(visible=True, which="major", color=INK, alpha=0.12, linewidth=0.7)
            one.set_axisbelow(True)
        yield figure, axes


def picture(figure: Figure, name: str, title: str, caption: str) -> Picture:
    """Turn a figure into a picture; the caption is also its description."""
    target = io.StringIO()
    # a date or a version would make two drawings of the same profile differ
    figure.savefig(target, format="svg", metadata={"Date": None, "Creator": None})
    svg = re.sub(r"^.*?<svg ", "<svg ", target.getvalue(), count=1, flags=re.DOTALL)
    svg = re.sub(r"\s*<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\b(id|xlink:href)="(#?)', rf'\1="\2{name}-', svg)
    svg = svg.replace("url(#", f"url(#{name}-")
    said = (
        f'<title id="{name}-title">{escape(title)}</title>\n'
        f'<desc id="{name}-desc">{escape(caption)}</desc>\n'
    )
    told = f'<svg role="img" aria-labelledby="{name}-title {name}-desc" '
    opening, body = svg.split(">", 1)
    svg = f"{told}{opening.removeprefix('<svg ')}>\n{said}{body.lstrip()}"
    return Picture(name, "\n".join(line.rstrip() for line in svg.splitlines()) + "\n", caption)
