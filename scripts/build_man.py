#!/usr/bin/env python3
"""Writes the manual pages of the command line into build/man, from the commands themselves.

A wheel that is built afterwards installs them below share/man/man1. One page a command of
`iojoule`, with its subcommands on it.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from iojoule import __version__
from iojoule.api.cli.app import TASKS, app
from iojoule.api.cli.deferred import walk
from iojoule.api.exit_codes import exit_codes

BUILT = Path(__file__).resolve().parent.parent / "build" / "man"


def main() -> None:
    """Write all pages anew."""
    shutil.rmtree(BUILT, ignore_errors=True)
    BUILT.mkdir(parents=True)
    command = typer.main.get_command(app)
    (BUILT / "iojoule.1").write_text(overview(command))
    for name in command.commands:  # type: ignore[attr-defined]
        (BUILT / f"iojoule-{name}.1").write_text(page(name, command.commands[name]))  # type: ignore[attr-defined]


def overview(command: Any) -> str:
    """The page of `iojoule` itself: commands by task, and exit codes."""
    lines = head("iojoule", str(command.help))
    lines += [".SH SYNOPSIS", ".B iojoule", ".I COMMAND", "[OPTIONS]"]
    for task, names in TASKS.items():
        lines.append(f".SH {task.upper()}")
        for name in names:
            one = command.commands[name]
            lines += [".TP", f".BR iojoule-{escaped(name)} (1)", *text(one.help or "")]
    lines.append(".SH EXIT STATUS")
    for code, meaning in exit_codes().items():
        lines += [".TP", f".B {code}", *text(meaning)]
    return "\n".join(lines) + "\n"


def page(name: str, command: Any) -> str:
    """The page of one command and what is below it."""
    lines: list[str] = []
    for full_name, one in walk(f"iojoule {name}", command):
        if getattr(one, "hidden", False):
            continue
        if not lines:
            lines = [
                *head(f"iojoule-{name}", one.help or ""),
                ".SH SYNOPSIS",
                f".B iojoule {escaped(name)}",
            ]
            lines += ["[OPTIONS]", ".SH DESCRIPTION", *text(one.help or ""), ".SH OPTIONS"]
        else:
            lines += [f".SS {escaped(full_name)}", *text(one.help or "")]
        lines += options(one)
    lines += [".SH SEE ALSO", ".BR iojoule (1)"]
    return "\n".join(lines) + "\n"


def options(command: Any) -> Iterator[str]:
    """Options and arguments."""
    for one in command.params:
        if getattr(one, "hidden", False):
            continue
        names = ", ".join((*one.opts, *one.secondary_opts))
        if not names.startswith("-"):
            names = one.metavar or names.upper()
        elif not getattr(one, "is_flag", False):
            names += f" {one.metavar or str(one.name).strip('_').upper()}"
        yield from (".TP", f".B {escaped(names)}", *text(getattr(one, "help", None) or ""))


def head(name: str, description: str) -> list[str]:
    """The title and the name with the first sentence."""
    sentence = re.split(r"(?<=[.])\s", " ".join(description.split()))[0].rstrip(".")
    title = f'.TH {name.upper()} 1 "" "iojoule {__version__}" "iojoule"'
    return [title, ".SH NAME", rf"{escaped(name)} \- {escaped(sentence)}"]


def text(prose: str) -> list[str]:
    """Prose as lines of roff; an empty line ends a paragraph."""
    paragraphs = [" ".join(part.split()) for part in prose.split("\n\n")]
    return [line for part in paragraphs if part for line in (".sp 0", escaped(part))][1:] or [r"\&"]


def escaped(one: str) -> str:
    """Characters that roff would take for its own."""
    one = one.replace("\\", r"\e").replace("-", r"\-").replace("`", "")
    return rf"\&{one}" if one.startswith((".", "'")) else one


if __name__ == "__main__":
    main()
