"""A whole campaign under Linux' own NVMe driver: what its records say was really in force."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from iojoule.datasets.schema import Measurement
from iojoule.datasets.store import read_dataset
from iojoule.datasets.vocabulary import Completion, Engine, Operation, Scheduler
from iojoule.measure.campaign.folder import RunRecord, Status
from iojoule.measure.fio import JOB_FILE, RESULT_FILE
from tests.qemu.guest.admin import WATTS
from tests.qemu.guest.fio import COUNT_FILE
from tests.qemu.machine import TARGET_MDTS, Exit

COUNTED_WITHIN = 0.3
"""Counters are read ten times a second, less often on a busy emulated processor."""
MDTS_BYTES = 4096 << TARGET_MDTS


def chosen(runs: list[RunRecord], sweep: str, **wanted: object) -> Measurement:
    """The one measurement of a sweep with these settings."""
    found = [
        run.measurement
        for run in runs
        if run.sweep == sweep and run.measurement is not None
        if all(
            getattr(run.measurement.configuration, key) == value for key, value in wanted.items()
        )
    ]
    assert len(found) == 1, f"{len(found)} runs of {sweep} with {wanted}"
    return found[0]


def test_every_run_is_done(ended: Exit, runs: list[RunRecord], results: Path) -> None:
    code, said = ended("true-driver")
    assert code == 0, said
    assert [run.status for run in runs] == [Status.DONE] * 9
    assert len(read_dataset(results / "true-driver" / "measurements").measurements()) == 9


@pytest.mark.parametrize("engine", [Engine.IO_URING, Engine.IO_URING_CMD])
def test_polled_completions_need_no_interrupts(
    results: Path, runs: list[RunRecord], engine: Engine
) -> None:
    def interrupts_per_request(completion: Completion) -> float:
        one = chosen(runs, "rings", engine=engine, completion=completion)
        number = next(run.number for run in runs if run.measurement is one)
        folder = results / "true-driver" / "runs" / f"{number:05d}-rings"
        [job] = json.loads((folder / RESULT_FILE).read_text())["jobs"]
        requests: int = job["read"]["total_ios"]  # without those of the ramp
        return int((folder / COUNT_FILE).read_text()) / requests

    assert interrupts_per_request(Completion.INTERRUPT) > 0.5
    assert interrupts_per_request(Completion.POLLED) < 0.1


def test_the_drive_has_poll_queues_and_says_so(
    runs: list[RunRecord], seen: Callable[[str], dict[str, str]]
) -> None:
    assert seen("before")["io_poll"] == "1"
    assert {run.measurement.conditions.poll_queues for run in runs if run.measurement} == {1}


def test_the_block_layer_counts_what_fio_sent(runs: list[RunRecord]) -> None:
    for scheduler in (Scheduler.NONE, Scheduler.MQ_DEADLINE):
        one = chosen(runs, "schedulers", scheduler=scheduler).observations
        assert one.device_commands_per_second == pytest.approx(one.iops, rel=COUNTED_WITHIN)


def test_of_passthrough_nobody_counts_the_commands(runs: list[RunRecord]) -> None:
    one = chosen(runs, "rings", engine=Engine.IO_URING_CMD, completion=Completion.INTERRUPT)
    assert one.observations.iops
    assert one.observations.device_commands_per_second is None


def test_requests_above_the_largest_transfer_are_split(runs: list[RunRecord]) -> None:
    one = chosen(runs, "split", engine=Engine.IO_URING)
    pieces = 524288 / MDTS_BYTES
    assert one.conditions.max_transfer_bytes == MDTS_BYTES
    assert one.observations.device_commands_per_second == pytest.approx(
        pieces * one.observations.iops,  # type: ignore[operator]
        rel=COUNTED_WITHIN,
    )


def test_what_nobody_splits_is_left_out(ended: Exit, runs: list[RunRecord]) -> None:
    assert f"takes at most {MDTS_BYTES:,} bytes at once" in " ".join(
        ended("true-driver")[1].split()
    )
    assert len([run for run in runs if run.sweep == "split"]) == 1


def test_io_uring_cmd_uses_the_character_node(results: Path) -> None:
    jobs = [file.read_text() for file in results.glob(f"true-driver/runs/*/{JOB_FILE}")]
    passthrough = [job for job in jobs if "ioengine=io_uring_cmd" in job]
    assert len(passthrough) == 3
    assert all("filename=/dev/ng" in job for job in passthrough)


def test_watts_follow_the_power_state_that_was_set_and_verified(runs: list[RunRecord]) -> None:
    for run in runs:
        assert run.measurement is not None
        state = run.measurement.configuration.power_state
        assert state is not None
        watts = run.measurement.observations.device_power_watts
        assert watts == pytest.approx(WATTS[state], rel=0.01)
        assert run.measurement.observations.idle_power_watts == pytest.approx(watts, rel=0.01)
        assert run.measurement.conditions.power_state_verified


def test_what_is_written_counts_whichever_way_it_goes(results: Path, runs: list[RunRecord]) -> None:
    least = 64 << 20  # the pass that fills
    for engine in (Engine.IO_URING, Engine.IO_URING_CMD):
        one = chosen(runs, "writes", engine=engine)
        assert one.workload.operation is Operation.WRITE
        least += int(2 * one.observations.throughput_bytes_per_second * 0.9)  # type: ignore[operator]
    state = json.loads((results / "true-driver" / "state.json").read_text())
    assert state["bytes_written"] > least


def test_formatting_emptied_the_drive(results: Path, seen: Callable[[str], dict[str, int]]) -> None:
    assert seen("before")["pattern_bytes"] == 65536
    assert seen("after")["zero_bytes"] == 65536
    sent = (results / "commands.txt").read_text().splitlines()
    assert "0x80 0x200 0x0" in sent, "Format NVM with user data erase, block format 0"
    assert json.loads((results / "true-driver" / "state.json").read_text())["purged"]


def test_everything_is_set_back(
    results: Path, ended: Exit, seen: Callable[[str], dict[str, str]]
) -> None:
    before, after = seen("before"), seen("after")
    for name in ("scheduler", "nomerges", "write_cache"):
        assert after[name] == before[name]
    assert "[mq-deadline]" in after["scheduler"]
    said = ended("true-driver")[1]
    for restored in ("queue/scheduler", "queue/nomerges", "--feature-id=0x2", "--feature-id=0x6"):
        assert restored in said
    sent = [line for line in (results / "commands.txt").read_text().splitlines() if " 0x2 " in line]
    assert [line for line in sent if line.startswith("0x09")][-1] == "0x09 0x2 0x0"


def test_the_conditions_are_those_of_the_host(runs: list[RunRecord]) -> None:
    for run in runs:
        assert run.measurement is not None
        found = run.measurement.conditions
        assert found.device_model == "QEMU NVMe Ctrl"
        assert found.firmware
        assert found.kernel_version
        assert found.cpu_cores_available == 2
        assert found.temperature_celsius_mean == 50
        assert found.percentage_used == 0
        assert found.volatile_write_cache is False, "the plan switched it off"
        assert (found.pcie_generation, found.pcie_lanes) == (1, 1), "QEMU's, behind a port"
        assert run.measurement.state.fill_fraction is None, "QEMU keeps no count"
        assert run.measurement.state.host_bytes_written_since_purge
