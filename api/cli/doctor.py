"""`iojoule doctor`: what is installed, allowed and missing on this host, with commands to type."""

from __future__ import annotations

import textwrap
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from iojoule.api.cli import console


def doctor(
    root: Annotated[Path, typer.Option(hidden=True, help="Where /proc and /sys are.")] = Path("/"),
    output: console.FormatOption = console.Format.TABLE,
) -> None:
    """List what is installed, allowed and missing, with commands to type.

    Nothing is changed, and no drive is sent a command. Answers need none of what is missing.
    """
    from iojoule.api.application.doctor import checks

    found = list(checks(root))
    if output is not console.Format.TABLE:
        console.emit_records([asdict(one) for one in found], output, {})
        return
    lines = []
    for one in found:
        head = f"{one.state:12}{one.what:20}"
        lines += textwrap.wrap(head + one.detail, console.columns(), subsequent_indent=" " * 32)
    commands = [f"  {one.command}   # {one.what}" for one in found if one.command]
    console.emit_table(*lines, *(["", "To type:", *commands] if commands else []))
