"""The user's own MQSim as an engine: run in a directory of its own, within limits, not trusted.

iojoule neither ships nor builds MQSim. It is looked for under IOJOULE_MQSIM, then as `MQSim` or
`mqsim` on the PATH. Every tag is written, the response log is switched on with a period of 0 (the
only way to percentiles and the end of the simulation), and rates are computed again from it. A
value that MQSim does not print is None in the result, and `UNAVAILABLE` gives the reason.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from iojoule.datasets.errors import InputError
from iojoule.datasets.programs import find_program, optional_program
from iojoule.sim.device import SECTOR_BYTES, DeviceConfig
from iojoule.sim.engines import SEED_STEP, EngineError, EngineMissingError, RunOptions
from iojoule.sim.engines.mqsim_process import (
    Execution,
    ProcessLimits,
    execute,
    raise_if_failed,
    raise_if_lost,
    raise_if_stopped,
)
from iojoule.sim.errors import ConfigError, LimitError, TraceError
from iojoule.sim.findings import Finding, Severity, refuse_errors
from iojoule.sim.formats.mqsim_inputs import write_device_xml, write_workload_xml
from iojoule.sim.formats.mqsim_result import (
    NS_PER_US,
    MqsimFlow,
    MqsimReport,
    MqsimTimes,
    read_response_log,
    read_result,
    read_serviced,
)
from iojoule.sim.known_defects import findings as known_defects
from iojoule.sim.result import (
    DeviceResult,
    EngineName,
    FlowResult,
    FlowSeries,
    LatencyByClass,
    LatencySummary,
    Mode,
    OriginCounts,
    ScenarioResult,
    TransactionTimes,
)
from iojoule.sim.workload import FlowConfig, FlowKind, Scenario, SizeDistribution

if TYPE_CHECKING:
    from numpy.typing import NDArray


RESOLUTION_NS = NS_PER_US
"""MQSim's response log has whole microseconds, cut off."""

UNAVAILABLE = {
    "events": "MQSim does not count its events",
    "device.cache_hits_read": "MQSim prints no cache statistics, nor those of DRAM and link",
    "device.die_busy_ns": "MQSim has busy times of chips only, of which one die works at a time",
    "device.energy_joules": "MQSim has no energy",
    "flows.sim_end_ns": "MQSim does not print when its last event was; this is the last completion "
    "in the response log, cut off to whole us",
}
MIXED = (
    "MQSim's response log does not say which completions were reads, and this flow has both; "
    "only the latency over both is known"
)


@dataclass(frozen=True)
class FlowRun:
    """What there is of one flow: what was asked for, MQSim's summary, serviced, the log."""

    asked: FlowConfig
    said: MqsimFlow
    serviced: int
    log: NDArray[np.int64]


def sim_end_ns(runs: Sequence[FlowRun]) -> int:
    """Last completion of any flow; as near to the end of the simulation as MQSim lets one see."""
    return max((int(run.log[-1, 0]) for run in runs if len(run.log)), default=0) * NS_PER_US


def unavailable(runs: Sequence[FlowRun], series_step_ns: int | None) -> dict[str, str]:
    """Which fields stay None, and why."""
    missing = dict(UNAVAILABLE)
    if any(_is_mixed(run.said) for run in runs):
        missing["flows.device_latency.read"] = missing["flows.device_latency.write"] = MIXED
        missing["flows.drt_read_ns"] = missing["flows.drt_write_ns"] = MIXED
        if series_step_ns:
            missing["flows.series"] = MIXED
    return missing


def flow_result(
    run: FlowRun,
    reads: TransactionTimes | None,
    writes: TransactionTimes | None,
    end_ns: int,
    series_step_ns: int | None,
) -> FlowResult:
    """One flow. Of a flow that mixes reads and writes the latencies by class are None."""
    said = run.said
    serviced_read, serviced_write = _serviced_by_class(run)
    return FlowResult(
        name=said.name,
        generated=said.requests,
        generated_read=said.reads,
        generated_write=said.writes,
        serviced=run.serviced,
        serviced_read=serviced_read,
        serviced_write=serviced_write,
        bytes_read=said.bytes_read,
        bytes_written=said.bytes_written,
        flow_last_completion_ns=int(run.log[-1, 0]) * NS_PER_US if len(run.log) else 0,
        sim_end_ns=end_ns,
        device_latency=_by_class(run, run.log[:, 1], said.device),
        end_to_end_latency=_by_class(run, run.log[:, 2], said.end_to_end),
        read_transactions=reads,
        write_transactions=writes,
        series=_series(run, series_step_ns, end_ns) if series_step_ns else None,
    )


