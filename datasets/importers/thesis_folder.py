"""The results tree of energy-benchmark (nvme-energy-bench), the tool of Kanichai's thesis.

    EXPERIMENT-YYYY-MM-DD_HH-MM-SS/
        config.yaml             what was configured
        info.json               parameters of each run
        data/NAME-psP-iI-N/     one run: bench NAME, power state P (-1: not set), repetition I,
                                N = index of the parameter combination

Two generations exist. In the older one (until October 2025) N is a hash and `info.json` is the map
of runs itself; in the newer one the map is `param_map`, beside facts about drive and CPU. The
IISWC 2026 data set holds such folders in a BagIt bag of archives.
Source: app/src/bench.rs, common/src/{bench,config}.rs and benches/fio/src/lib.rs of
github.com/t348575/energy-benchmark.

No file of the IISWC 2026 data set names a drive model. Its readme assigns letters to periods of
time, and the date of an experiment is part of its folder's name. The letters are therefore labels
of the readme, and the notes name every case in which the authors' own plot scripts contradict
them. Source: readme of the data set (newer version), artifact scripts of
github.com/t348575/energy-benchmark.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from iojoule.datasets.errors import DataQualityError, InputError
from iojoule.datasets.input_file import read_input_text
from iojoule.datasets.provenance import unreadable
from iojoule.datasets.schema import LARGEST

RESULT = "results.json"
"""What fio wrote."""

INFO = "info.json"
CONFIG = "config.yaml"

_RUN = re.compile(r"(?P<bench>.+)-ps(?P<state>-?\d+)-i(?P<iteration>\d+)-(?P<index>\w+)", re.ASCII)
_ROOTS = ("results", "data/results", "data/processed/results", ".")
"""Where the replay scripts of the data set look for experiments, in this order."""

_PRODUCT = ("request_sizes", "io_engines", "io_depths", "num_jobs", "extra_options")
"""Lists of a fio bench whose product N counts through, the last one fastest."""

_FIO_OPTION = {
    "request_sizes": "bs",
    "io_engines": "ioengine",
    "io_depths": "iodepth",
    "num_jobs": "numjobs",
}


@dataclass(frozen=True)
class RunFolder:
    """One run.

    Attributes:
        path: Its folder.
        session: Name of the experiment's folder.
        bench: Name of the bench.
        power_state: What the tool had set; None = left as it was.
        iteration: Counts repetitions from 0.
        index: N of the folder's name: a number, or a hash in the older generation.
    """

    path: Path
    session: str
    bench: str
    power_state: int | None
    iteration: int
    index: str

    @property
    def name(self) -> str:
        """Experiment and run, without private folders around them."""
        return f"{self.session}/{self.path.name}"


@dataclass(frozen=True)
class Experiment:
    """One experiment folder and the runs of it that are to be imported.

    Attributes:
        root: The folder with `config.yaml`, `info.json` and `data`.
        runs: In the order of their names.
        whole: Whether these are all runs that the folder holds.
    """

    root: Path
    runs: tuple[RunFolder, ...]
    whole: bool = True


@dataclass(frozen=True)
class Settings:
    """A block of `config.yaml`. What is not stated is empty; what cannot be read is refused.

    Attributes:
        where: File and block, for messages.
        values: Name -> what stands there.
    """

    where: str = CONFIG
    values: Mapping[str, Any] = field(default_factory=dict)

    def get(self, name: str) -> Any:
        """What stands under a name; None = nothing."""
        return self.values.get(name)

    def block(self, name: str) -> Settings:
        """A block inside this one.

        Raises:
            DataQualityError: Something else stands there, which may be a limit.
        """
        value = self.get(name)
        if value is not None and not isinstance(value, dict):
            raise self._unreadable(name, "a block")
        return Settings(f"{self.where}.{name}", value or {})

    def number(self, name: str) -> float | None:
        """A number above 0; None = not stated.

        Raises:
            DataQualityError: Something else stands there.
        """
        value = self.get(name)
        if value is not None and not (_is_number(value) and 0 < value < LARGEST):
            raise self._unreadable(name, "a number above 0")
        return None if value is None else float(value)

    def _unreadable(self, name: str, expected: str) -> DataQualityError:
        return DataQualityError(
            f"{self.where}.{name} = {self.get(name)!r} is not {expected}, so what was in force is "
            "unknown; copy the file again"
        )


@dataclass(frozen=True)
class Records:
    """What `config.yaml` and `info.json` state of an experiment.

    Attributes:
        runs: Run folder -> its entry in `info.json`; None = there is no `info.json`.
        settings: The block `settings` of `config.yaml`; None = there is no `config.yaml`.
        benches: Bench name -> its arguments in `config.yaml`.
        rated_watts: Power that the drive declares for PS0; None = not stated.
        node_cores: NUMA node -> number of cores.
    """

    runs: Mapping[str, Any] | None
    settings: Settings | None
    benches: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    rated_watts: float | None = None
    node_cores: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class RunRecord:
    """What the records state of one run.

    Attributes:
        listed: Whether `info.json` lists the run.
        program: Type of the benchmark: `Fio`, `Ycsb` ...; None = not stated.
        filesystem: What the tool had made on the drive; None = none, or not stated.
        options: fio's options that the bench added, switches without a value as `1`; None where
            not all of them are stated.
        requested: fio's options of the parameter combination: `bs`, `ioengine` ...
    """

    listed: bool = False
    program: str | None = None
    filesystem: str | None = None
    options: Mapping[str, str] | None = None
    requested: Mapping[str, str] = field(default_factory=dict)


def find_experiments(paths: Sequence[Path]) -> list[Experiment]:
    """The experiments that the paths name.

    Args:
        paths: Extracted data sets, folders of experiments, experiments, or single runs. An
            experiment that is named more than once is listed once.

    Raises:
        InputError: A path does not exist, holds no experiment, or is a data set that is incomplete
            or not extracted; names the remedy.
    """
    experiments: dict[Path, Experiment] = {}
    for given in paths:
        path = given.resolve()
        if not path.is_dir():
            raise _no_folder(given)
        _refuse_incomplete(path)
        located = _locate(path)
        if not located:
            raise _nothing_inside(path)
        for experiment in located:
            before = experiments.get(experiment.root)
            if before is None or experiment.whole:
                experiments[experiment.root] = experiment
            elif not before.whole:
                runs = dict.fromkeys((*before.runs, *experiment.runs))
                experiments[experiment.root] = Experiment(experiment.root, tuple(runs), False)
    return list(experiments.values())


def missing_experiments(paths: Sequence[Path], present: Sequence[Experiment]) -> list[str]:
    """Experiments that a data set's own list names and that were not extracted."""
    here = {experiment.root.name for experiment in present}
    absent: list[str] = []
    for path in paths:
        listing = path / "metadata" / "base_directories.txt"
        if listing.is_file():
            names = (Path(line.strip()).name for line in listing.read_text().splitlines())
            absent += [name for name in names if name and name not in here]
    return absent


