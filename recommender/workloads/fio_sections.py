"""The sections of a fio job file, split as fio does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from iojoule.datasets.errors import InputError

JOBS_MAX = 4096
"""As many as fio runs: 3.33 ends with "maximum number of jobs reached"."""

OPTIONS_MAX = 500
"""Of one section; fio 3.33 knows 217 (`fio --cmdhelp=all`)."""


@dataclass(frozen=True)
class Section:
    """One job: its name, and its options with those of [global] before it."""

    name: str
    options: Mapping[str, str]


def sections(text: str, where: str) -> list[Section]:
    """Split a job file: [global] applies to the jobs that follow it.

    Raises:
        InputError: Not a fio job file; names the line.
    """
    shared: dict[str, str] = {}
    jobs: list[Section] = []
    options: dict[str, str] | None = None
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        if not line or line[0] in "#;":
            continue
        if line.startswith("[") and line.endswith("]"):
            name = line[1:-1]
            if name == "global":
                options = shared
            else:
                options = dict(shared)
                jobs.append(Section(name, options))
                if len(jobs) > JOBS_MAX:
                    raise InputError(
                        f"{where}: line {number}: more than {JOBS_MAX} jobs, which fio does not "
                        "run either; split the file"
                    )
            continue
        if options is None:
            raise InputError(
                f"{where}: line {number}: {line!r} stands before any [section]; not a fio job file"
            )
        if line.startswith("include "):
            raise InputError(
                f"{where}: line {number}: {line}: write the included file out here",
                field="include",
            )
        name, _, value = line.partition("=")
        options[name.strip().lower()] = value.strip()
        if len(options) > OPTIONS_MAX:
            raise InputError(
                f"{where}: line {number}: more than {OPTIONS_MAX} options, and fio knows fewer; "
                "not a fio job file"
            )
    if not jobs:
        raise InputError(f"{where}: no job section; not a fio job file")
    return jobs
