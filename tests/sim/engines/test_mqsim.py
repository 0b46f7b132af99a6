"""The MQSim engine on recorded runs: what it hands to the program and what it makes of the rest."""

import shlex
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from iojoule.datasets.errors import InputError
from iojoule.sim.engines import EngineError, EngineMissingError, Limits, RunOptions, engine
from iojoule.sim.engines.mqsim import MqsimEngine, find_mqsim
from iojoule.sim.errors import ConfigError, LimitError, TraceError
from iojoule.sim.findings import RefusedError
from iojoule.sim.formats.files import read_drive, read_workload
from iojoule.sim.result import EngineName, LatencySummary, Mode, ScenarioResult
from iojoule.sim.workload import Scenario
from tests.errors import having
from tests.sim.recordings import FOLDER, ONE_CHIP, READS, REPLAY, RUNS, TRACE
from tests.stand_ins import look_in

Replay = Callable[..., MqsimEngine]


@pytest.fixture
def replaying(tmp_path: Path) -> Replay:
    """An engine whose program leaves behind what MQSim did in a recorded run."""

    def make(name: str, before: str = "", after: str = "", **options: bool) -> MqsimEngine:
        program = tmp_path / "MQSim"
        folder = shlex.quote(str(FOLDER / name))
        program.write_text(
            f'#!/bin/sh\nset -e\n[ "$*" = "-i device.xml -w workload.xml" ]\n{before}\n'
            f"cp {folder}/workload* .\n{after}\ncat {folder}/stdout.txt\n"
        )
        program.chmod(0o755)
        return MqsimEngine(program, **options)

    return make


def run(engine: MqsimEngine, name: str, options: RunOptions | None = None) -> ScenarioResult:
    return engine.run(*RUNS[name], options)


def log(name: str, flow: int = 0) -> np.ndarray:
    return np.loadtxt(FOLDER / name / f"workload.IO_Flow.No_{flow}.log", skiprows=1, dtype=int)


def test_latencies_are_those_of_the_log_at_its_resolution(replaying: Replay) -> None:
    (flow,) = run(replaying("reads"), "reads").flows
    rows = log("reads")
    assert flow.serviced == flow.generated == len(rows) == 24
    both = flow.device_latency.all
    assert both.resolution_ns == 1000
    # the result file has the cut-off mean, the log the mean of what was cut off
    assert rows[:, 1].mean() * 1000 <= both.mean_ns < rows[:, 1].mean() * 1000 + 1000
    assert both.mean_ns >= 252_000
    assert (both.min_ns, both.max_ns) == (rows[:, 1].min() * 1000, rows[:, 1].max() * 1000)
    ordered = np.sort(rows[:, 1])
    assert both.p50_ns == ordered[12] * 1000  # position 11.5 of 0..23, the higher neighbour
    assert both.p99_ns == ordered[23] * 1000
    assert flow.flow_last_completion_ns == flow.sim_end_ns == rows[-1, 0] * 1000
    assert flow.e2e_ns == pytest.approx(rows[:, 2].mean() * 1000, abs=1000)


def test_a_flow_of_one_class_has_its_latencies_and_the_other_zeros(replaying: Replay) -> None:
    (reads,) = run(replaying("reads"), "reads").flows
    assert reads.device_latency.read == reads.device_latency.all
    assert reads.device_latency.write == LatencySummary()
    assert (reads.serviced_read, reads.serviced_write) == (24, 0)
    (writes,) = run(replaying("writes"), "writes").flows
    assert writes.device_latency.write == writes.device_latency.all
    assert writes.drt_read_ns == 0


def test_a_mixed_flow_says_why_its_classes_are_unknown(replaying: Replay) -> None:
    result = run(replaying("two_flows"), "two_flows")
    mixed, writes = result.flows
    assert mixed.drt_read_ns is None
    assert mixed.drt_ns > 0
    assert (mixed.serviced_read, mixed.serviced_write) == (
        mixed.generated_read,
        mixed.generated_write,
    )
    assert "does not say which completions were reads" in result.unavailable["flows.drt_read_ns"]
    assert writes.drt_write_ns == writes.drt_ns


def test_rates_are_over_the_exact_time_and_not_over_whole_seconds(replaying: Replay) -> None:
    (flow,) = run(replaying("reads"), "reads").flows
    seconds = log("reads")[-1, 0] / 1e6
    assert flow.iops == pytest.approx(24 / seconds)
    assert flow.bandwidth_read_bytes_per_second == pytest.approx(24 * 4096 / seconds)


