"""Results of energy-benchmark, the tool of Kanichai's thesis: `iojoule import thesis PATH...`.

The same tool recorded the IISWC 2026 data set. What fio did is read as `import fio` reads it; the
sensors beside it give the power. Only the part of a recording counts that certainly lies within
fio's measured time (`measured_window`), so that ramp, start-up and end are in no figure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from iojoule.datasets.errors import DataQualityError, InputError
from iojoule.datasets.importers import ImportOptions
from iojoule.datasets.importers import thesis_sensors as sensors
from iojoule.datasets.importers.fio import measurement
from iojoule.datasets.importers.fio_file import FioFile, Found, load
from iojoule.datasets.importers.fio_jobs import Entry, entries, phases
from iojoule.datasets.importers.fio_options import parse_fio_time
from iojoule.datasets.importers.thesis_folder import (
    CONFIG,
    INFO,
    RESULT,
    Experiment,
    Records,
    RunFolder,
    RunRecord,
    Settings,
    drive_notes,
    find_experiments,
    missing_experiments,
    read_records,
    read_run,
    readme_label,
)
from iojoule.datasets.importers.units import parse_fio_size
from iojoule.datasets.provenance import ExcludedRow, Provenance, SourceFile
from iojoule.datasets.schema import from_row
from iojoule.datasets.store import Dataset
from iojoule.datasets.vocabulary import BYPASSING_ENGINES, Scheduler

_WINDOW_NOTE = (
    "powers are means over the part of each recording that certainly lies within fio's measured "
    "time ({least:.3g} to {most:.3g} s a run); ramp, start-up and end are cut away"
)
_DRAM_NOTE = (
    "dram_power_watts is what the tool calls dram-N, the subdomain 0 of each package; on a client "
    "processor that is its cores: leave the field out there"
)
_OTHER_PROGRAMS = {"results.csv": "h5bench", "markers.csv": "Filebench or YCSB"}
"""Files that only other benchmarks than fio write."""


@dataclass
class _Import:
    """What an import gathers."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    sources: dict[Path, SourceFile] = field(default_factory=dict)
    excluded: list[ExcludedRow] = field(default_factory=list)
    missing: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    above_rating: Counter[str] = field(default_factory=Counter)

    def add_source(self, path: Path, name: str) -> None:
        if path not in self.sources and path.exists():
            self.sources[path] = SourceFile.of(path, name=name)


def import_thesis(
    paths: Sequence[Path | str],
    keep_going: bool = False,
    *,
    constants: Mapping[str, Any] | None = None,
) -> Dataset:
    """Read runs of fio that energy-benchmark made and watched.

    Args:
        paths: Extracted data sets, folders of experiments, experiments, or single runs.
        keep_going: Leave out damaged runs and name them in the warnings.
        constants: Fields that the files do not state, such as device_model.

    Returns:
        One measurement per run, in the order of the folders. `repeat_index` is the tool's
        iteration, `session_id` the experiment's folder, `series_id` the bench in it. Where
        device_model is not among the constants it is the label that the readme of the IISWC 2026
        data set gives to the date. Runs of other benchmarks are left out by name; warnings say
        what is doubtful or was not recorded.

    Raises:
        DataQualityError: A run is damaged, or more than 8 % off Little's law.
        InputError: There is no run, or one did what a measurement cannot express.
    """
    given = [Path(path) for path in paths]
    experiments = find_experiments(given)
    absent = missing_experiments(given, experiments)
    gathered = _Import()
    if absent:
        gathered.warnings.append(
            f"{len(absent)} of the data set's experiments are not extracted, {absent[0]} among them"
        )
    for experiment in experiments:
        _import_experiment(experiment, gathered, constants or {}, keep_going)
    if not gathered.rows:
        reasons = gathered.warnings + [
            f"{count} x {reason}"
            for reason, count in Counter(row.reason for row in gathered.excluded).items()
        ]
        raise InputError(f"nothing could be imported: {'; '.join(reasons)}")
    names = dict.fromkeys(name for row in gathered.rows for name in row)
    columns = {name: [row.get(name) for row in gathered.rows] for name in names}
    provenance = Provenance(
        importer="thesis",
        sources=tuple(gathered.sources.values()),
        warnings=(*_general_notes(gathered, constants or {}), *gathered.warnings),
        excluded=tuple(gathered.excluded),
    )
    return Dataset.from_columns(columns, provenance)


def run_import(paths: Sequence[Path], options: ImportOptions) -> Dataset:
    """The importer as the registry knows it; raises as `import_thesis`."""
    return import_thesis(paths, options.keep_going, constants=options.constants)


