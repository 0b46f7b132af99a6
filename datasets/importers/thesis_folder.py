"""The result folders of energy-benchmark (nvme-energy-bench), the tool of Kanichai's thesis.

`results/<name>-<date>/` holds `config.yaml`, `info.json` and `data/<bench>-ps<P>-i<I>-<N>/`, one
folder per run: power state P (-1: not set), iteration I, N the place among the bench's commands (a
hash in versions before October 2025). Source: app/src/bench.rs and common/src/bench.rs of
github.com/t348575/energy-benchmark.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from iojoule.datasets.errors import DataQualityError, InputError
from iojoule.datasets.provenance import unreadable

RESULT = "results.json"
"""What fio wrote."""

INFO = "info.json"
CONFIG = "config.yaml"

_RUN = re.compile(r"(?P<bench>.+)-ps(?P<state>-?\d+)-i(?P<iteration>\d+)-(?P<place>\w+)")


@dataclass(frozen=True)
class RunFolder:
    """One run.

    Attributes:
        path: Its folder.
        root: The folder with `config.yaml` and `info.json`.
        name: Results folder and run folder, without private folders around them.
        bench: Name of the experiment.
        power_state: What the tool had set; None = left as it was.
        iteration: Counts repetitions from 0.
    """

    path: Path
    root: Path
    name: str
    bench: str
    power_state: int | None
    iteration: int

    @property
    def session(self) -> str:
        """Name of the results folder, which ends in the date."""
        return self.name.partition("/")[0]


@dataclass(frozen=True)
class Info:
    """What `info.json` says of one run.

    Attributes:
        program: Which benchmark: `Fio`, `Ycsb` ...; None = it does not say.
        filesystem: What the tool had made on the drive; None = none, or it does not say.
        options: fio's options that the tool added, switches without a value as `1`; None where it
            does not say all of them.
    """

    program: str | None = None
    filesystem: str | None = None
    options: Mapping[str, str] | None = field(default=None)


def find_runs(paths: Sequence[Path]) -> list[RunFolder]:
    """The run folders among and below the paths, in the order of their names.

    Raises:
        InputError: A path does not exist or holds none.
    """
    found: dict[Path, RunFolder] = {}
    for path in paths:
        if not path.is_dir():
            what = "is a file, not a folder" if path.exists() else "no such folder"
            raise InputError(f"{path}: {what}; name a results folder of energy-benchmark")
        inside = [run for folder in _walk(path) if (run := _run(folder)) is not None]
        if not inside:
            raise InputError(
                f"{path}: holds no run of energy-benchmark; a results folder has its runs in "
                "data/<bench>-ps<P>-i<I>-<N>/"
            )
        found |= {run.path.resolve(): run for run in inside}
    return list(found.values())


def _walk(path: Path) -> Iterator[Path]:
    """Folders that are named like runs; what lies in one is not searched (fio's logs are many)."""
    if _RUN.fullmatch(path.resolve().name):
        yield path
        return
    for folder, names, _ in os.walk(path):
        runs = sorted((name for name in names if _RUN.fullmatch(name)), key=_natural)
        yield from (Path(folder) / name for name in runs)
        names[:] = sorted((name for name in names if name not in runs), key=_natural)


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def _run(path: Path) -> RunFolder | None:
    resolved = path.resolve()
    match = _RUN.fullmatch(resolved.name)
    if match is None:
        return None
    above = resolved.parent
    root = above.parent if above.name == "data" else above
    state = int(match["state"])
    return RunFolder(
        path=path,
        root=path.parent.parent if above.name == "data" and path.parent.name == "data" else root,
        name=f"{root.name}/{resolved.name}",
        bench=match["bench"],
        power_state=None if state < 0 else state,
        iteration=int(match["iteration"]),
    )


def read_info(run: RunFolder, entries: Mapping[str, Any]) -> Info | None:
    """What `info.json` says of a run; None where it does not know the run.

    Args:
        run: The run.
        entries: What `load_info` found.

    Raises:
        DataQualityError: It contradicts the folder's name.
    """
    entry = entries.get(run.path.resolve().name)
    if not isinstance(entry, dict):
        return None
    for key, stated in (
        ("power_state", -1 if run.power_state is None else run.power_state),
        ("iteration", run.iteration),
    ):
        if key in entry and entry[key] != stated:
            raise DataQualityError(
                f"{run.root / INFO}, {run.path.name}: {key} is {entry[key]!r}, the folder's name "
                f"says {stated}; restore one of them, or leave the run out"
            )
    args = entry.get("args")
    if not isinstance(args, dict):
        return Info()
    filesystem = args.get("fs")
    known = isinstance(filesystem, str) and filesystem != "None"
    return Info(
        program=str(args["type"]) if "type" in args else None,
        filesystem=str(filesystem).lower() if known else None,
        options=_added(args),
    )


def load_info(path: Path) -> dict[str, Any]:
    """Run -> what `info.json` says of it; empty where there is no such file.

    Raises:
        DataQualityError: It is cut off or holds something else.
        InputError: It cannot be read.
    """
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise unreadable(path, error) from None
    except ValueError as error:
        raise DataQualityError(
            f"{path}: not whole JSON ({error}); copy the file again, or remove it to import "
            "without it"
        ) from None
    # versions before October 2025 have no `param_map` around the runs
    said = said.get("param_map", said) if isinstance(said, dict) else said
    if not isinstance(said, dict):
        raise DataQualityError(f"{path}: holds no map of runs; remove it to import without it")
    return said


def _added(args: Mapping[str, Any]) -> dict[str, str] | None:
    """Options the tool put on fio's command line; fio's JSON leaves out those without a value."""
    if args.get("job_specific_extra_options"):
        return None
    extra = args.get("extra_options") or []
    words = list(extra[0]) if extra and isinstance(extra[0], list) else list(extra)
    for matched in args.get("matched_args") or []:
        words += matched.get("value", [])
    pairs = (str(word).lstrip("-").partition("=") for word in words)
    return {name: value if equals else "1" for name, equals, value in pairs}


def read_settings(path: Path) -> Mapping[str, str]:
    """The block `settings` of a `config.yaml`, nested names joined by dots: `cpu_freq.freq`.

    Only what stands on a line of its own as `name: text` is read; that is all of this block that
    a measurement holds.

    Raises:
        InputError: It cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        reason = error if isinstance(error, OSError) else OSError(0, "not text")
        raise unreadable(path, reason) from None
    found: dict[str, str] = {}
    above: list[tuple[int, str]] = []
    for line in text.splitlines():
        match = re.match(r"( *)([A-Za-z_]\w*):(?:\s+(.*))?$", line)
        if match is None:
            continue
        depth = len(match[1])
        above = [one for one in above if one[0] < depth]
        above.append((depth, match[2]))
        names = [name for _, name in above]
        if names[0] == "settings" and len(names) > 1:
            value = re.sub(r"\s+#.*$|^#.*$", "", match[3] or "").strip()
            found[".".join(names[1:])] = value.strip("'\"")
    return found