def _locate(path: Path) -> list[Experiment]:
    run = _run(path)
    if run is not None:
        above = path.parent
        return [Experiment(above.parent if above.name == "data" else above, (run,), False)]
    if path.name == "data" and _is_experiment(path.parent):
        path = path.parent
    if _is_experiment(path):
        return [Experiment(path, tuple(_runs(path)))]
    for below in _ROOTS:
        root = (path / below).resolve()
        children = sorted(root.iterdir(), key=_natural) if root.is_dir() else []
        experiments = [Experiment(c, tuple(_runs(c))) for c in children if _is_experiment(c)]
        if experiments:
            return experiments
    return []


def _is_experiment(path: Path) -> bool:
    if not (path / "data").is_dir():
        return False
    return (path / CONFIG).is_file() or (path / INFO).is_file() or any(True for _ in _runs(path))


def _runs(root: Path) -> Iterator[RunFolder]:
    for path in sorted((root / "data").iterdir(), key=_natural):
        run = _run(path)
        if run is not None and path.is_dir():
            yield run


def _natural(path: Path) -> list[tuple[int, str]]:
    parts = re.split(r"([0-9]+)", path.name)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def _run(path: Path) -> RunFolder | None:
    match = _RUN.fullmatch(path.name)
    if match is None:
        return None
    above = path.parent
    root = above.parent if above.name == "data" else above
    state = int(match["state"])
    return RunFolder(
        path=path,
        session=root.name,
        bench=match["bench"],
        power_state=None if state < 0 else state,
        iteration=int(match["iteration"]),
        index=match["index"],
    )