def test_pages_are_what_the_queues_handed_to_the_chips(replaying: Replay) -> None:
    device = run(replaying("two_flows"), "two_flows").device
    assert device.pages_read == device.cmd_read + 2 * device.cmd_mp_read
    assert device.pages_programmed == device.cmd_prog + 2 * device.cmd_mp_prog
    assert device.pages_read_by_origin.mapping == device.map_reads > 0
    assert device.cmt_queries > device.cmt_hits
    assert len(device.chip_exec_ns) == len(device.channel_busy_ns or ()) == 2


def test_busy_times_are_shares_of_the_time(replaying: Replay) -> None:
    result = run(replaying("reads"), "reads")
    (busy,) = result.device.chip_exec_ns
    # 24 single reads of 75.02 us on one chip
    assert busy == pytest.approx(result.device.cmd_read * 75_020, rel=0.001)


def test_a_trace_keeps_the_name_that_the_user_knows(replaying: Replay) -> None:
    (flow,) = run(replaying("trace"), "trace").flows
    assert flow.name == f"Host.IO_Flow.Trace.{TRACE}"
    assert flow.generated == 6


def test_sata_has_one_stream(replaying: Replay) -> None:
    (flow,) = run(replaying("sata"), "sata").flows
    assert flow.read_transactions is not None
    assert flow.read_transactions.execution_ns == 75_000
    assert flow.e2e_ns > flow.drt_ns


def test_a_time_series_of_one_class_adds_up(replaying: Replay) -> None:
    options = RunOptions(series_step_ns=100_000)
    (flow,) = run(replaying("reads"), "reads", options).flows
    assert flow.series is not None
    assert sum(flow.series.serviced_read) == 24
    assert sum(flow.series.serviced_write) == 0
    assert sum(flow.series.bytes_read) == flow.bytes_read
    assert sum(flow.series.latency_sum_ns) == log("reads")[:, 1].sum() * 1000
    assert max(flow.series.latency_max_ns) == flow.max_drt_ns
    assert len(flow.series.bytes_written) == flow.sim_end_ns // 100_000 + 1
    mixed = run(replaying("two_flows"), "two_flows", options)
    assert mixed.flows[0].series is None
    assert "flows.series" in mixed.unavailable


def test_the_program_gets_every_tag_and_logs_every_completion(
    replaying: Replay, tmp_path: Path
) -> None:
    device, scenario = RUNS["two_flows"]
    target = shlex.quote(str(tmp_path))
    replaying("two_flows", before=f"cp device.xml workload.xml {target}").run(
        device, scenario, RunOptions(scenario_number=3)
    )
    written = (tmp_path / "device.xml").read_text()
    assert "<Enable_ResponseTime_Logging>true<" in written
    assert "<ResponseTime_Logging_Period_Length>0<" in written
    # a file's fourth scenario has the drive's seed after three steps of two
    again = read_drive(tmp_path / "device.xml").device
    assert again == device.model_copy(update={"seed": device.seed + 6})
    assert read_workload(tmp_path / "workload.xml").scenarios == (scenario.on(device),)


def test_two_flows_may_not_share_a_trace_and_one_that_is_missing_is_named(
    replaying: Replay, tmp_path: Path
) -> None:
    gone = REPLAY.model_copy(update={"trace_path": str(tmp_path / "gone.trace")})
    with pytest.raises(TraceError, match=r"gone\.trace"):
        replaying("trace").run(ONE_CHIP, Scenario(flows=(gone,)))
    with pytest.raises(RefusedError, check=having(name="trace_twice")):
        replaying("trace").run(ONE_CHIP, Scenario(flows=(REPLAY, REPLAY)))


def test_a_trace_with_any_path_reaches_the_program(replaying: Replay, tmp_path: Path) -> None:
    odd = tmp_path / "a <b> & 'c'.trace"
    odd.write_bytes(TRACE.read_bytes())
    flow = REPLAY.model_copy(update={"trace_path": str(odd)})
    seen = replaying("trace", before="test -s flow_0.trace; grep -q flow_0.trace workload.xml")
    assert seen.run(ONE_CHIP, Scenario(flows=(flow,))).flows[0].name.endswith("'c'.trace")


def test_lost_requests_are_an_error_unless_told_otherwise(replaying: Replay) -> None:
    lose = "echo 'Flow x - total requests generated: 24 total requests serviced:20'; exit 0"
    with pytest.raises(EngineError, check=having(name="requests_lost")) as refused:
        run(replaying("reads", after=lose), "reads")
    assert refused.value.name == "requests_lost"
    result = run(replaying("reads", after=lose, tolerate_lost=True), "reads")
    assert result.flows[0].serviced == 20
    assert any("requests_lost" in warning for warning in result.warnings)


