"""The file of a report: its request, its data for programs, writing and reading."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from iojoule.api.reports.document import Block, Code, Document, Section, Table, Text, to_html
from iojoule.datasets.atomic import output_file, write_text_atomically
from iojoule.datasets.errors import InputError, SchemaVersionError
from iojoule.datasets.input_file import json_of
from iojoule.datasets.profile import SourceRecord
from iojoule.datasets.schema import Section as Stated

REPORT_VERSION = 1
"""Version of the data in a report."""


class Asked(Stated):
    """The question, whole.

    Attributes:
        at: When, in UTC.
        operation: Of the service, as /recommend; None where it has none for this.
        request: Its body: all that the answer depends on but the profile.
        command: The command line that asked, word by word; None where a program did.
        sources: What the profile that answered was fitted on.
    """

    at: datetime
    operation: str | None
    request: dict[str, Any]
    command: list[str] | None = None
    sources: tuple[SourceRecord, ...] = ()

    @property
    def moment(self) -> str:
        """When, for people."""
        return f"{self.at:%Y-%m-%d %H:%M} UTC"


def data_of_report(kind: str, asked: Asked, answer: Stated) -> dict[str, Any]:
    """What a report holds for programs."""
    return {
        "report_version": REPORT_VERSION,
        "kind": kind,
        "asked": asked.model_dump(mode="json"),
        "answer": answer.model_dump(mode="json"),
    }


def again(asked: Asked) -> Section:
    """The command and the request that give the same answer."""
    blocks: list[Block] = [
        Text(
            "The same question to the same versions has the same answer. The answer itself is in "
            "this file, as JSON in the element with the id `data`."
        )
    ]
    if asked.command is not None:
        said = shlex.join(["iojoule", *asked.command])
        blocks.append(Code("The command that asked, in the folder where it was typed", said))
    if asked.operation is not None:
        body = json.dumps(asked.request, ensure_ascii=False)
        curl = (
            f"curl -s localhost:8080{asked.operation} -H 'content-type: application/json' -d "
            f"{shlex.quote(body)}"
        )
        blocks.append(
            Code("The request to a service (`iojoule serve`) that answers it", curl, folded=True)
        )
    indented = json.dumps(asked.request, ensure_ascii=False, indent=2)
    blocks.append(Code("The question as JSON", indented, folded=True))
    return Section("The same again", tuple(blocks))


def sources(asked: Asked) -> Iterator[Block]:
    """What the profile rests on, with licences and content hashes."""
    if asked.sources:
        rows = [
            (one.name, one.citation, one.licence, f"{one.rows_used:,}", (one.sha256 or "")[:12])
            for one in asked.sources
        ]
        headings = ("source", "citation", "licence", "rows used", "SHA-256 begins")
        yield Table.of(headings, rows, (3,), "What the profile was fitted on.")


def flat(stated: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    """Fields of a question by dotted name, what is not stated left out."""
    for name, value in stated.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{before}{name}.")
        elif value is not None and value != []:
            said = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            yield f"{before}{name}", said


ENDING = ".html"

_DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)


def check_target(path: Path) -> None:
    """Refuse early what cannot be written.

    Raises:
        InputError: Not a file .html in a folder that exists.
    """
    if path.suffix.lower() != ENDING:
        raise InputError(f"{path}: a report ends in {ENDING}")
    if path.is_dir():
        raise InputError(f"{path}: is a folder; name the file to write in it")
    if not path.absolute().parent.is_dir():
        raise InputError(f"{path}: the folder {path.parent} does not exist; make it first")


def write_report(report: Document, path: Path) -> None:
    """Write a report whole or not at all.

    Raises:
        InputError: The file cannot be written.
    """
    check_target(path)
    with output_file(path):
        write_text_atomically(path, to_html(report))


def data_of(text: str, where: str) -> dict[str, Any]:
    """What a report holds for programs: `kind`, `asked` and `answer`.

    Args:
        text: The file.
        where: Its name, for errors.

    Raises:
        InputError: It is no report, or an incomplete one.
        SchemaVersionError: It is of another version.
    """
    found = _DATA.search(text)
    try:
        data: Any = json_of(found[1]) if found else None
    except ValueError:
        data = None
    if not isinstance(data, dict) or "report_version" not in data:
        raise InputError(
            f"{where}: is no report; `iojoule recommend --report FILE.html` writes one"
        )
    if data["report_version"] != REPORT_VERSION:
        raise SchemaVersionError(
            f"{where}: is a report of version {data['report_version']}, this iojoule knows "
            f"{REPORT_VERSION}; ask again with the iojoule that is to read it"
        )
    return data