def _is_mixed(said: MqsimFlow) -> bool:
    return said.reads > 0 and said.writes > 0


def _serviced_by_class(run: FlowRun) -> tuple[int | None, int | None]:
    said, serviced = run.said, run.serviced
    if serviced == said.requests:
        return said.reads, said.writes
    if not _is_mixed(said):
        return (serviced, 0) if said.reads else (0, serviced)
    asked = run.asked
    if asked.kind is FlowKind.SYNTHETIC and asked.size_distribution is SizeDistribution.FIXED:
        # MQSim's bytes are those of serviced requests, all of one size.
        size = asked.size_mean_sectors * SECTOR_BYTES
        return said.bytes_read // size, said.bytes_written // size
    return None, None


def _by_class(run: FlowRun, latencies_us: NDArray[np.int64], said: MqsimTimes) -> LatencyByClass:
    both = _summary(latencies_us, run.serviced, said.mean_us)
    if _is_mixed(run.said):
        return LatencyByClass(all=both)
    none = LatencySummary()
    if run.said.writes:
        return LatencyByClass(all=both, read=none, write=both)
    return LatencyByClass(all=both, read=both, write=none)


def _summary(
    latencies_us: NDArray[np.int64], serviced: int, said_mean_us: int | None
) -> LatencySummary:
    ordered = np.sort(latencies_us) * NS_PER_US
    if not len(ordered):
        return LatencySummary()

    def percentile(per_ten_thousand: int) -> int:
        index = (2 * per_ten_thousand * (len(ordered) - 1) + 10_000) // 20_000
        return int(ordered[index])

    mean_ns = float(ordered.mean())
    if said_mean_us is not None and abs(said_mean_us * NS_PER_US - mean_ns) < NS_PER_US:
        # The mean of what was cut off and the cut-off mean are both bounds from below.
        mean_ns = max(mean_ns, float(said_mean_us * NS_PER_US))
    return LatencySummary(
        count=serviced,
        mean_ns=mean_ns,
        min_ns=int(ordered[0]),
        max_ns=int(ordered[-1]),
        p50_ns=percentile(5_000),
        p90_ns=percentile(9_000),
        p99_ns=percentile(9_900),
        p999_ns=percentile(9_990),
        p9999_ns=percentile(9_999),
        resolution_ns=RESOLUTION_NS,
    )


def _series(run: FlowRun, step_ns: int, end_ns: int) -> FlowSeries | None:
    said = run.said
    if _is_mixed(said):
        return None
    step = (run.log[:, 0] * NS_PER_US) // step_ns
    steps = end_ns // step_ns + 1
    completed = np.bincount(step, minlength=steps)
    latency_sum = np.bincount(step, weights=run.log[:, 1], minlength=steps).astype(np.int64)
    latency_max = np.zeros(steps, dtype=np.int64)
    np.maximum.at(latency_max, step, run.log[:, 1])
    moved = completed * ((said.bytes_read + said.bytes_written) / max(run.serviced, 1))
    none = np.zeros(steps, dtype=np.int64)
    reads = said.writes == 0
    columns = {
        "serviced_read": completed if reads else none,
        "serviced_write": none if reads else completed,
        "bytes_read": moved.round().astype(np.int64) if reads else none,
        "bytes_written": none if reads else moved.round().astype(np.int64),
        "latency_sum_ns": latency_sum * NS_PER_US,
        "latency_max_ns": latency_max * NS_PER_US,
    }
    return FlowSeries.model_validate({name: tuple(c.tolist()) for name, c in columns.items()})


