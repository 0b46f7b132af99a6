"""Where the command line speaks: answers to standard output, everything else to standard error."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from iojoule.datasets.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

    from iojoule.api.reports.document import Table as StatedTable

_PIECE = 32 * 1024

WIDE = 400
"""Columns of a table that goes into a file or a pipe: as many as it asks for."""


class Format(StrEnum):
    """Form of an answer."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


FormatOption = Annotated[
    Format, typer.Option("--output", "-o", help="Form of the answer on standard output.")
]


class OutputClosedError(Exception):
    """Whoever read standard output went away, as `head` does."""


def emit(text: str) -> None:
    """Write to standard output.

    Raises:
        OutputClosedError: Nobody reads it any more.
        StorageFullError: It is a file on a disk without room.
        InputError: It cannot be written.
    """
    try:
        # piece by piece: without a buffer (python -u) the rest of a broken write is lost unnoticed
        for start in range(0, len(text), _PIECE):
            sys.stdout.write(text[start : start + _PIECE])
        sys.stdout.flush()
    except OSError as error:
        _discard_rest(sys.stdout)
        raise _output_error(error) from None


def _discard_rest(stream: TextIO) -> None:
    """What is still buffered must not fail a second time when Python flushes it at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _output_error(error: OSError) -> Exception:
    from iojoule.api.state.errors import StorageFullError
    from iojoule.api.state.files import FULL

    if isinstance(error, BrokenPipeError):
        return OutputClosedError()
    if error.errno in (*FULL, errno.EFBIG):
        return StorageFullError(
            "standard output: its disk has no room left, so the answer is incomplete; make room "
            "and run the command again"
        )
    return InputError(
        f"standard output: cannot be written ({error.strerror}); send it to a file, a pipe or a "
        "terminal that is open"
    )


def emit_json(data: Any) -> None:
    """Write one JSON document; NaN is a fault here, unknown is null."""
    emit(json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def emit_csv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table with one header line; None becomes an empty cell."""
    emit_csv_rows([header, *rows])


def emit_csv_rows(rows: Iterable[Sequence[Any]]) -> None:
    """Write further lines of such a table."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    emit(buffer.getvalue())


def emit_records(
    records: Sequence[Mapping[str, Any]], form: Format, titles: Mapping[str, str]
) -> None:
    """Write records of equal fields as a table, JSON or CSV.

    Args:
        records: Field -> value.
        form: Which of the three.
        titles: Field -> heading of its column in the table; fields without one stay out of it.
    """
    if form is Format.JSON:
        emit_json([dict(record) for record in records])
    elif form is Format.CSV:
        header = list(records[0]) if records else list(titles)
        emit_csv(header, ([_cell(record[name]) for name in header] for record in records))
    else:
        table = new_table(titles.values())
        for record in records:
            table.add_row(*(_shown(record[name]) for name in titles))
        emit_table(table)


def new_table(headings: Iterable[str], *, title: str | None = None) -> Table:
    """A table in the one style of the command line; columns are added from `headings`."""
    from rich import box
    from rich.table import Table

    table = Table(
        box=box.SIMPLE_HEAD,
        title=title,
        title_justify="left",
        title_style="bold",
        pad_edge=False,
        show_edge=False,
    )
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def table_of(stated: StatedTable) -> Table:
    """A table that a document could hold too."""
    table = new_table(stated.headings)
    for row in stated.rows:
        table.add_row(*row)
    table.caption = stated.caption
    return table


def width() -> int:
    """Columns that an answer may take: those of the terminal, or WIDE into a file or a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDE


def columns() -> int:
    """Columns of a text that is wrapped: those of the terminal, or $COLUMNS, or 100."""
    return shutil.get_terminal_size((100, 24)).columns


def natural_width(table: Table) -> int:
    """Columns that a table asks for."""
    from rich.console import Console

    wide = Console(file=io.StringIO(), width=10 * WIDE)
    return wide.measure(table).maximum


_WORD = re.compile(r"(?:--?[\w-]+ (?![-|&]))?(?:'[^']*'|\S)+")
"""A word of a command line, or an option with its value; spaces within quotes do not end it."""


def command_lines(command: str, columns: int) -> Iterator[str]:
    """A command in lines that can be pasted, each but the last continued with a backslash."""
    line = " "
    for word in _WORD.findall(command):
        if len(line) > 4 and len(line) + len(word) + 3 > columns:
            yield f"{line} \\"
            line = "   "
        line += f" {word}"
    yield line


def emit_table(*parts: Any, wide: bool = False) -> None:
    """Write tables and lines of text.

    Args:
        parts: In their order.
        wide: As wide as they ask for; else as wide as the terminal or, into a file, as needed.
    """
    from rich.console import Console

    terminal = sys.stdout.isatty()
    console = Console(
        file=io.StringIO(),
        force_terminal=terminal,
        width=WIDE if wide else width(),
        no_color=None if terminal else True,
        highlight=False,
        markup=False,
        emoji=False,
    )
    for part in parts:
        if isinstance(part, str):
            console.print(part, soft_wrap=True)
            continue
        # printed apart, because a table wraps both to its own width
        title, part.title = part.title, None
        caption, part.caption = part.caption, None
        if title:
            console.print(title, style="bold", soft_wrap=True)
        console.print(part)
        if caption:
            console.print(caption, soft_wrap=True)
    text = console.file.getvalue() if isinstance(console.file, io.StringIO) else ""
    emit("".join(f"{line.rstrip()}\n" for line in text.splitlines()))


def note(text: str) -> None:
    """Say something beside the answer, on standard error."""
    _complain(f"note: {text}")


def warn(text: str) -> None:
    """Say what the reader of the answer should doubt, on standard error."""
    _complain(f"warning: {text}")


LEFT_OUT_NAMED = 12
"""What is left out is named one by one, so many for each reason."""


def say_left_out(what: str, named: Iterable[tuple[str, str]]) -> None:
    """Warn of each reason for which some are left out, and name them.

    Reasons that differ in numbers alone are one, told with the first's.

    Args:
        what: One of them, such as "measurement".
        named: Each one's name and reason.
    """
    alike: dict[str, list[tuple[str, str]]] = {}
    for each in named:
        alike.setdefault(re.sub(r"\d+", "0", each[1]), []).append(each)
    for same in alike.values():
        names, reason = [name for name, _ in same], same[0][1]
        are = f"{what} is" if len(names) == 1 else f"{what}s are"
        warn(f"{len(names)} {are} left out: {reason}")
        for name in names[:LEFT_OUT_NAMED]:
            note(f"left out: {name}")
        if len(names) > LEFT_OUT_NAMED:
            note(f"left out: {len(names) - LEFT_OUT_NAMED} more of these")


def error(text: str) -> None:
    """Say why there is no answer, on standard error."""
    _complain(f"error: {text}")


def _complain(text: str) -> None:
    try:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
    except OSError:  # there is nowhere left to say it; the exit code does
        _discard_rest(sys.stderr)


def _cell(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "-"
    return "-" if value is None else str(value)