def _no_folder(path: Path) -> InputError:
    if path.name.endswith(".tar.zst"):
        return InputError(
            f"{path}: a package of the data set; extract it first: mkdir -p results && "
            f"tar --zstd -xf {path.name} -C results"
        )
    what = "is a file, not a folder" if path.exists() else "no such folder"
    return InputError(f"{path}: {what}; name a results folder of energy-benchmark")


def _refuse_incomplete(path: Path) -> None:
    """Refuse a data set whose download or check did not finish."""
    for folder in (path, *path.parents[:7]):
        of_bag = folder == path or (folder / "metadata").is_dir()
        if of_bag and (folder / "INCOMPLETE").exists():
            raise InputError(
                f"{folder / 'INCOMPLETE'}: the download or the extraction of the data set did not "
                "finish; run the data set's extraction script until the file READY is there"
            )


def _nothing_inside(path: Path) -> InputError:
    for folder in (path / "data" / "packages", path):
        count = len(list(folder.glob("*.tar.zst")))
        if count:
            return InputError(
                f"{path}: a data set whose {count} packages are not extracted; extract them first: "
                f"mkdir -p results && for p in {folder.relative_to(path) / '*.tar.zst'}; do tar "
                '--zstd -xf "$p" -C results; done (metadata/package_members.tsv names the packages '
                "of each experiment)"
            )
    return InputError(
        f"{path}: no experiment of energy-benchmark here or in {', '.join(_ROOTS[:-1])}; an "
        f"experiment has {CONFIG}, {INFO} and its runs in data/NAME-psP-iI-N/"
    )


def read_records(root: Path) -> Records:
    """Read `config.yaml` and `info.json` of an experiment, of either generation.

    Raises:
        DataQualityError: One of them is cut off or holds something else.
        InputError: One of them cannot be read.
    """
    info = _document(root / INFO, json.loads, "JSON")
    config = _document(root / CONFIG, _parse_yaml, "YAML")
    facts: Mapping[str, Any] = info or {}
    runs = facts.get("param_map", facts) if info is not None else None
    if runs is not None and not isinstance(runs, dict):
        raise DataQualityError(
            f"{root / INFO}: param_map is no map of runs; copy the file again, or remove it to "
            "import without it"
        )
    settings = (config or {}).get("settings", {})
    if config is not None and not (settings and isinstance(settings, dict)):
        raise DataQualityError(
            f"{root / CONFIG}: no block settings, so whether a limit was in force is unknown; copy "
            "the file again"
        )
    benches: dict[str, Mapping[str, Any]] = {}
    for entry in _list((config or {}).get("benches")):
        if isinstance(entry, dict) and isinstance(entry.get("bench"), dict):
            benches[str(entry.get("name"))] = entry["bench"]
    states = facts.get("device_power_states")
    first = _list(states[0]) if isinstance(states, list) and states else []
    cores = facts.get("cpu_topology")
    return Records(
        runs=runs,
        settings=None if config is None else Settings(f"{root / CONFIG}: settings", settings),
        benches=benches,
        rated_watts=float(first[0]) if first and _is_number(first[0]) else None,
        node_cores={
            int(node): count
            for node, count in (cores if isinstance(cores, dict) else {}).items()
            if str(node).isdecimal() and isinstance(count, int) and count > 0
        },
    )