def device_result(report: MqsimReport, end_ns: int) -> DeviceResult:
    """The drive. Pages and blocks are the transactions that the queues handed to the chips.

    Busy times are MQSim's shares of the simulated time, to six decimals, times the last completion.
    """
    moves = report.counts.get("Average_Page_Movement_For_GC") or 0.0
    collections = report.count("Total_GC_Executions")
    transfers = [round(chip.transfer * end_ns) for chip in report.chips]
    return DeviceResult(
        pages_read_by_origin=_origins(report, "Read"),
        pages_programmed_by_origin=_origins(report, "Write"),
        blocks_erased_by_origin=OriginCounts(gc=report.dequeued("GC_Erase_TR_Queue")),
        cmd_read=report.count("Issued_Flash_Read_CMD"),
        cmd_mp_read=report.count("Issued_Flash_Multiplane_Read_CMD"),
        cmd_prog=report.count("Issued_Flash_Program_CMD"),
        cmd_mp_prog=report.count("Issued_Flash_Multiplane_Program_CMD"),
        cmd_erase=report.count("Issued_Flash_Erase_CMD"),
        cmd_mp_erase=report.count("Issued_Flash_Multiplane_Erase_CMD"),
        map_reads=report.count("Issued_Flash_Read_CMD_For_Mapping"),
        map_writes=report.count("Issued_Flash_Program_CMD_For_Mapping"),
        cmt_queries_read=report.count("Total_CMT_Queries_For_Reads"),
        cmt_queries_write=report.count("Total_CMT_Queries_For_Writes"),
        cmt_hits_read=report.count("CMT_Hits_For_Read"),
        cmt_hits_write=report.count("CMT_Hits_For_Write"),
        cmt_misses_at_once=report.count("CMT_Misses"),
        gc_exec=collections,
        gc_page_moves=round(moves * collections),
        wl_exec=report.count("Total_WL_Executions"),
        chip_exec_ns=tuple(round(chip.execution * end_ns) for chip in report.chips),
        chip_transfer_ns=tuple(transfers),
        channel_busy_ns=tuple(_by_channel(report, transfers)),
        queues=report.queues,
    )


def _origins(report: MqsimReport, operation: str) -> OriginCounts:
    return OriginCounts(
        user=report.dequeued(f"User_{operation}_TR_Queue"),
        gc=report.dequeued(f"GC_{operation}_TR_Queue"),
        mapping=report.dequeued(f"Mapping_{operation}_TR_Queue"),
    )


def _by_channel(report: MqsimReport, transfers: Sequence[int]) -> Iterator[int]:
    for channel in sorted({chip.channel for chip in report.chips}):
        yield sum(
            busy
            for chip, busy in zip(report.chips, transfers, strict=True)
            if chip.channel == channel
        )


def pages_disagree(device: DeviceResult, config: DeviceConfig) -> Iterator[str]:
    """Sentences on page counts that the commands cannot explain: each is 1 to `planes` pages."""
    planes = config.planes_per_die
    for what, pages, single, multi in (
        ("pages read", device.pages_read, device.cmd_read, device.cmd_mp_read),
        ("pages programmed", device.pages_programmed, device.cmd_prog, device.cmd_mp_prog),
        ("blocks erased", device.blocks_erased, device.cmd_erase, device.cmd_mp_erase),
    ):
        if not single + 2 * multi <= pages <= single + max(planes, 2) * multi:
            yield (
                f"MQSim's counts disagree: {pages} {what} by its queues, but {single} commands and "
                f"{multi} multi-plane ones on {planes} planes [counts_disagree]"
            )


VARIABLE = "IOJOULE_MQSIM"
NAMES = ("MQSim", "mqsim")
FILE_BYTES_MAX = 2 << 30
"""Of any one file that MQSim writes; the response log has some 20 bytes a request, so this is
enough for 10^8 of them."""
DEVICE_FILE, WORKLOAD_FILE = "device.xml", "workload.xml"
RESULT_FILE, LOG_FILE = "workload_scenario_1.xml", "workload.IO_Flow.No_{number}.log"


