"""A card as Markdown; drawings are files beside it."""

from __future__ import annotations

from collections.abc import Iterator

from iojoule.api.documents.content import Block, Code, Document, Picture, Points, Table, Text


def to_markdown(card: Document) -> str:
    """The text of the card; a drawing is referred to as NAME.svg."""
    lines = [f"# {_text(card.title)}: model card", ""]
    lines += _table(Table.of(("", ""), card.lead))
    for section in card.sections:
        lines += [f"## {_text(section.heading)}", ""]
        for block in section.blocks:
            lines += _block(block)
    return "\n".join(lines).rstrip() + "\n"


def _block(block: Block) -> Iterator[str]:
    match block:
        case Text(words):
            yield _text(words)
        case Points(items):
            yield from (f"* {_text(item)}" for item in items)
        case Table():
            yield from _table(block)
            return
        case Code(says, text):
            yield from (_text(says), "", *(f"    {line}" for line in text.splitlines()))
        case Picture(name, _, caption):
            yield f"![{_text(caption)}]({name}.svg)"
    yield ""


def _table(table: Table) -> Iterator[str]:
    yield f"| {' | '.join(_cell(one) for one in table.headings)} |"
    rules = ("---:" if place in table.numbers else "---" for place in range(len(table.headings)))
    yield f"| {' | '.join(rules)} |"
    for row in table.rows:
        yield f"| {' | '.join(_cell(one) for one in row)} |"
    yield ""


def _cell(text: str) -> str:
    return _text(text).replace("|", "\\|")


def _text(words: str) -> str:
    """Words as they are: what could be read as mark-up is escaped, but for `code`."""
    pieces = " ".join(words.split()).split("`")
    plain = len(pieces) % 2 == 0  # a lone backtick quotes nothing
    for place, piece in enumerate(pieces):
        if plain or place % 2 == 0:
            for sign in ("\\", "*", "_", "[", "]", "<", ">", "#", "~"):
                piece = piece.replace(sign, f"\\{sign}")
            pieces[place] = piece
    return ("\\`" if plain else "`").join(pieces)