def read_run(run: RunFolder, records: Records) -> RunRecord:
    """What the records state of one run.

    A run that `info.json` does not list (an interrupted one) is looked up in `config.yaml` by its
    bench and its index.

    Raises:
        DataQualityError: The folder's name, `info.json` and `config.yaml` contradict each other.
    """
    entry = (records.runs or {}).get(run.path.name)
    listed = isinstance(entry, dict)
    arguments = None
    if isinstance(entry, dict):
        _require_agreement(run, entry)
        arguments = entry.get("args")
    bench = records.benches.get(run.bench)
    if bench is not None and bench.get("type", "Fio") == "Fio" and run.index.isdigit():
        combination = _combination(run, bench)
        arguments = arguments if isinstance(arguments, dict) else combination
    elif not isinstance(arguments, dict):
        arguments = bench
    if not isinstance(arguments, dict):
        return RunRecord(listed=listed)
    filesystem = arguments.get("fs")
    made = isinstance(filesystem, str) and filesystem != "None"
    requested = {
        option: str(values[0])
        for name, option in _FIO_OPTION.items()
        if len(values := _list(arguments.get(name))) == 1
    }
    for name in ("ramp_time", "runtime"):
        if arguments.get(name):
            requested[name] = str(arguments[name])
    return RunRecord(
        listed=listed,
        program=str(arguments["type"]) if "type" in arguments else None,
        filesystem=str(filesystem).lower() if made else None,
        options=_added_options(arguments),
        requested=requested,
    )


def _require_agreement(run: RunFolder, entry: Mapping[str, Any]) -> None:
    named: dict[str, Any] = {
        "power_state": -1 if run.power_state is None else run.power_state,
        "iteration": run.iteration,
        "name": run.bench,
        "idx": int(run.index) if run.index.isdigit() else entry.get("idx"),
    }
    for key, value in named.items():
        if key in entry and entry[key] != value:
            raise DataQualityError(
                f"{run.path}: {INFO} says {key} = {entry[key]!r}, the folder's name says {value}; "
                "restore the one that was changed, or leave the run out"
            )


