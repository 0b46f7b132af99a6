"""The user's own MQSim as an engine: run in a directory of its own, within limits, not trusted.

iojoule neither ships nor builds MQSim. It is looked for under IOJOULE_MQSIM, then as `MQSim` or
`mqsim` on the PATH. Every tag is written, the response log is switched on with a period of 0 (the
only way to percentiles and the end of the simulation), and rates are computed again from it.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from pathlib import Path

from iojoule.datasets.errors import InputError
from iojoule.datasets.programs import find_program, optional_program
from iojoule.sim.device import DeviceConfig
from iojoule.sim.engines import SEED_STEP, EngineError, EngineMissingError, RunOptions
from iojoule.sim.engines.mqsim_reading import (
    FlowRun,
    device_result,
    flow_result,
    pages_disagree,
    sim_end_ns,
    unavailable,
)
from iojoule.sim.engines.mqsim_verdict import raise_if_failed, raise_if_lost, raise_if_stopped
from iojoule.sim.engines.process import Execution, ProcessLimits, execute
from iojoule.sim.errors import ConfigError, LimitError, TraceError
from iojoule.sim.findings import Finding, Severity, refuse_errors
from iojoule.sim.formats.mqsim_device import write_device_xml
from iojoule.sim.formats.mqsim_result import (
    MqsimReport,
    read_response_log,
    read_result,
    read_serviced,
)
from iojoule.sim.formats.mqsim_workload import write_workload_xml
from iojoule.sim.result import EngineName, Mode, ScenarioResult, TransactionTimes
from iojoule.sim.traps import findings as known_traps
from iojoule.sim.workload import FlowKind, Scenario

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
        traps = refuse_errors(known_traps(device, scenario.flows))
        with tempfile.TemporaryDirectory(prefix="iojoule-mqsim-") as name:
            directory = Path(name)
            write_inputs(directory, device, scenario, options.scenario_number)
            execution = self.execute(directory, options)
            return self.judge(directory, execution, device, scenario, traps, options)

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
        raise_if_failed(execution, known_traps(device, scenario.flows))
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
        traps: tuple[Finding, ...],
        options: RunOptions,
    ) -> ScenarioResult:
        """The result of a run that ended, from what it left in its directory.

        Raises:
            EngineError: It failed, or what it left is not usable.
            LimitError: It simulated for longer than `options.limits.simulated_ns`.
        """
        raise_if_failed(execution, traps)
        serviced = read_serviced(execution.stdout)
        lost = raise_if_lost(serviced, traps, tolerate=self.tolerate_lost)
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
                *(str(trap) for trap in traps if trap.severity is Severity.WARNING),
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
