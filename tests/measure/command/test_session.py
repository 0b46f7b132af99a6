"""Programs watched by sensors that are functions of time."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from iojoule.datasets.errors import InputError
from iojoule.measure.command import request as request_module
from iojoule.measure.command import session as session_module
from iojoule.measure.command.record import CommandResult
from iojoule.measure.command.request import CommandRequest, parse_metric
from iojoule.measure.command.session import measure_command
from iojoule.measure.errors import SensorError
from iojoule.measure.recording import read_recording
from iojoule.measure.sensors import open_sensor
from iojoule.measure.sensors.protocol import Kind, Rail, Scope
from tests.measure.fakes import FakeSensor, constant

CPU = (Rail("package-0", "watts", Kind.POWER, Scope.CPU),)


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> dict[str, Callable[[], FakeSensor]]:
    """Sensors by the name under which a request may ask for them."""
    made: dict[str, Callable[[], FakeSensor]] = {
        "drive": lambda: FakeSensor(constant(2.0), name="drive"),
        "host": lambda: FakeSensor(constant(8.0), CPU, name="host"),
    }

    def opened(text: str) -> Any:
        return made[text]() if text in made else open_sensor(text)

    monkeypatch.setattr(session_module, "open_sensor", opened)
    monkeypatch.setattr(request_module, "open_sensor", opened)
    monkeypatch.setattr(request_module, "RAPL_ROOT", Path("/nowhere"))
    monkeypatch.setattr(session_module, "LEAD_SECONDS", 0.05)
    monkeypatch.setattr(session_module, "_TAIL_READINGS", 0)
    return made


def shell(script: str) -> list[str]:
    return ["sh", "-c", script]


def measured(folder: Path, script: str, metrics: Sequence[str] = (), **more: Any) -> CommandResult:
    """The result, which must be what is in the folder."""
    sensors = more.pop("sensors", ["drive", "host"])
    result = measure_command(
        CommandRequest(
            command=shell(script),
            folder=folder,
            sensors=sensors,
            metrics=[parse_metric(text) for text in metrics],
            **more,
        )
    )
    kept = CommandResult.model_validate_json((folder / "result.json").read_text())
    assert kept == result
    return result


Fakes = dict[str, Callable[[], FakeSensor]]


def test_joules_per_unit_of_work(fakes: Fakes, tmp_path: Path) -> None:
    result = measured(
        tmp_path / "out",
        "sleep 0.2; echo 'done: 1,000 things'; echo oops >&2",
        ["things=done: ([0-9,]+)"],
        work="things",
        unit="thing",
    )
    (run,) = result.runs
    assert (run.exit_status, run.work, run.metrics) == (0, 1000, {"things": 1000})
    assert run.seconds == pytest.approx(0.2, abs=0.2)
    assert run.power["device"].energy_joules == pytest.approx(2 * run.window_seconds)
    assert run.joules_per_unit["device"].value == pytest.approx(2 * run.window_seconds / 1000)
    assert run.joules_per_unit["device_cpu"].value == pytest.approx(run.window_seconds / 100)
    assert run.shares == pytest.approx({"device": 0.2, "cpu": 0.8})
    folder = tmp_path / "out" / "run-1"
    assert (folder / "stdout.txt").read_text() == "done: 1,000 things\n"
    assert (folder / "stderr.txt").read_text() == "oops\n"
    series = read_recording(folder)
    assert {"drive", "host", "cpu"} <= set(series.sensors)


def test_a_rate_is_multiplied_by_the_run_time(fakes: Fakes, tmp_path: Path) -> None:
    result = measured(
        tmp_path / "out",
        "sleep 0.2; echo tps = 1e3",
        ["tps=tps = (.*)"],
        work="tps",
        work_is_rate=True,
        sensors=["drive"],
    )
    (run,) = result.runs
    assert run.work == pytest.approx(1000 * run.seconds)
    assert run.joules_per_unit["device"].value == pytest.approx(0.002)


def test_repeats_and_idle_power(fakes: Fakes, tmp_path: Path) -> None:
    result = measured(tmp_path / "out", "sleep 0.1", sensors=["drive"], repeats=2, idle_seconds=0.2)
    assert result.idle is not None
    assert result.idle.power["device"].mean_watts == pytest.approx(2.0)
    assert [run.number for run in result.runs] == [1, 2]
    assert result.summary["device_watts"].runs == 2
    for run in result.runs:
        assert run.power["device"].above_idle_joules == pytest.approx(0.0, abs=1e-9)


def test_a_sensor_that_fails_is_named_and_gives_no_number(fakes: Fakes, tmp_path: Path) -> None:
    fakes["drive"] = lambda: FakeSensor(constant(2.0), name="drive", fail_after=150)
    result = measured(tmp_path / "out", "sleep 0.25; echo 5", ["n=([0-9]+)"], work="n")
    (run,) = result.runs
    device = run.power["device"]
    assert (device.mean_watts, device.energy_joules) == (None, None)
    assert device.reason is not None
    assert "stalled" in device.reason
    assert set(run.joules_per_unit) == {"cpu"}
    assert "device_joules_per_unit" not in result.summary
    with pytest.raises(SensorError, match="stalled"):
        result.require_success()


def test_a_sensor_that_does_not_start_stops_it_before_the_program_runs(
    fakes: Fakes, tmp_path: Path
) -> None:
    fakes["drive"] = lambda: FakeSensor(constant(2.0), name="drive", fail_start=True)
    ran = tmp_path / "ran"
    with pytest.raises(SensorError, match="does not start"):
        measured(tmp_path / "out", f"touch {shlex.quote(str(ran))}")
    assert not ran.exists()


def test_a_sensor_that_does_not_start_again_keeps_the_runs_before(
    fakes: Fakes, tmp_path: Path
) -> None:
    starts: list[int] = []

    def third_time() -> FakeSensor:  # the request probes it once
        starts.append(1)
        return FakeSensor(constant(2.0), name="drive", fail_start=len(starts) > 2)

    fakes["drive"] = third_time
    result = measured(tmp_path / "out", "sleep 0.1", sensors=["drive"], repeats=3)
    assert len(result.runs) == 1
    assert result.failure is not None
    assert "does not start" in result.failure


def test_a_program_that_fails_is_not_repeated(fakes: Fakes, tmp_path: Path) -> None:
    result = measured(tmp_path / "out", "exit 7", sensors=["drive"], repeats=3)
    (run,) = result.runs
    assert (run.exit_status, run.whole) == (7, False)
    assert result.summary == {}


def test_a_program_that_a_signal_ends(fakes: Fakes, tmp_path: Path) -> None:
    (run,) = measured(tmp_path / "out", "kill -9 $$", sensors=["drive"]).runs
    assert (run.exit_status, run.killed_by) == (None, "SIGKILL")


def test_a_figure_that_is_missing_is_said(fakes: Fakes, tmp_path: Path) -> None:
    result = measured(
        tmp_path / "out", "sleep 0.05; echo n: 1,2", ["n=n: (.*)", "m=m: (.*)"], work="m"
    )
    (run,) = result.runs
    assert run.metrics == {"n": None, "m": None}
    assert any("'1,2' is not a number" in note for note in run.notes)
    assert any("nothing in the output matches 'm: (.*)'" in note for note in run.notes)
    with pytest.raises(InputError, match="--metric m"):
        result.require_success()


# Signals --------------------------------------------------------------------------------------

PATIENT = "trap 'echo stopped at 3; exit 0' INT; touch {ready}; while true; do sleep 0.05; done"


def signal_when(ready: Path, *numbers: signal.Signals) -> threading.Thread:
    """Send signals to this process, one after the other, once the file is there."""

    def send() -> None:
        pause = threading.Event()
        while not ready.exists():
            pause.wait(0.02)
        for number in numbers:
            pause.wait(0.2)
            os.kill(os.getpid(), number)

    thread = threading.Thread(target=send)
    thread.start()
    return thread


def test_an_interrupt_reaches_the_program_and_everything_is_kept(
    fakes: Fakes, tmp_path: Path
) -> None:
    ready = tmp_path / "ready"
    thread = signal_when(ready, signal.SIGINT)
    before = signal.getsignal(signal.SIGINT)
    result = measured(
        tmp_path / "out",
        PATIENT.format(ready=shlex.quote(str(ready))),
        ["n=stopped at ([0-9])"],
        work="n",
        repeats=3,
    )
    thread.join()
    assert signal.getsignal(signal.SIGINT) == before
    (run,) = result.runs
    assert result.interrupted
    assert run.interrupted
    assert run.work == 3  # the program ended in order and said what it had done
    assert run.power["device"].mean_watts == pytest.approx(2.0)
    assert read_recording(tmp_path / "out" / "run-1").delivery("drive").samples > 0
    assert result.summary == {}  # but it is no measurement


def test_a_deaf_program_is_killed_by_the_third_signal(fakes: Fakes, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    thread = signal_when(ready, signal.SIGINT, signal.SIGINT, signal.SIGINT)
    deaf = (
        "import pathlib, signal, time; signal.signal(2, signal.SIG_IGN); "
        f"signal.signal(15, signal.SIG_IGN); pathlib.Path({str(ready)!r}).touch(); time.sleep(60)"
    )
    result = measured(tmp_path / "out", f"exec {shlex.join([sys.executable, '-c', deaf])}")
    thread.join()
    (run,) = result.runs
    assert (run.killed_by, run.interrupted) == ("SIGKILL", True)


def test_an_interrupt_while_it_waits_ends_it_without_another_run(
    fakes: Fakes, tmp_path: Path
) -> None:
    second = tmp_path / "out" / "run-1" / "stdout.txt"
    thread = signal_when(second, signal.SIGTERM)
    result = measured(tmp_path / "out", "echo 1", sensors=["drive"], repeats=2, settle_seconds=60)
    thread.join()
    assert len(result.runs) == 1
    assert result.interrupted


# Requests -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"work": "x"}, "no --metric is called so"),
        ({"metrics": [parse_metric("a=(.)"), parse_metric("a=(..)")]}, "each name once"),
        ({"command": []}, "no program is named"),
        ({"command": ["no-such-program-anywhere"]}, "no such program"),
        ({"repeats": 0}, "--repeat"),
    ],
)
def test_what_cannot_be_done_is_refused_first(
    fakes: Fakes, tmp_path: Path, changed: dict[str, Any], said: str
) -> None:
    plain = {"command": ["true"], "folder": tmp_path / "out", "sensors": ["drive"]}
    with pytest.raises(InputError, match=said):
        measure_command(CommandRequest(**(plain | changed)))
    assert not (tmp_path / "out").exists()


def test_a_folder_that_holds_something_is_refused(fakes: Fakes, tmp_path: Path) -> None:
    (tmp_path / "note").touch()
    with pytest.raises(InputError, match="not an empty folder"):
        measure_command(CommandRequest(command=["true"], folder=tmp_path))


def test_the_result_is_plain_json(fakes: Fakes, tmp_path: Path) -> None:
    measured(tmp_path / "out", "sleep 0.05", sensors=["drive"])
    data = json.loads((tmp_path / "out" / "result.json").read_text())
    assert data["schema_version"] == 1
    assert data["command"][0] == "sh"
    assert any("CPU's energy is not measured" in note for note in data["notes"])
