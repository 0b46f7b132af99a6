"""Results of energy-benchmark, the tool of Kanichai's thesis: `iojoule import thesis PATH...`.

What fio did is read as `import fio` reads it; the sensors beside it give the power. Only the part
of a recording counts that certainly lies within fio's measured time (`measured_window`), so that
ramp, start-up and end are in no figure.
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
    Info,
    RunFolder,
    find_runs,
    load_info,
    read_info,
    read_settings,
)
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


@dataclass
class _Found:
    """What an import gathers."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    sources: dict[Path, SourceFile] = field(default_factory=dict)
    excluded: list[ExcludedRow] = field(default_factory=list)
    missing: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    infos: dict[Path, dict[str, Any]] = field(default_factory=dict)
    settings: dict[Path, Mapping[str, str]] = field(default_factory=dict)

    def source(self, path: Path, name: str) -> None:
        if path not in self.sources and path.exists():
            self.sources[path] = SourceFile.of(path, name=name)

    def root(self, run: RunFolder) -> tuple[dict[str, Any], Mapping[str, str]]:
        """`info.json` and the settings of a results folder, read once."""
        root = run.root
        if root not in self.infos:
            self.infos[root] = load_info(root / INFO)
            self.settings[root] = read_settings(root / CONFIG)
            for name in (INFO, CONFIG):
                self.source(root / name, f"{run.session}/{name}")
        return self.infos[root], self.settings[root]


def import_thesis(
    paths: Sequence[Path | str],
    keep_going: bool = False,
    *,
    constants: Mapping[str, Any] | None = None,
) -> Dataset:
    """Read runs of fio that energy-benchmark made and watched.

    Args:
        paths: Folders of results, folders above them, or single runs.
        keep_going: Leave out damaged runs and name them in the warnings.
        constants: Fields that the files do not state, such as device_model.

    Returns:
        One measurement per run, in the order of the folders. `repeat_index` is the tool's
        iteration, `session_id` the results folder, `series_id` the experiment in it. Runs of other
        benchmarks are left out by name; warnings say what is doubtful or was not recorded.

    Raises:
        DataQualityError: A run is damaged, or more than 8 % off Little's law.
        InputError: There is no run, or one did what a measurement cannot express.
    """
    found = _Found()
    runs = find_runs([Path(path) for path in paths])
    for run in runs:
        try:
            _import_run(run, found, constants or {})
        except InputError as error:
            if not keep_going:
                raise
            place = error.message.replace(str(run.path), run.name)
            found.warnings.append(f"skipped: {place.replace(str(run.root), run.session)}")
    if not found.rows:
        reasons = found.warnings + [f"{one.source}: {one.reason}" for one in found.excluded]
        raise InputError(f"nothing could be imported: {'; '.join(reasons)}")
    names = dict.fromkeys(name for row in found.rows for name in row)
    columns = {name: [row.get(name) for row in found.rows] for name in names}
    provenance = Provenance(
        importer="thesis",
        sources=tuple(found.sources.values()),
        warnings=(*_general(found), *found.warnings),
        excluded=tuple(found.excluded),
    )
    return Dataset.from_columns(columns, provenance)


def run_import(paths: Sequence[Path], options: ImportOptions) -> Dataset:
    """The importer as the registry knows it; raises as `import_thesis`."""
    return import_thesis(paths, options.keep_going, constants=options.constants)


def _general(found: _Found) -> list[str]:
    """What holds for the whole import."""
    notes = []
    if found.seconds:
        notes.append(_WINDOW_NOTE.format(least=min(found.seconds), most=max(found.seconds)))
    if any("dram_power_watts" in row for row in found.rows):
        notes.append(_DRAM_NOTE)
    return notes + [
        f"no {name} in {count} of {len(found.rows)} runs: what it would say is unknown there"
        for name, count in found.missing.items()
    ]


