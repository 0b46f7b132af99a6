"""What a document consists of, before it is written as HTML or Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal


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
