"""Draws with matplotlib and returns SVG that is the same to the byte each time.

Text stays text, so that it can be read out and searched; each drawing has a title and a
description. Ids begin with the drawing's name, because several of them share one page.
"""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

from iojoule.api.documents.content import Picture
from iojoule.api.documents.html import INK, PAPER

if TYPE_CHECKING:
    from matplotlib.figure import Figure


COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00")
"""Okabe and Ito's palette, which people with any common colour vision deficiency can tell apart."""
STYLES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
"""One a colour, for those who see none."""

STYLE: dict[str, object] = {
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
    # looking for the best place takes seconds on a slow machine, and then warns
    "legend.loc": "upper left",
}


_ONE_AT_A_TIME = threading.Lock()
"""Matplotlib's settings are the whole process's."""


@contextmanager
def panels(count: int) -> Iterator[tuple[Figure, list[Any]]]:
    """A figure with so many panels side by side, in the cards' one style."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    style: Any = STYLE
    with _ONE_AT_A_TIME, mpl.rc_context(style):
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
    svg = re.sub(r"\s*<(metadata|style)\b.*?</\1>", "", svg, flags=re.DOTALL)
    svg = _own_ids(svg, name)
    svg = re.sub(r"\d+\.\d{3,}", lambda found: f"{float(found[0]):.2f}", svg)
    said = (
        f'<title id="{name}-title">{escape(title)}</title>\n'
        f'<desc id="{name}-desc">{escape(caption)}</desc>\n'
    )
    opening, body = svg.split(">", 1)
    svg = (
        f'<svg role="img" aria-labelledby="{name}-title {name}-desc" '
        'style="stroke-linejoin: round; stroke-linecap: butt" '
        f"{opening.removeprefix('<svg ')}>\n{said}{body.lstrip()}"
    )
    return Picture(name, "\n".join(line.strip() for line in svg.splitlines()) + "\n", caption)


def _own_ids(svg: str, name: str) -> str:
    """Keep only the ids that the drawing itself refers to, and let them begin with its name."""
    used = set(re.findall(r'(?:url\(|xlink:href=")#([^")]+)', svg))

    def kept(found: re.Match[str]) -> str:
        return f' id="{name}-{found[1]}"' if found[1] in used else ""

    svg = re.sub(r' id="([^"]+)"', kept, svg)
    return re.sub(r'(url\(|xlink:href=")#', rf"\1#{name}-", svg)
