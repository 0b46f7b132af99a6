"""Writes NOTICES.md: what iojoule is installed and bundled with, and under which licences.

Run by `make notices`, after `make lock` and after a change of the page's libraries. Names and
versions are those of requirements.txt and of the page's lock file; licences are what the installed
packages and the lock file say of themselves.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "NOTICES.md"

ABSENT = "(only on other platforms or Pythons; its package says)"
"""Stands for the licence of what is pinned and not installed here."""

# Terms that ask something of whoever passes the package on, beyond keeping its notice.
_RECIPROCAL = re.compile(r"\b(A|L)?GPL|\bMPL|Mozilla|\bEPL|\bCDDL", re.IGNORECASE)
_LONGEST = 60

_HEAD = """# Notices

iojoule itself is under Apache-2.0 (`LICENSE`). It is used together with the packages below, which
are not part of this repository: they are installed as their authors publish them, unchanged, at
the versions that `requirements.txt` and `api/page/package-lock.json` pin by hash. `make notices`
writes this file from what is installed; a test compares it with the pins.

The text of each licence, and the notices of native libraries that a package brings (such as
OpenBLAS with numpy and scipy, or libpq with psycopg-binary), are in the folder
`NAME-VERSION.dist-info` of the installed package. Whoever passes on an environment or an image
with these packages passes those folders on with it, and keeps to the terms of each package.
"""

_RECIPROCAL_HEAD = """
## Under LGPL or MPL

Imported as they are and replaceable: each is a package of its own in the environment, and
installing another version with `pip` replaces it. Their sources are published by their authors
under the same name and version.
"""

_LAB = """
The virtual drive of the lab (`measure/lab`) is compiled on the machine that uses it and linked
dynamically with Debian's libfuse3 (library: LGPL-2.1), which is neither brought nor changed;
`iojoule` without the lab does not need it.
"""

_PYTHON = """
## Python packages

run: `iojoule` needs it; extra: an extra (`fit`, `service`, ...) needs it;
development: building, checking and testing only. nanobind is besides compiled into the
simulator's core.
"""

_PAGE = """
## Bundled into the page

These libraries are in the page as it is served (`api/page/built/index.html`); the lock file has
their licences. What only builds the page is not in it.
"""


@dataclass(frozen=True)
class Part:
    """A package: its name, version and licence, and what it is used for."""

    name: str
    version: str
    licence: str
    use: str = ""


def pinned() -> dict[str, str]:
    """The versions of requirements.txt by the names of the packages."""
    text = (ROOT / "requirements.txt").read_text(encoding="utf-8").replace("\\\n", " ")
    requirements = [Requirement(line.split("--hash")[0]) for line in text.splitlines() if line]
    return {
        canonicalize_name(one.name): str(one.specifier).removeprefix("==") for one in requirements
    }


def hashed_pins(*extras: str) -> str:
    """The lines of requirements.txt, hashes included, that iojoule with these extras needs."""
    needed = _needed("iojoule", frozenset(extras)) - {"iojoule"}
    text = (ROOT / "requirements.txt").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line]
    return "\n".join(
        line
        for line in lines
        if canonicalize_name(Requirement(line.split("--hash")[0]).name) in needed
    )


def licence_of(name: str) -> str:
    """What an installed package says its licence is; ABSENT where it is not installed.

    Raises:
        ValueError: It says nothing; look it up, and mend this function.
    """
    found = _installed(name)
    if found is None:
        return ABSENT
    metadata = found.metadata
    stated = (metadata.get("License-Expression") or metadata.get("License") or "").strip()
    # some put the whole text there, or the line of the copyright
    if stated and "\n" not in stated and len(stated) <= _LONGEST and stated != "UNKNOWN":
        return stated
    classified = [
        line.rpartition(" :: ")[2]
        for line in metadata.get_all("Classifier") or []
        if line.startswith("License :: ")
    ]
    if not classified:
        raise ValueError(f"{name} states no licence")
    return " / ".join(classified)


def python_parts() -> list[Part]:
    """What requirements.txt pins."""
    run = _needed("iojoule", frozenset())
    extra = _needed("iojoule", frozenset({"dask", "fit", "otel", "postgresql", "service"}))
    return [
        Part(name, version, licence_of(name), _use(name, run, extra))
        for name, version in sorted(pinned().items())
    ]


def page_parts() -> list[Part]:
    """What the page is bundled with."""
    lock = json.loads((ROOT / "api/page/package-lock.json").read_text(encoding="utf-8"))
    return [
        Part(path.rpartition("node_modules/")[2], one["version"], one["license"])
        for path, one in sorted(lock["packages"].items())
        if path and not one.get("dev")
    ]


def reciprocal(parts: list[Part]) -> list[Part]:
    """Those under LGPL, MPL and the like."""
    return [one for one in parts if _RECIPROCAL.search(one.licence)]


def notices() -> str:
    """The whole file."""
    python, page = python_parts(), page_parts()
    return "".join(
        [
            _HEAD, _RECIPROCAL_HEAD, _table(reciprocal(python)), _LAB, _PYTHON, _table(python),
            _PAGE, _table(page),
        ]
    )  # fmt: skip


def _use(name: str, run: set[str], extra: set[str]) -> str:
    if name in run:
        return "run"
    return "extra" if name in extra else "development"


def _needed(name: str, extras: frozenset[str]) -> set[str]:
    """The installed packages that a package needs, with what those need."""
    needed: set[str] = set()
    waiting = [(name, extras)]
    done: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        current = waiting.pop()
        found = _installed(current[0])
        if current in done or found is None:
            continue
        done.add(current)
        for requirement in map(Requirement, found.requires or []):
            marker = requirement.marker
            if marker is None or any(
                marker.evaluate({"extra": extra}) for extra in current[1] | {""}
            ):
                one = canonicalize_name(requirement.name)
                needed.add(one)
                waiting.append((one, frozenset(requirement.extras)))
    return needed


def _installed(name: str) -> Distribution | None:
    try:
        return importlib.metadata.distribution(name)
    except PackageNotFoundError:
        return None


def _table(parts: list[Part]) -> str:
    used = any(one.use for one in parts)
    rows = (
        [("package", "version", "licence", "for")] if used else [("package", "version", "licence")]
    )
    rows += [("---",) * len(rows[0])]
    rows += [(one.name, one.version, one.licence, one.use)[: len(rows[0])] for one in parts]
    return "\n" + "".join(f"| {' | '.join(row)} |\n" for row in rows)


if __name__ == "__main__":
    TARGET.write_text(notices(), encoding="utf-8")
