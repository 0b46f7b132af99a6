"""A card as one HTML page that needs nothing else: no script, font or picture from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from importlib import resources

from iojoule.api.model_card.content import Block, Card, Picture, Points, Section, Table, Text
from iojoule.api.model_card.drawing import INK, PAPER


def to_html(card: Card) -> str:
    """The page, which is well-formed XML too."""
    style = resources.files("iojoule.api.model_card").joinpath("card.css").read_text("utf-8")
    title = f"{escape(card.title)}: model card"
    lead = "\n".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in card.lead
    )
    contents = "\n".join(
        f'<li><a href="#{_anchor(one)}">{escape(one.heading)}</a></li>' for one in card.sections
    )
    body = "\n".join(line for section in card.sections for line in _section(section))
    return f"""<!DOCTYPE html>
<html lang="en" xmlns="http://www.w3.org/1999/xhtml">
<head>
<meta charset="utf-8" />
<meta name="viewport" content="width=device-width, initial-scale=1" />
<meta name="color-scheme" content="light dark" />
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<header>
<p class="kind">Model card</p>
<h1>{escape(card.title)}</h1>
<dl>
{lead}
</dl>
<nav aria-label="Contents">
<ol>
{contents}
</ol>
</nav>
</header>
<main>
{body}
</main>
</body>
</html>
"""


def _anchor(section: Section) -> str:
    return re.sub(r"[^a-z0-9]+", "-", section.heading.lower()).strip("-")


def _section(section: Section) -> Iterator[str]:
    yield f'<section id="{_anchor(section)}">'
    yield f"<h2>{escape(section.heading)}</h2>"
    for block in section.blocks:
        yield from _block(block)
    yield "</section>"


def _block(block: Block) -> Iterator[str]:
    match block:
        case Text(words):
            yield f"<p>{_words(words)}</p>"
        case Points(items):
            yield "<ul>"
            yield from (f"<li>{_words(item)}</li>" for item in items)
            yield "</ul>"
        case Table():
            yield from _table(block)
        case Picture(_, svg, caption):
            # the page's own colours, which change in the dark
            drawn = svg.replace(INK, "currentColor").replace(PAPER, "transparent")
            yield f"<figure>\n{drawn}<figcaption>{escape(caption)}</figcaption>\n</figure>"


def _table(table: Table) -> Iterator[str]:
    # wide tables scroll on their own, also by keyboard
    yield '<div class="table" tabindex="0"><table>'
    heads = (f'<th scope="col"{_side(table, i)}>{_words(h)}</th>'
             for i, h in enumerate(table.headings))  # fmt: skip
    yield f"<thead><tr>{''.join(heads)}</tr></thead>"
    yield "<tbody>"
    for row in table.rows:
        cells = (f"<td{_side(table, i)}>{_words(cell)}</td>" for i, cell in enumerate(row))
        yield f"<tr>{''.join(cells)}</tr>"
    yield "</tbody></table></div>"


def _side(table: Table, place: int) -> str:
    return ' class="number"' if place in table.numbers else ""


def _words(text: str) -> str:
    """Escaped, with what stands between backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))