def _general_notes(gathered: _Import, constants: Mapping[str, Any]) -> list[str]:
    """What holds for the whole import."""
    sessions = list(dict.fromkeys(str(row["session_id"]) for row in gathered.rows))
    device = constants.get("device_model")
    notes = drive_notes(sessions, None if device is None else str(device))
    if gathered.seconds:
        least, most = min(gathered.seconds), max(gathered.seconds)
        notes.append(_WINDOW_NOTE.format(least=least, most=most))
    if gathered.above_rating:
        notes.append(
            f"{gathered.above_rating['readings']} readings of the drive's power in "
            f"{gathered.above_rating['runs']} runs lie above its rating; the tool drops them, "
            "here they count"
        )
    if any("dram_power_watts" in row for row in gathered.rows):
        notes.append(_DRAM_NOTE)
    return notes + [
        f"no {name} in {count} of {len(gathered.rows)} runs: what it would say is unknown there"
        for name, count in gathered.missing.items()
    ]


def _import_experiment(
    experiment: Experiment, gathered: _Import, constants: Mapping[str, Any], keep_going: bool
) -> None:
    """Import the runs of an experiment; with `keep_going`, what is damaged is named and left."""
    session, private = experiment.root.name, str(experiment.root)

    def skip(error: InputError) -> None:
        if not keep_going:
            raise error
        gathered.warnings.append(f"skipped: {error.message.replace(private, session)}")

    try:
        records = read_records(experiment.root)
    except InputError as error:
        skip(error)
        return
    if not experiment.runs:
        skip(InputError(f"{experiment.root}: data/ holds no run; extract all packages of it again"))
    for run in experiment.runs:
        try:
            _import_run(run, records, gathered, constants)
        except InputError as error:
            skip(error)
    for name in (INFO, CONFIG):
        gathered.add_source(experiment.root / name, f"{session}/{name}")
    pauses = [
        f"{name} = {records.settings.get(name)} s"
        for name in ("sleep_between_experiments", "sleep_after_writes")
        if records.settings and records.settings.get(name)
    ]
    if pauses:
        gathered.warnings.append(f"{session}: not recorded: {', '.join(pauses)}")
    here = {run.path.name for run in experiment.runs}
    absent = [name for name in records.runs or () if name not in here]
    if experiment.whole and absent:
        gathered.warnings.append(
            f"{session}: {INFO} lists {len(absent)} runs whose folders are not there, {absent[0]} "
            "among them; extract all packages of the experiment to have them"
        )


def _import_run(
    run: RunFolder, records: Records, gathered: _Import, constants: Mapping[str, Any]
) -> None:
    record = read_run(run, records)
    reason = _reason_to_exclude(run, record, records)
    if reason is not None:
        gathered.excluded.append(ExcludedRow(source=run.name, reason=reason))
        return
    if not (run.path / RESULT).is_file():
        raise DataQualityError(
            f"{run.path}: no {RESULT}, so the run did not end; leave the run out, or import the "
            "others with --keep-going"
        )
    name = f"{run.name}/{RESULT}"
    file = _with_options(load(Found(run.path / RESULT, name, f"{run.session}/{run.bench}")), record)
    _require_requested(file, record)
    parts = phases(file)
    recordings = {name: sensors.look_at(run.path / name) for name in sensors.FILES}
    notes = list(file.notes)
    if records.runs is not None and not record.listed:
        notes.append(f"{run.name}: {INFO} does not list the run: it may have been interrupted")
    label = readme_label(run.session)
    rows = []
    for part in parts:
        members = entries(file, part)
        row, remarks = measurement(file, members, len(parts) == 1, strict=True)
        notes += remarks
        row |= _conditions(run, record, records, row, notes)
        if len(parts) == 1:
            row |= _powers(run, recordings, members, row, records, gathered, notes)
        row = {**({"device_model": label} if label else {}), **constants, **row}
        from_row(row, where=f"{file.path}, job {part[0].jobname!r}")
        rows.append(row)
    if len(parts) > 1:
        notes.append(
            f"{run.name}: jobs ran one after the other, the sensors do not tell which; powers are "
            "left out"
        )
    gathered.rows += rows
    gathered.warnings += notes
    absent = [name for name in sensors.FILES if recordings[name] is None]
    absent += [INFO] if records.runs is None else []
    absent += [CONFIG] if records.settings is None else []
    gathered.missing.update(absent)
    for name in (RESULT, *(name for name in sensors.FILES if recordings[name] is not None)):
        gathered.add_source(run.path / name, f"{run.name}/{name}")