def _import_run(run: RunFolder, found: _Found, constants: Mapping[str, Any]) -> None:
    infos, settings = found.root(run)
    info = read_info(run, infos)
    if info is not None and info.program not in (None, "Fio"):
        reason = f"a run of {info.program}: only fio's say what a measurement holds"
        found.excluded.append(ExcludedRow(source=run.name, reason=reason))
        return
    if not (run.path / RESULT).is_file():
        raise DataQualityError(
            f"{run.path}: no {RESULT}, so the run did not end; leave the run out, or import the "
            "others with --keep-going"
        )
    name = f"{run.name}/{RESULT}"
    file = _with_options(load(Found(run.path / RESULT, name, f"{run.session}/{run.bench}")), info)
    parts = phases(file)
    series = {one: sensors.load(run.path / one) for one in sensors.FILES}
    notes = list(file.notes)
    if infos and info is None:
        notes.append(f"{run.name}: {INFO} does not know the run: it may have been interrupted")
    rows = []
    for part in parts:
        members = entries(file, part)
        row, said = measurement(file, members, len(parts) == 1)
        notes += said
        row |= _conditions(run, info, settings, row, notes)
        if len(parts) == 1:
            row |= _powers(run, series, members, row, found, notes)
        row = {**constants, **row}
        from_row(row, where=f"{file.path}, job {part[0].jobname!r}")
        rows.append(row)
    if len(parts) > 1:
        notes.append(
            f"{run.name}: jobs ran one after the other, the sensors do not tell which; powers are "
            "left out"
        )
    found.rows += rows
    found.warnings += notes
    found.missing.update(one for one in sensors.FILES if series[one] is None)
    for one in (RESULT, *(name for name in sensors.FILES if series[name] is not None)):
        found.source(run.path / one, f"{run.name}/{one}")


def _with_options(file: FioFile, info: Info | None) -> FioFile:
    """Add the switches that fio leaves out of its JSON and the tool remembers.

    Where the tool's options are known in full, one that is not among them was not given.
    """
    if info is None or info.options is None:
        return file
    stated = dict(info.options)
    engines = {{**file.run.global_options, **job.options}.get("ioengine") for job in file.run.jobs}
    if engines <= {"io_uring", "io_uring_cmd"}:
        stated.setdefault("hipri", "0")
    run = file.run.model_copy(update={"global_options": {**stated, **file.run.global_options}})
    return FioFile(file.path, file.name, file.series, run, file.notes)


def _conditions(
    run: RunFolder,
    info: Info | None,
    settings: Mapping[str, str],
    row: Mapping[str, Any],
    notes: list[str],
) -> dict[str, Any]:
    """What the folder, `info.json` and `config.yaml` say of a run."""
    fields: dict[str, Any] = {
        "session_id": run.session,
        "repeat_index": run.iteration,
        "power_state": run.power_state,
        "filesystem": info.filesystem if info else None,
    }
    bypassing = row["engine"] in BYPASSING_ENGINES
    scheduler = settings.get("scheduler")
    if scheduler in list(Scheduler) and "scheduler" not in row and not bypassing:
        fields["scheduler"] = scheduler
    node = settings.get("numa.cpunodebind", "")
    if node.isdigit():
        fields["job_numa_node"] = int(node)
    limit = settings.get("cpu_freq.freq", "")
    if limit.isdigit():  # in kHz; the tool sets it as lowest and highest frequency
        fields |= {"cpu_frequency_max_hertz": int(limit) * 1e3, "cpu_governor": "performance"}
    if any(name.startswith("cgroup.") for name in settings):
        notes.append(f"{run.name}: limits of a control group were in force, which are not recorded")
    if settings.get("should_trace") == "true":
        notes.append(f"{run.name}: calls were traced meanwhile, which costs CPU time and power")
    return {name: value for name, value in fields.items() if value is not None}


def _powers(
    run: RunFolder,
    series: Mapping[str, sensors.Series | None],
    members: list[Entry],
    row: Mapping[str, Any],
    found: _Found,
    notes: list[str],
) -> dict[str, float]:
    """What the sensors say of the measured time."""
    present = {name: one for name, one in series.items() if one is not None}
    if not present:
        return {}
    runtime_ms = 1000 * max(member.total.runtime_seconds for member in members)
    recorded = sensors.recorded_ms(list(present.values()))
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
    found.seconds.append(window.seconds)
    inside = {name: one.within(window) for name, one in present.items()}
    said: list[str] = []
    fields: dict[str, float] = {}
    if sensors.DEVICE in inside:
        fields |= sensors.device_power(inside[sensors.DEVICE], said)
    if sensors.RAPL in inside:
        fields |= sensors.rapl_power(inside[sensors.RAPL], said)
    if sensors.WALL in inside:
        fields |= sensors.wall_power(inside[sensors.WALL], said)
    if sensors.BLOCK in inside:
        rate = float(row["throughput_bytes_per_second"])
        fields |= sensors.block_layer(inside[sensors.BLOCK], rate, said)
    limit = row.get("cpu_frequency_max_hertz")
    if sensors.CPU in inside and limit:
        complaint = sensors.frequency_in_force(inside[sensors.CPU], limit)
        said += [complaint] if complaint else []
    notes += [f"{run.name}: {text}" for text in said]
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