def find_mqsim() -> Path:
    """The user's MQSim.

    Raises:
        EngineMissingError: There is none.
    """
    named = os.environ.get(VARIABLE)
    if not named:
        named = next((name for name in NAMES if optional_program(name)), NAMES[0])
    remedy = (
        f"build MQSim (github.com/CMU-SAFARI/MQSim) and set {VARIABLE} to its binary, or use the "
        "embedded engine, which needs nothing"
    )
    return Path(find_program(named, remedy, EngineMissingError)).resolve()


class MqsimEngine:
    """Runs MQSim, one process and one scratch directory a scenario.

    Args:
        binary: The program; by default the one that `find_mqsim` finds.
        tolerate_lost: Give a result with a warning, not an error, where some requests were lost.

    Of `RunOptions.limits`, `events` cannot be watched and `simulated_ns` only before and after the
    run; progress is not reported.
    """

    def __init__(self, binary: Path | None = None, *, tolerate_lost: bool = False) -> None:
        self.binary = binary or find_mqsim()
        self.tolerate_lost = tolerate_lost

    def run(
        self, device: DeviceConfig, scenario: Scenario, options: RunOptions | None = None
    ) -> ScenarioResult:
        """Run one scenario; see `Engine.run`.

        Raises:
            EngineError: MQSim failed, lost requests or left no usable result; `name` says which.
        """
        options = options or RunOptions()
        _refuse_what_it_cannot(device, scenario, options)
        scenario = scenario.on(device)
        defects = refuse_errors(known_defects(device, scenario.flows))
        with tempfile.TemporaryDirectory(prefix="iojoule-mqsim-") as name:
            directory = Path(name)
            write_inputs(directory, device, scenario, options.scenario_number)
            execution = self.execute(directory, options)
            return self.judge(directory, execution, device, scenario, defects, options)

    def user_seconds(
        self, device: DeviceConfig, scenario: Scenario, options: RunOptions | None = None
    ) -> float:
        """User time of a run without the response log, which takes some 10 % of it.

        Raises:
            EngineError: MQSim failed.
        """
        options = options or RunOptions()
        scenario = scenario.on(device)
        with tempfile.TemporaryDirectory(prefix="iojoule-mqsim-") as name:
            directory = Path(name)
            write_inputs(directory, device, scenario, options.scenario_number, log=False)
            execution = self.execute(directory, options)
        raise_if_failed(execution, known_defects(device, scenario.flows))
        return execution.user_seconds

    def execute(self, directory: Path, options: RunOptions) -> Execution:
        """Run the program on the input files of a directory.

        Raises:
            EngineMissingError: It cannot be started.
            LimitError, CancelledError, EngineError: It was stopped.
        """
        limits = ProcessLimits(
            memory_bytes=options.limits.memory_bytes,
            wall_seconds=options.limits.wall_seconds,
            file_bytes=FILE_BYTES_MAX,
        )
        command = (str(self.binary), "-i", DEVICE_FILE, "-w", WORKLOAD_FILE)
        try:
            execution = execute(command, directory, limits, options.cancelled)
        except OSError as error:
            raise EngineMissingError(
                f"{self.binary} cannot be started ({error.strerror}); check {VARIABLE}"
            ) from error
        raise_if_stopped(execution, options.limits)
        return execution

    def judge(
        self,
        directory: Path,
        execution: Execution,
        device: DeviceConfig,
        scenario: Scenario,
        defects: tuple[Finding, ...],
        options: RunOptions,
    ) -> ScenarioResult:
        """The result of a run that ended, from what it left in its directory.

        Raises:
            EngineError: It failed, or what it left is not usable.
            LimitError: It simulated for longer than `options.limits.simulated_ns`.
        """
        raise_if_failed(execution, defects)
        serviced = read_serviced(execution.stdout)
        lost = raise_if_lost(serviced, defects, tolerate=self.tolerate_lost)
        try:
            report = read_result(directory / RESULT_FILE)
            runs = _flow_runs(directory, report, scenario, serviced)
            end_ns = sim_end_ns(runs)
            whole = device_result(report, end_ns)
        except InputError as error:
            raise EngineError(f"MQSim left no usable result: {error}", name="no_result") from error
        _check_simulated(end_ns, options)
        step_ns = options.series_step_ns
        return ScenarioResult(
            engine=EngineName.MQSIM,
            mode=Mode.COMPAT,
            device=whole,
            flows=tuple(
                flow_result(run, *_transactions(report, number), end_ns, step_ns)
                for number, run in enumerate(runs)
            ),
            series_step_ns=step_ns,
            warnings=(
                *(str(defect) for defect in defects if defect.severity is Severity.WARNING),
                *lost,
                *pages_disagree(whole, device),
            ),
            unavailable=unavailable(runs, step_ns),
            run_user_seconds=execution.user_seconds,
            run_wall_seconds=execution.wall_seconds,
            peak_bytes=execution.peak_bytes,
        )