def _reason_to_exclude(run: RunFolder, record: RunRecord, records: Records) -> str | None:
    """Why no measurement can hold the run, whatever its files contain."""
    program = record.program
    if program is None:
        present = [name for name in _OTHER_PROGRAMS if (run.path / name).is_file()]
        program = _OTHER_PROGRAMS[present[0]] if present else None
    if program not in (None, "Fio"):
        return f"a run of {program}: only fio's state what a measurement holds"
    if _has_cost_control(records.settings or Settings()):
        return "io.cost of the control group throttled the run by a model: not at full speed"
    return None


def _has_cost_control(settings: Settings) -> bool:
    """Whether io.cost.qos was written; the tool writes nothing for `Auto`."""
    qos = settings.block("cgroup").block("io").block("cost").get("qos")
    return qos not in (None, "Auto")


def _with_options(file: FioFile, record: RunRecord) -> FioFile:
    """Add the options that fio leaves out of its JSON and the tool remembers.

    Where the options of a bench are known in full, one that is not among them was not given.
    """
    stated = {key: record.requested[key] for key in ("ramp_time",) if key in record.requested}
    if record.options is not None:
        stated |= record.options
        engines = {
            {**file.run.global_options, **job.options}.get("ioengine") for job in file.run.jobs
        }
        if engines <= {"io_uring", "io_uring_cmd"}:
            stated.setdefault("hipri", "0")
    run = file.run.model_copy(update={"global_options": {**stated, **file.run.global_options}})
    return FioFile(file.path, file.name, file.series, run, file.notes)


def _require_requested(file: FioFile, record: RunRecord) -> None:
    """Refuse fio's results of another parameter combination than the folder's.

    Raises:
        DataQualityError: They contradict each other; names the option.
    """
    if record.options is None:
        return  # each job had options of its own, which nothing lists
    for job in file.run.jobs:
        options = {**file.run.global_options, **job.options}
        for name, expected in record.requested.items():
            if name in record.options or name not in options:
                continue
            if _comparable(name, options[name]) != _comparable(name, expected):
                raise DataQualityError(
                    f"{file.path}: fio ran with {name}={options[name]}, but {INFO} or {CONFIG} "
                    f"says {expected}: the results are another run's; restore them, or leave the "
                    "run out"
                )


def _comparable(name: str, text: str) -> object:
    if name == "bs":
        return parse_fio_size(text) or text
    if name in ("ramp_time", "runtime"):
        return parse_fio_time(text, "s") or text
    return text.strip().lower()


def _conditions(
    run: RunFolder,
    record: RunRecord,
    records: Records,
    row: Mapping[str, Any],
    notes: list[str],
) -> dict[str, Any]:
    """What the folder, `info.json` and `config.yaml` state of a run."""
    settings = records.settings or Settings()
    fields: dict[str, Any] = {
        "session_id": run.session,
        "repeat_index": run.iteration,
        "power_state": run.power_state,
        "filesystem": record.filesystem,
    }
    bypassing = row["engine"] in BYPASSING_ENGINES
    scheduler = settings.get("scheduler")
    if scheduler in list(Scheduler) and "scheduler" not in row and not bypassing:
        fields["scheduler"] = scheduler
    node = _whole(settings.block("numa").get("cpunodebind"))
    if node is not None:
        fields["job_numa_node"] = node
        fields["cpu_cores_available"] = records.node_cores.get(node)
    limit = settings.block("cpu_freq").number("freq")
    if limit:  # in kHz; the tool sets it as lowest and highest frequency
        fields |= {"cpu_frequency_max_hertz": limit * 1e3, "cpu_governor": "performance"}
    cores = _cores(settings.block("cgroup").block("cpuset").get("cpus"))
    if cores is not None:
        fields["cpu_cores_available"] = min(cores, fields.get("cpu_cores_available") or cores)
    if "cpu_cores_available" in row:
        fields.pop("cpu_cores_available", None)
    control = settings.block("cgroup").block("io")
    fields |= _throttled_demand(run, control.block("max"), row, bypassing, notes)
    notes += [
        f"{run.name}: not recorded: io.{name}={control.get(name)} of its control group"
        for name in ("weight", "latency")
        if control.get(name) is not None
    ]
    if settings.get("should_trace") is True:
        notes.append(f"{run.name}: calls were traced meanwhile, which costs CPU time and power")
    return {name: value for name, value in fields.items() if value is not None or name in row}


