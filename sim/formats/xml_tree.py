"""Reads an XML file into a small tree: no entities, no document types, capped in every direction.

The parser is expat, whose handlers know the line of everything and can stop a hostile file at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn
from xml.parsers import expat

from iojoule.datasets.errors import InputError

MAX_FILE_BYTES = 8 << 20
MAX_DEPTH = 16
MAX_ELEMENTS = 100_000
MAX_TEXT_CHARACTERS = 8192
"""Of one element; the longest that means anything is a list of ids, which MQSim ends at 1000."""


@dataclass
class Element:
    """One element: tag, text without comments, children in order, and the line it begins on."""

    tag: str
    line: int
    children: list[Element] = field(default_factory=list)
    text: str = ""
    has_attributes: bool = False

    def all(self, tag: str) -> Iterator[Element]:
        """Children of that tag, in order."""
        return (child for child in self.children if child.tag == tag)


def read_bytes(path: Path) -> bytes:
    """The content of a file of at most MAX_FILE_BYTES.

    Raises:
        InputError: It is missing, unreadable, not a file or too large.
    """
    try:
        if not path.is_file():
            raise InputError(f"{path}: is not a file; check the path")
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: cannot be read ({reason}); check the path") from None
    if len(content) > MAX_FILE_BYTES:
        raise InputError(
            f"{path}: is larger than {MAX_FILE_BYTES >> 20} MiB, the most that is read of such a "
            "file; check that it is the right one"
        )
    return content


def parse(content: bytes, where: str) -> Element:
    """The root element of an XML document.

    Args:
        content: The file.
        where: Names the file in errors.

    Raises:
        InputError: It is not XML, declares a document type or entities, or is larger or deeper than
            the limits above; the message names the line.
    """
    return _Reader(where).read(content)


class _Reader:
    def __init__(self, where: str) -> None:
        self.where = where
        self.open: list[Element] = []
        self.root: Element | None = None
        self.elements = 0
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.parser.EntityDeclHandler = self._doctype

    def read(self, content: bytes) -> Element:
        try:
            self.parser.Parse(content, True)
        except expat.ExpatError as error:
            self._refuse(f"is not well-formed XML ({expat.ErrorString(error.code)}); correct it")
        except (LookupError, ValueError) as error:
            self._refuse(f"has an encoding that is not known ({error}); save it as UTF-8")
        if self.root is None:
            self._refuse("has no element; check that it is the right file")
        return self.root

    def _refuse(self, said: str) -> NoReturn:
        raise InputError(f"{self.where}, line {self.parser.CurrentLineNumber}: {said}") from None

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self.elements += 1
        if self.elements > MAX_ELEMENTS:
            self._refuse(f"has more than {MAX_ELEMENTS} elements; split the file")
        if len(self.open) >= MAX_DEPTH:
            self._refuse(f"nests elements more than {MAX_DEPTH} deep; no such file of MQSim does")
        element = Element(tag, self.parser.CurrentLineNumber, has_attributes=bool(attributes))
        if self.open:
            self.open[-1].children.append(element)
        else:
            self.root = element
        self.open.append(element)

    def _end(self, _: str) -> None:
        self.open.pop()

    def _characters(self, text: str) -> None:
        element = self.open[-1]
        if len(element.text) + len(text) > MAX_TEXT_CHARACTERS:
            self._refuse(f"{element.tag} holds more than {MAX_TEXT_CHARACTERS} characters")
        # blanks between children mean nothing, and there may be many of them
        element.text += text if not element.children else text.strip()

    def _doctype(self, *_: object) -> None:
        self._refuse(
            "declares a document type or entities, which are refused for safety; remove the "
            "declaration and write the values out"
        )
