"""Compares the embedded engine with a folder of MQSim's reference results, case by case.

The folder holds `golden.csv`, one row per flow, and `cases/NAME.ssd.xml` and `.wl.xml`; results
must be equal. `golden_gcfix.csv` and `cases_gcfix/` are what MQSim gives with one defect of its
garbage collection corrected: physical mode must come near them.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from iojoule.datasets.errors import InputError, IojouleError
from iojoule.sim.device import DeviceConfig, HostInterface
from iojoule.sim.engines import Engine
from iojoule.sim.engines import engine as engine_named
from iojoule.sim.formats.files import read_drive, read_workload
from iojoule.sim.result import EngineName, FlowResult, Mode, ScenarioResult
from iojoule.sim.workers import Pool
from iojoule.sim.workers.local import HERE
from iojoule.sim.workload import Scenario

TABLES = {Mode.COMPAT: ("golden.csv", "cases"), Mode.PHYSICAL: ("golden_gcfix.csv", "cases_gcfix")}
"""What each mode is compared with: the table and the folder of its inputs."""

MEAN_SLACK_NS = 1.0
PRINTED_SLACK = 5e-6
"""The table prints means with six digits."""
PHYSICAL_SLACK = 0.10

Reading = Callable[[ScenarioResult, FlowResult], float | None]


def _flow(name: str) -> Reading:
    return lambda _, flow: getattr(flow, name)


def _device(name: str) -> Reading:
    return lambda result, _: getattr(result.device, name)


def _sum(name: str) -> Reading:
    return lambda result, _: sum(getattr(result.device, name))


_FLOW_COUNTS = ("serviced", "serviced_read", "serviced_write")
_NVME_ONLY = ("flow_last_completion_ns", "p50_ns", "p99_ns", "p999_ns")
MEANS = ("drt_ns", "drt_read_ns", "drt_write_ns", "e2e_ns")
_DEVICE_COUNTS = (
    "cmd_read",
    "cmd_mp_read",
    "cmd_prog",
    "cmd_mp_prog",
    "cmd_erase",
    "cmd_mp_erase",
    "map_reads",
    "pages_read",
    "pages_programmed",
    "blocks_erased",
    "cmt_queries",
    "cmt_hits",
    "gc_exec",
    "wl_exec",
)
COLUMNS: dict[str, Reading] = {
    **{name: _flow(name) for name in (*_FLOW_COUNTS, "sim_end_ns", *_NVME_ONLY, "max_drt_ns")},
    **{name: _flow(name) for name in MEANS},
    **{name: _device(name) for name in _DEVICE_COUNTS},
    "map_writes_queued": _device("map_writes"),
    "chip_exec_ns": _sum("chip_exec_ns"),
    "chip_xfer_ns": _sum("chip_transfer_ns"),
}
"""Column of the table -> what it is compared with."""
PHYSICAL_COLUMNS = ("serviced", "drt_ns")


@dataclass(frozen=True)
class Case:
    """One reference run: its inputs and its rows, one per flow."""

    name: str
    group: str
    ssd: Path
    workload: Path
    rows: tuple[Mapping[str, str], ...]


@dataclass(frozen=True)
class Difference:
    """A value that is not that of the reference."""

    flow: int
    column: str
    expected: float
    got: float | None


@dataclass(frozen=True)
class Verdict:
    """What came out of one case.

    Attributes:
        compared: How many values were.
        failure: Why there is nothing to compare, where the run failed.
        speedup: User time of MQSim's run over that of this one.
    """

    case: Case
    compared: int
    differences: tuple[Difference, ...]
    failure: str | None = None
    speedup: float | None = None

    @property
    def equal(self) -> bool:
        """Whether nothing differs."""
        return not self.differences and self.failure is None


def read_cases(folder: str | Path, mode: Mode = Mode.COMPAT) -> list[Case]:
    """The cases of a folder in the order of its table.

    Raises:
        InputError: The table or an input file is missing, or a column is.
    """
    table, inputs = TABLES[mode]
    path = Path(folder) / table
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            rows = list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(
            f"{path}: cannot be read ({error}); name a folder of reference runs"
        ) from None
    missing = [
        name for name in ("case", "group", *COLUMNS) if name not in (reader.fieldnames or ())
    ]
    if missing:
        raise InputError(f"{path}: has no column {missing[0]}; it is no table of reference runs")
    return [
        _case(name, tuple(flows), Path(folder) / inputs)
        for name, flows in groupby(rows, key=lambda row: row["case"])
    ]


def _case(name: str, rows: tuple[Mapping[str, str], ...], inputs: Path) -> Case:
    ssd, workload = inputs / f"{name}.ssd.xml", inputs / f"{name}.wl.xml"
    for path in (ssd, workload):
        if not path.is_file():
            raise InputError(f"{path}: is not there, but the table has its results; add it")
    return Case(name, rows[0]["group"], ssd, workload, rows)


def verify(case: Case, engine: Engine, mode: Mode = Mode.COMPAT) -> Verdict:
    """Run a case and compare it; a run that fails is a verdict too, not an error."""
    drive = read_drive(case.ssd).in_mode(mode)
    workload = read_workload(case.workload)
    scenario = workload.with_traces(0, case.workload.parent.parent)
    device = drive.device
    if mode is Mode.PHYSICAL:
        device, scenario = as_mqsim_has_it(case, device, scenario)
    try:
        result = engine.run(device, scenario)
    except IojouleError as error:
        return Verdict(case, 0, (), failure=error.message)
    sata = device.host_interface is HostInterface.SATA
    columns = list(PHYSICAL_COLUMNS if mode is Mode.PHYSICAL else COLUMNS)
    if sata:  # MQSim's percentiles were recorded at its NVMe interface only
        columns = [name for name in columns if name not in _NVME_ONLY]
    differences = [
        difference
        for number, (row, flow) in enumerate(zip(case.rows, result.flows, strict=True))
        for name in columns
        if (difference := _difference(number, name, row, result, flow, mode))
    ]
    cost = result.run_user_seconds
    return Verdict(
        case,
        len(columns) * len(case.rows),
        tuple(differences),
        speedup=float(case.rows[0]["mqsim_user_s"]) / cost if cost > 0 else None,
    )


def as_mqsim_has_it(
    case: Case, device: DeviceConfig, scenario: Scenario
) -> tuple[DeviceConfig, Scenario]:
    """A corrected case in physical mode, with what MQSim does switched on where it can be.

    No suspension, which MQSim parses and ignores; no spare bytes on the channel; writes held back
    beyond a page a plane. MQSim starts a sequential flow on a drive that is filled and not worn in.

    The corrected MQSim still loses requests to the collector's barrier (3 of 63,307 in case 002),
    and a lost one keeps its place in the queue. So the depth is the one that it kept on average:
    throughput times latency.
    """
    row, (flow,) = case.rows[0], scenario.flows
    like = {
        "suspension": "none",
        "physical": {
            "check_consistency": True,
            "controller": {"dirty_pages_per_plane": 1},
            "nand": {
                "transfer_metadata": False,
                "initial_state": "filled" if row["addr"] == "STREAMING" else "steady",
            },
        },
    }
    depth = round(float(row["iops_over_last_completion"]) * float(row["drt_ns"]) / 1e9)
    return (
        DeviceConfig.model_validate({**device.model_dump(), **like}),
        Scenario(flows=(flow.model_copy(update={"queue_depth": depth}),)),
    )


def _difference(
    number: int,
    column: str,
    row: Mapping[str, str],
    result: ScenarioResult,
    flow: FlowResult,
    mode: Mode,
) -> Difference | None:
    expected, got = float(row[column]), COLUMNS[column](result, flow)
    if mode is Mode.PHYSICAL:
        slack = PHYSICAL_SLACK * abs(expected)
    elif column in MEANS:
        slack = max(MEAN_SLACK_NS, PRINTED_SLACK * abs(expected))
    else:
        slack = 0.0
    if got is not None and abs(got - expected) <= slack:
        return None
    return Difference(number, column, expected, got)


def verify_all(
    cases: Sequence[Case],
    mode: Mode = Mode.COMPAT,
    *,
    pool: Pool = HERE,
    watch: Callable[[int, float], None] | None = None,
) -> list[Verdict]:
    """The verdicts in the order of the cases.

    Args:
        cases: What to compare.
        mode: Of the reference.
        pool: Where the cases run.
        watch: Told of each case when it is done.

    Raises:
        InputError: An input file cannot be read.
    """

    def done(index: int, _: Verdict) -> None:
        if watch is not None:
            watch(index, 1.0)

    return pool.map(_verdict, cases, shared=mode, done=done)


def _verdict(mode: Mode, case: Case) -> Verdict:
    return verify(case, engine_named(EngineName.EMBEDDED), mode)
