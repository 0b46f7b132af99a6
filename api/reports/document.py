"""A document of text, tables, code and drawings, and its HTML page.

The page needs nothing else and forbids itself everything but its own style, so that it cannot load
or run anything whatever stands in it. It is well-formed XML too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Literal

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from jinja2 import Template


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    words: str
    kind: Literal["text"] = "text"


@dataclass(frozen=True)
class Points:
    """A list of short statements."""

    items: tuple[str, ...]
    kind: Literal["points"] = "points"


@dataclass(frozen=True)
class Table:
    """Rows of text under headings.

    Attributes:
        headings: Of the columns.
        rows: As many cells each.
        numbers: Columns that are set to the right.
        caption: What it holds, in a sentence; empty where the section's heading says so.
        marked: Row -> what it is, as `recommended`, for rows that stand out.
    """

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: frozenset[int] = frozenset()
    caption: str = ""
    marked: tuple[tuple[int, str], ...] = ()
    kind: Literal["table"] = "table"

    @classmethod
    def of(
        cls,
        headings: Sequence[str],
        rows: Sequence[Sequence[str]],
        numbers: Sequence[int] = (),
        caption: str = "",
        marked: Sequence[tuple[int, str]] = (),
    ) -> Table:
        """A table from any sequences."""
        return cls(
            tuple(headings),
            tuple(tuple(row) for row in rows),
            frozenset(numbers),
            caption,
            tuple(marked),
        )

    def mark(self, row: int) -> str:
        """What a row is; empty where it does not stand out."""
        return dict(self.marked).get(row, "")


@dataclass(frozen=True)
class Code:
    """Text to copy as it is: a command, a request, a file.

    Attributes:
        says: What it is for.
        text: Itself.
        folded: Whether it is shown only to who asks for it.
    """

    says: str
    text: str
    folded: bool = False
    kind: Literal["code"] = "code"


@dataclass(frozen=True)
class Picture:
    """A drawing as SVG.

    Attributes:
        name: Of its file, without ending, and of its ids.
        svg: Complete SVG element with a title and a description.
        caption: What it shows, in a sentence or two.
    """

    name: str
    svg: str
    caption: str
    kind: Literal["picture"] = "picture"


Block = Text | Points | Table | Code | Picture


@dataclass(frozen=True)
class Section:
    """Blocks under a heading."""

    heading: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Document:
    """A document.

    Attributes:
        kind: What it is, as `Model card`.
        name: Of its files, without ending.
        title: What it is about.
        lead: The most important facts, as name and value.
        sections: In reading order.
        data: The same for programs, anything that JSON can hold; None for none.
    """

    kind: str
    name: str
    title: str
    lead: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    data: Any = None

    @property
    def pictures(self) -> tuple[Picture, ...]:
        """All pictures in reading order."""
        return tuple(
            block
            for section in self.sections
            for block in section.blocks
            if isinstance(block, Picture)
        )


def percent(share: float, decimals: int = 1, *, sign: bool = False) -> str:
    """A share in per cent, as in `4.2 %`; with its sign if asked for."""
    return f"{100 * share:{'+' if sign else ''}.{decimals}f} %"


INK, PAPER = "#1b1b1b", "#ffffff"
"""Colours of drawings that the page replaces by its own, which change in the dark."""

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""Content Security Policy level 3 (W3C) of every document."""


def to_html(document: Document) -> str:
    """The page."""
    style = _resource("page.css")
    return template("page.html").render(document=document, style=Markup(style), policy=POLICY)


@cache
def template(name: str) -> Template:
    """A template of this package; everything that is put into it is escaped."""
    from jinja2 import Environment, StrictUndefined  # slow to import, and few ask for a page

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"anchor": _anchor, "words": _words, "drawn": _drawn, "data": _data}
    return environment.from_string(_resource(name))


def _resource(name: str) -> str:
    return resources.files("iojoule.api.reports").joinpath(name).read_text("utf-8")


def _anchor(heading: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")


def _words(text: str) -> Markup:
    """Escaped, with what stands between backticks as code, and intervals that do not break."""
    said = re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text)))
    return Markup(re.sub(r"\[[-+\d., ]+\]", r'<span class="interval">\g<0></span>', said))


def _drawn(picture: Picture) -> Markup:
    return Markup(picture.svg.replace(INK, "currentColor").replace(PAPER, "transparent"))


def _data(value: Any) -> Markup:
    """JSON that no parser of HTML or XML takes for mark-up: what could begin any is escaped."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)
