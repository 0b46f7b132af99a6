"""Writes reports, and reads back the answer in one."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from iojoule.api.documents.content import Document
from iojoule.api.documents.html import to_html
from iojoule.api.reports.asked import REPORT_VERSION
from iojoule.datasets.atomic import write_text_atomically
from iojoule.datasets.errors import InputError, SchemaVersionError

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
    try:
        write_text_atomically(path, to_html(report))
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from None


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
        data: Any = json.loads(found[1]) if found else None
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