def _refuse_what_it_cannot(device: DeviceConfig, scenario: Scenario, options: RunOptions) -> None:
    if device.mode is not Mode.COMPAT:
        raise ConfigError(
            "MQSim has no physical mode; choose the embedded engine or mode compat", field="mode"
        )
    if options.limits.events is not None:
        raise ConfigError(
            "MQSim does not count events, so they cannot be limited; limit wall_seconds instead",
            field="limits.events",
        )
    _check_simulated(max(flow.stop_ns for flow in scenario.flows), options)


def _check_simulated(end_ns: int, options: RunOptions) -> None:
    limit = options.limits.simulated_ns
    if limit is not None and end_ns > limit:
        raise LimitError(
            f"the run simulates {end_ns} ns, and {limit} ns are allowed; stop the flows earlier or "
            "allow more",
            limit="simulated_ns",
        )


def write_inputs(
    directory: Path,
    device: DeviceConfig,
    scenario: Scenario,
    scenario_number: int,
    *,
    log: bool = True,
) -> None:
    """Write the input files of one scenario, which must name all ids, and link its traces.

    Raises:
        TraceError: A trace is not there.
    """
    seeded = device.model_copy(update={"seed": device.seed + SEED_STEP * scenario_number})
    drive = write_device_xml(seeded, response_log_period_ns=0 if log else None)
    (directory / DEVICE_FILE).write_text(drive, encoding="ascii")
    flows = tuple(
        flow.model_copy(update={"trace_path": _link_trace(directory, flow.trace_path, number)})
        if flow.kind is FlowKind.TRACE
        else flow
        for number, flow in enumerate(scenario.flows)
    )
    workload = write_workload_xml([scenario.model_copy(update={"flows": flows})])
    (directory / WORKLOAD_FILE).write_text(workload, encoding="ascii")


def _link_trace(directory: Path, path: str, number: int) -> str:
    """Give a trace a short name in the directory, which any path can have and no two share."""
    target = Path(path).absolute()
    if not target.is_file():
        raise TraceError("there is no such file; check the path", path=path)
    name = f"flow_{number}.trace"
    (directory / name).symlink_to(target)
    return name


def _flow_runs(
    directory: Path,
    report: MqsimReport,
    scenario: Scenario,
    serviced: list[tuple[str, int, int]],
) -> list[FlowRun]:
    if not len(report.flows) == len(scenario.flows) == len(serviced):
        raise InputError(
            f"{len(scenario.flows)} flows were asked for, {len(report.flows)} are in the result "
            f"file and {len(serviced)} on standard output"
        )
    for said, (name, generated, _) in zip(report.flows, serviced, strict=True):
        if said.requests != generated:
            raise InputError(
                f"{name}: {said.requests} requests in the result file, {generated} on standard "
                "output"
            )
    return [
        FlowRun(
            # A trace has the short name of its link; the user knows it by another.
            asked,
            replace(said, name=f"Host.IO_Flow.Trace.{asked.trace_path}")
            if asked.kind is FlowKind.TRACE
            else said,
            done,
            read_response_log(directory / LOG_FILE.format(number=number)),
        )
        for number, (asked, said, (_, _, done)) in enumerate(
            zip(scenario.flows, report.flows, serviced, strict=True)
        )
    ]


def _transactions(
    report: MqsimReport, number: int
) -> tuple[TransactionTimes | None, TransactionTimes | None]:
    """Means of a flow; those of a SATA drive, which has one stream, stand with the first."""
    if number < len(report.read_transactions):
        return report.read_transactions[number], report.write_transactions[number]
    return None, None