def _throttled_demand(
    run: RunFolder,
    limits: Settings,
    row: Mapping[str, Any],
    bypassing: bool,
    notes: list[str],
) -> dict[str, float | None]:
    """The demand that `io.max` of the control group leaves to a run.

    A limited run is not at full speed: the limit of its direction becomes its demand. In a mix the
    direction that is throttled first holds the other one back, because fio keeps their share.
    """
    reads = {"read": 1.0, "write": 0.0}.get(row["operation"], row.get("read_fraction", 0.0))
    shares = {"r": reads, "w": 1.0 - reads}
    rates: dict[str, float] = {}
    for unit in ("bps", "iops"):
        caps = [
            rate / share
            for side, share in shares.items()
            if share and (rate := limits.block(unit).number(side)) is not None
        ]
        if caps:
            rates[unit] = min(caps)
    if not rates:
        return {}
    if bypassing:
        notes.append(f"{run.name}: io.max was set, but {row['engine']} bypasses the block layer")
        return {}
    notes.append(f"{run.name}: io.max of its control group held it back: its demand is that limit")
    if row.get("demand_operations_per_second"):
        rates["iops"] = min(rates.get("iops", float("inf")), row["demand_operations_per_second"])
    if row.get("demand_bytes_per_second"):
        rates["bps"] = min(rates.get("bps", float("inf")), row["demand_bytes_per_second"])
    if "iops" in rates and "bps" in rates:
        rates["iops"] = min(rates["iops"], rates.pop("bps") / row["request_bytes"])
    return {
        "demand_bytes_per_second": rates.get("bps"),
        "demand_operations_per_second": rates.get("iops"),
    }


def _whole(value: Any) -> int | None:
    """A whole number of at least 0, as the settings write it."""
    return int(value) if str(value).isdecimal() else None


def _cores(ranges: Any) -> int | None:
    """Number of cores in a list of ranges such as [[0, 3], [8, null]]."""
    cores: set[int] = set()
    for pair in ranges if isinstance(ranges, list) else []:
        ends = [_whole(end) for end in (pair if isinstance(pair, list) else [pair])]
        known = [end for end in ends if end is not None]
        cores |= set(range(known[0], min(known[-1], 65535) + 1)) if known else set()
    return len(cores) or None


def _powers(
    run: RunFolder,
    recordings: Mapping[str, sensors.Recording | None],
    members: list[Entry],
    row: Mapping[str, Any],
    records: Records,
    gathered: _Import,
    notes: list[str],
) -> dict[str, float]:
    """What the sensors recorded in the measured time."""
    present = {name: recording for name, recording in recordings.items() if recording is not None}
    if not present:
        return {}
    runtime_ms = 1000 * max(member.total.runtime_seconds for member in members)
    recorded = max(recording.last_ms for recording in present.values())
    ramp_ms = max(_ramp_ms(member) for member in members)
    window = sensors.measured_window(recorded, ramp_ms, runtime_ms)
    if window is None:
        if recorded < ramp_ms + runtime_ms:
            raise DataQualityError(
                f"{run.path}: the sensors recorded {recorded / 1000:.3g} s, fio ran for "
                f"{(ramp_ms + runtime_ms) / 1000:.3g} s: their files are cut off or another run's; "
                "copy them again, or remove them to import without power"
            )
        notes.append(
            f"{run.name}: start and end took {(recorded - ramp_ms - runtime_ms) / 1000:.3g} s "
            f"beside {runtime_ms / 1000:.3g} s of measured time, so which part was measured is not "
            "known; powers are left out"
        )
        return {}
    gathered.seconds.append(window.seconds)
    rate, limit = float(row["throughput_bytes_per_second"]), row.get("cpu_frequency_max_hertz")
    remarks: list[str] = []
    fields: dict[str, float] = {}
    for name, recording in present.items():  # one at a time: a long run's fill the memory
        series = recording.within(window)
        if name == sensors.DEVICE:
            fields |= sensors.device_power(series, remarks)
            above = sensors.readings_above(series, records.rated_watts or float("inf"))
            if above and "device_power_watts" in fields:
                gathered.above_rating.update(readings=above, runs=1)
        elif name == sensors.RAPL:
            fields |= sensors.rapl_power(series, remarks)
        elif name == sensors.WALL:
            fields |= sensors.wall_power(series, remarks)
        elif name == sensors.BLOCK:
            fields |= sensors.block_layer(series, rate, remarks)
        elif limit:
            remarks += sensors.frequency_in_force(series, limit)
    notes += [f"{run.name}: {text}" for text in remarks]
    return fields


def _ramp_ms(member: Entry) -> float:
    """How long the job ran before it was measured."""
    nanoseconds = parse_fio_time(member.options.get("ramp_time", "0"), "s")
    if nanoseconds is None:
        raise InputError(
            f"{member.where}: ramp_time={member.options['ramp_time']} is not a time like 10s",
            field="ramp_time",
        )
    return nanoseconds / 1e6
