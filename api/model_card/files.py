"""Writes a card: Markdown with its drawings beside it, or one HTML page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from iojoule.api.documents.content import Document
from iojoule.api.documents.html import to_html
from iojoule.api.model_card.markdown import to_markdown
from iojoule.datasets.atomic import write_text_atomically
from iojoule.datasets.errors import InputError

MARKDOWN, HTML = ".md", ".html"


def check_target(path: Path) -> None:
    """Refuse early what cannot be written.

    Raises:
        InputError: Neither a folder that exists, nor a file .md or .html in one.
    """
    if path.is_dir():
        return
    if path.suffix.lower() not in (MARKDOWN, HTML):
        raise InputError(
            f"{path}: no such folder; make it first, or name a file that ends in {MARKDOWN} or "
            f"{HTML}"
        )
    if not path.absolute().parent.is_dir():
        raise InputError(f"{path}: the folder {path.parent} does not exist; make it first")


def write_card(card: Document, path: Path) -> tuple[Path, ...]:
    """Write a card and return the files.

    Args:
        card: What to write.
        path: A folder, which gets both forms under the card's own name; or a file, whose ending
            says the form. Markdown's drawings lie beside it.

    Raises:
        InputError: The target cannot be written; nothing half written stays.
    """
    check_target(path)
    wanted: dict[Path, str] = {}
    if path.is_dir():
        wanted |= _markdown(card, path / f"{card.name}{MARKDOWN}")
        wanted[path / f"{card.name}{HTML}"] = to_html(card)
    elif path.suffix.lower() == HTML:
        wanted[path] = to_html(card)
    else:
        wanted |= _markdown(card, path)
    _write(wanted)
    return tuple(wanted)


def _markdown(card: Document, path: Path) -> dict[Path, str]:
    drawings = {path.with_name(f"{one.name}.svg"): one.svg for one in card.pictures}
    return {path: to_markdown(card), **drawings}


def _write(texts: Mapping[Path, str]) -> None:
    for path, text in texts.items():
        try:
            write_text_atomically(path, text)
        except OSError as error:
            raise InputError(f"{path}: cannot be written ({error.strerror})") from None