def _combination(run: RunFolder, bench: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a fio bench with each list reduced to the value of this run."""
    lists = {name: _list(bench.get(name)) or [None] for name in _PRODUCT}
    index, count = int(run.index), math.prod(len(values) for values in lists.values())
    if index >= count:
        raise DataQualityError(
            f"{run.path}: index {index} is out of range: the bench {run.bench} of {CONFIG} has "
            f"{count} combinations, 0 to {count - 1}; restore the {CONFIG} of the run, or leave "
            "the run out"
        )
    chosen = dict(bench)
    for name, values in reversed(lists.items()):
        index, place = divmod(index, len(values))
        chosen[name] = [] if values[place] is None else [values[place]]
    return chosen


def _added_options(arguments: Mapping[str, Any]) -> dict[str, str] | None:
    """Options the bench put on fio's command line; fio's JSON leaves out those without a value."""
    if arguments.get("job_specific_extra_options"):
        return None
    extra = _list(arguments.get("extra_options"))
    words = _list(extra[0]) if extra and isinstance(extra[0], list) else list(extra)
    for matched in _list(arguments.get("matched_args")):
        words = [*words, *_list(matched.get("value"))] if isinstance(matched, dict) else words
    pairs = (str(word).lstrip("-").partition("=") for word in words)
    return {name: value if equals else "1" for name, equals, value in pairs}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """YAML as the tool reads it, where a tag such as `!User` names a variant."""


def _variant(loader: _Loader, name: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.MappingNode):
        return {name: loader.construct_mapping(node, deep=True)}
    return name


_Loader.add_multi_constructor("!", _variant)


def _parse_yaml(text: str) -> Any:
    try:
        return yaml.load(text, Loader=_Loader)
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(" ".join(str(error).split())) from None


def _document(path: Path, parse: Any, kind: str) -> dict[str, Any] | None:
    """The map that a file holds; None where there is no such file."""
    try:
        document = parse(read_input_text(path))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unreadable(path, error) from None
    except ValueError as error:
        raise DataQualityError(
            f"{path}: cut off or damaged {kind} ({error}); copy the file again"
        ) from None
    if not isinstance(document, dict):
        raise DataQualityError(f"{path}: holds no map; copy the file again")
    return document


_DATE = re.compile(r"-(\d{4}-\d\d-\d\d)_(\d\d)-(\d\d)-(\d\d)$")

_PERIODS = tuple(
    (datetime.fromisoformat(first), datetime.fromisoformat(last), letter)
    for first, last, letter in (
        ("0001-01-01 00:00:00", "2025-10-07 23:59:59", "A"),
        ("2025-10-08 14:31:15", "2025-11-07 11:51:15", "C"),
        ("2025-11-07 13:26:38", "2025-11-14 10:37:01", "D"),
        ("2025-11-14 11:44:36", "2025-11-25 07:30:56", "E"),
        ("2025-11-25 10:20:27", "2025-12-05 11:44:53", "B"),
        ("2025-12-05 12:24:56", "2025-12-10 17:45:38", "D"),
    )
)
"""First and last second of each period, and the letter that the readme gives it."""

_SECOND_D = _PERIODS[-1][0]
"""From here on an older version of the readme assigns every experiment to D."""

_CONTRADICTED = {
    "nvme-pst-eff-2025-11-16_18-44-20": "the paper's scripts call it C",
    "access-patterns-2025-11-18_00-31-53": "the paper's scripts read it both as A and as E",
}
"""Experiments that the plot scripts assign to another drive than the readme does."""


def readme_label(session: str) -> str | None:
    """The drive that the readme names for an experiment, such as `A (readme)`.

    Args:
        session: Name of the experiment's folder, which ends in its date.

    Returns:
        None where the name bears no date, or its date lies in no period of the readme.
    """
    date = _date(session)
    for first, last, letter in _PERIODS:
        if date is not None and first <= date <= last:
            return f"{letter} (readme)"
    return None


def drive_notes(sessions: Sequence[str], device: str | None) -> list[str]:
    """What the reader must know about the drives of these experiments.

    Args:
        sessions: Names of the experiments' folders.
        device: Drive that the user named for all of them; None where the labels are used.
    """
    by_label: dict[str, list[str]] = {}
    unlabelled = []
    for session in sessions:
        label = readme_label(session)
        if label is not None:
            by_label.setdefault(label, []).append(session)
        elif _date(session) is not None:
            unlabelled.append(session)
    counts = ", ".join(f"{label}: {len(by_label[label])}" for label in sorted(by_label))
    notes = []
    if device is not None and len(by_label) > 1:
        notes.append(
            f"--device says {device} for all experiments, but by their dates the readme of the "
            f"IISWC 2026 data set assigns them to several drives ({counts}); import the "
            "experiments of each drive on their own"
        )
    if device is None and by_label:
        notes.append(
            "device_model is a label: the letter that the readme of the IISWC 2026 data set gives "
            f"to the date of an experiment ({counts} experiments). No file names a model. Pass "
            "--device where the model is known or the runs are not of that data set"
        )
    if device is None and by_label.keys() & {"A (readme)", "B (readme)"}:
        notes.append(
            "the paper's scripts exchange A and B of the readme (the runs of 1 to 5 December 2025 "
            "are B in the readme, A in the scripts). Hint: by its idle and peak power, A of the "
            "readme is a Samsung 980 PRO 1TB; this is inferred and stated nowhere"
        )
    notes += [
        f"{session}: drive in doubt: the date is that of {readme_label(session)}, "
        f"{_CONTRADICTED[session]}"
        for session in sessions
        if session in _CONTRADICTED
    ]
    late = [name for name in sessions if (date := _date(name)) is not None and date >= _SECOND_D]
    if device is None and late:
        notes.append(
            f"{', '.join(late)}: the newer readme assigns D a second time, from 5 to 10 December "
            "2025; the older one assigns everything after 5 December 2025, 12:24:56, to D. Whether "
            "it is the same drive as in November is not stated"
        )
    if device is None and unlabelled:
        notes.append(
            f"{', '.join(unlabelled)}: the date lies in no period of the readme, so the drive is "
            "unknown; pass --device"
        )
    return notes


def _date(session: str) -> datetime | None:
    match = _DATE.search(session)
    try:
        return datetime.fromisoformat("{} {}:{}:{}".format(*match.groups())) if match else None
    except ValueError:
        return None
