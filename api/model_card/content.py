"""What a model card consists of, before it is written as Markdown or HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    words: str


@dataclass(frozen=True)
class Points:
    """A list of short statements."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """Rows of text under headings; columns of `numbers` are set to the right."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: frozenset[int] = frozenset()

    @classmethod
    def of(
        cls, headings: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int] = ()
    ) -> Table:
        """A table from any sequences."""
        return cls(tuple(headings), tuple(tuple(row) for row in rows), frozenset(numbers))


@dataclass(frozen=True)
class Picture:
    """A drawing as SVG.

    Attributes:
        name: Of its file, without ending, and of its ids.
        svg: Complete SVG document with a title and a description.
        caption: What it shows, in a sentence or two.
    """

    name: str
    svg: str
    caption: str


Block = Text | Points | Table | Picture


@dataclass(frozen=True)
class Section:
    """Blocks under a heading."""

    heading: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Card:
    """A model card.

    Attributes:
        name: Of its files, without ending.
        title: The drive.
        lead: The most important facts, as name and value.
        sections: In reading order.
    """

    name: str
    title: str
    lead: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]

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
