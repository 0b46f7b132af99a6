"""Runs the commands of docs/gallery.md and keeps the pictures they draw in docs (`make figures`).

The commands of the page run one after the other in one folder with the examples beside them, as a
reader would type them; tests/test_docs.py compares what they print with what the page shows.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "gallery.md"


class Shown(NamedTuple):
    """A command of a page, and what the page shows of its output."""

    command: str
    output: str


def shown(page: Path) -> Iterator[Shown]:
    """Commands of a page's console blocks with the output that the page shows."""
    text = page.read_text("utf-8")
    for block in re.findall(r"^```console\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        for part in re.split(r"^\$ ", block.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            yield Shown(command, output)


def printed(command: str, folder: Path) -> str:
    """What a command prints, run in a folder beside the examples."""
    examples = folder / "examples"
    if not examples.exists():
        examples.symlink_to(ROOT / "examples")
    words = shlex.split(command, comments=True)
    words[0] = str(Path(sys.executable).parent / "iojoule")
    environment = {**os.environ, "COLUMNS": "100"}
    done = subprocess.run(
        words, capture_output=True, text=True, cwd=folder, env=environment, check=False
    )
    if done.returncode not in (0, 7):
        raise SystemExit(f"{command}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def main() -> None:
    """Draw the pictures again."""
    with TemporaryDirectory() as made:
        folder = Path(made)
        for one in shown(PAGE):
            print(f"$ {one.command}\n{printed(one.command, folder)}")
        for picture in sorted(folder.glob("*.svg")):
            shutil.copy(picture, ROOT / "docs" / picture.name)


if __name__ == "__main__":
    main()