@pytest.mark.parametrize(
    "damage",
    [
        "rm workload_scenario_1.xml",
        "head -c 900 workload_scenario_1.xml > x; mv x workload_scenario_1.xml",
        "echo '<a/>' > workload_scenario_1.xml",
        'sed -i \'s/Hits_For_Read="[0-9]*"/Hits_For_Read="-nan"/\' workload_scenario_1.xml',
        'sed -i \'s/Hits_For_Read="[0-9]*"/Hits_For_Read="-5"/\' workload_scenario_1.xml',
        'sed -i \'s/Execution="[0-9.]*"/Execution="-5"/\' workload_scenario_1.xml',
        "sed -i '1a <!DOCTYPE a [<!ENTITY b \"c\">]>' workload_scenario_1.xml",
        "sed -i 's/<Request_Count>24/<Request_Count>-1/' workload_scenario_1.xml",
        "rm workload.IO_Flow.No_0.log",
        "echo 'nothing' > workload.IO_Flow.No_0.log",
        "echo '1 2' >> workload.IO_Flow.No_0.log",
        "echo '1 2 3' >> workload.IO_Flow.No_0.log",
        "echo '9999999 -2 3' >> workload.IO_Flow.No_0.log",
        "sed -i 's/Request_Count>24/Request_Count>25/' workload_scenario_1.xml",
        "sed -i 's/<Request_Count>24/<Request_Count>25/' workload_scenario_1.xml",
        "exit 0",
    ],
)
def test_what_is_not_a_whole_result_is_refused(replaying: Replay, damage: str) -> None:
    with pytest.raises(EngineError) as refused:
        run(replaying("reads", after=damage), "reads")
    assert refused.value.name == "no_result"


def test_a_hung_program_is_stopped(replaying: Replay) -> None:
    options = RunOptions(limits=Limits(wall_seconds=0.2))
    with pytest.raises(LimitError, check=having(limit="wall_seconds")) as refused:
        run(replaying("reads", before="sleep 600"), "reads", options)
    assert refused.value.limit == "wall_seconds"


def test_what_mqsim_cannot_do_is_refused_before_it_runs(replaying: Replay) -> None:
    never = replaying("reads", before="exit 1")
    physical = ONE_CHIP.model_copy(update={"mode": Mode.PHYSICAL})
    with pytest.raises(ConfigError, check=having(field="mode")):
        never.run(physical, Scenario(flows=(READS,)))
    with pytest.raises(ConfigError, check=having(field="limits.events")):
        run(never, "reads", RunOptions(limits=Limits(events=5)))
    long = READS.model_copy(update={"stop_ns": 10**9})
    options = RunOptions(limits=Limits(simulated_ns=10**8))
    with pytest.raises(LimitError, check=having(limit="simulated_ns")):
        never.run(ONE_CHIP, Scenario(flows=(long,)), options)


def test_a_run_that_simulated_too_long_is_refused_after_it(replaying: Replay) -> None:
    options = RunOptions(limits=Limits(simulated_ns=1000))
    with pytest.raises(LimitError) as refused:
        run(replaying("reads"), "reads", options)
    assert refused.value.limit == "simulated_ns"


def test_counts_that_contradict_each_other_are_a_warning(replaying: Replay) -> None:
    wrong = 'sed -i \'s/Issued_Flash_Read_CMD="[0-9]*"/Issued_Flash_Read_CMD="3"/\' workload_sc*'
    (warning,) = run(replaying("reads", after=wrong), "reads").warnings
    assert "counts_disagree" in warning


def test_mqsim_is_found_by_variable_then_by_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("mine", "mqsim"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    look_in(monkeypatch, tmp_path)
    monkeypatch.delenv("IOJOULE_MQSIM", raising=False)
    assert find_mqsim() == tmp_path / "mqsim"
    monkeypatch.setenv("IOJOULE_MQSIM", str(tmp_path / "mine"))
    assert find_mqsim() == tmp_path / "mine"
    assert isinstance(engine(EngineName.MQSIM), MqsimEngine)
    monkeypatch.setenv("IOJOULE_MQSIM", str(tmp_path / "none"))
    with pytest.raises(EngineMissingError, match=r"/none: .*IOJOULE_MQSIM"):
        find_mqsim()
    monkeypatch.delenv("IOJOULE_MQSIM")
    (tmp_path / "mqsim").unlink()
    with pytest.raises(EngineMissingError, match="set IOJOULE_MQSIM to its binary"):
        find_mqsim()


def test_a_program_of_another_kind_is_an_input_error(tmp_path: Path) -> None:
    (tmp_path / "MQSim").write_bytes(b"\x7fELF, but no program")
    (tmp_path / "MQSim").chmod(0o755)
    with pytest.raises(InputError, match="cannot be started"):
        MqsimEngine(tmp_path / "MQSim").run(*RUNS["reads"])
