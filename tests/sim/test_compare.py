"""Both engines side by side: on recorded runs of MQSim, and on the program where there is one."""

import json
import os
import shlex
from pathlib import Path

import pytest

from iojoule.api.cli.sim import emit_comparisons
from iojoule.sim.compare import Comparison, Quantity, compare, compare_results
from iojoule.sim.engines import EngineName
from iojoule.sim.engines.embedded import EmbeddedEngine
from iojoule.sim.engines.mqsim import MqsimEngine
from iojoule.sim.result import LatencyByClass, LatencySummary
from tests.sim.recordings import FOLDER, RUNS
from tests.sim.test_result import device, reads, scenario


@pytest.fixture
def recorded_mqsim(tmp_path: Path) -> MqsimEngine:
    """Answers with the recorded run that has as many flows as it is asked for."""
    program = tmp_path / "MQSim"
    folder = shlex.quote(str(FOLDER / "two_flows"))
    program.write_text(f"#!/bin/sh\ncp {folder}/workload* .; cat {folder}/stdout.txt\n")
    program.chmod(0o755)
    return MqsimEngine(program)


def named(comparison: Comparison, name: str, flow: int = 0) -> Quantity:
    every = (*comparison.device, *comparison.flows[flow].quantities)
    return next(quantity for quantity in every if quantity.name == name)


def test_both_engines_agree_on_a_recorded_run(recorded_mqsim: MqsimEngine) -> None:
    comparison = compare(*RUNS["two_flows"], mqsim=recorded_mqsim)
    assert [q for q in comparison.quantities() if not q.equal] == []
    assert comparison.equal
    assert [flow.name for flow in comparison.flows] == [
        "Host.IO_Flow.Synth.No_0",
        "Host.IO_Flow.Synth.No_1",
    ]
    assert comparison.mqsim_peak_bytes > 0


def mqsims(**changed: object) -> LatencySummary:
    return LatencySummary.model_validate(
        {"count": 4, "mean_ns": 90_000, "p50_ns": 88_000, "resolution_ns": 1000, **changed}
    )


def test_times_closer_than_mqsim_prints_them_are_equal() -> None:
    ours = LatencySummary(count=4, mean_ns=90_999.5, p50_ns=89_001)
    comparison = compare_results(
        scenario(reads(device_latency=LatencyByClass(all=ours))),
        scenario(reads(device_latency=LatencyByClass(all=mqsims())), engine=EngineName.MQSIM),
    )
    mean, median = named(comparison, "drt_mean_ns"), named(comparison, "drt_p50_ns")
    assert mean.equal
    assert mean.difference == 999.5
    assert mean.relative_difference == pytest.approx(999.5 / 90_000)
    assert not median.equal
    assert not comparison.equal


def test_counts_must_be_the_same() -> None:
    comparison = compare_results(scenario(device=device(cmd_read=7)), scenario())
    reading = named(comparison, "cmd_read")
    assert not reading.equal
    assert reading.relative_difference is None
    assert [q.name for q in comparison.quantities() if not q.equal] == ["cmd_read"]


def test_what_mqsim_cannot_know_is_left_out() -> None:
    both = LatencyByClass(all=mqsims())
    theirs = reads(device_latency=both, end_to_end_latency=both, serviced_read=None)
    comparison = compare_results(scenario(), scenario(theirs))
    names = {quantity.name for quantity in comparison.flows[0].quantities}
    assert "drt_mean_ns" in names
    assert "drt_read_mean_ns" not in names
    assert "serviced_read" not in names


def test_busy_times_are_compared_as_shares_of_each_time() -> None:
    ours = scenario(
        reads(seconds=2.0, sim_end_ns=4 * 10**9),
        device=device(chip_exec_ns=(10**9, 0), chip_transfer_ns=(0, 0)),
    )
    theirs = scenario(
        reads(seconds=2.0, sim_end_ns=2 * 10**9),
        device=device(chip_exec_ns=(5 * 10**8, 0), chip_transfer_ns=(0, 0)),
    )
    share = named(compare_results(ours, theirs), "chip_exec_share")
    assert share.embedded == share.mqsim == 0.125
    assert share.equal


def test_speed_is_user_time_over_user_time() -> None:
    ours = scenario(run_user_seconds=0.5, peak_bytes=100)
    theirs = scenario(run_user_seconds=6.0, peak_bytes=400)
    assert compare_results(ours, theirs).speed_ratio == 12
    assert compare_results(ours, theirs, 5.0).speed_ratio == 10
    assert compare_results(ours, theirs).memory_ratio == 4
    assert compare_results(scenario(run_user_seconds=0), theirs).speed_ratio is None


def test_the_json_form_reads_back_equal() -> None:
    comparison = compare_results(scenario(), scenario(device=device(cmd_read=1)))
    written = comparison.model_dump_json()
    assert json.loads(written)["equal"] is False
    assert Comparison.model_validate_json(written) == comparison


def test_the_table_shows_both_and_the_difference(capsys: pytest.CaptureFixture[str]) -> None:
    ours = scenario(device=device(cmd_read=110))
    theirs = scenario(device=device(cmd_read=100), run_user_seconds=2.5)
    emit_comparisons([compare_results(ours, theirs)] * 2)
    said = capsys.readouterr().out
    assert "Scenario 2: Drive" in said
    (line, _) = (line.split() for line in said.splitlines() if line.startswith("cmd_read"))
    assert line == ["cmd_read", "110", "100", "10", "+10.0000", "%", "NO"]
    assert "10.0 times faster" in said


@pytest.mark.skipif(not os.environ.get("IOJOULE_MQSIM"), reason="IOJOULE_MQSIM names no binary")
@pytest.mark.parametrize("name", RUNS)
def test_both_engines_agree(name: str) -> None:
    comparison = compare(*RUNS[name], embedded=EmbeddedEngine())
    assert [q for q in comparison.quantities() if not q.equal] == []
    assert comparison.mqsim_user_seconds > 0
