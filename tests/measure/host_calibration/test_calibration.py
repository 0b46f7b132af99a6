"""Calibrating a host: what is refused, what is set and put back, and that the truth is found."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from iojoule.datasets.errors import InputError
from iojoule.datasets.profile import read_host_profile, write_host_profile
from iojoule.measure.errors import HostStateError, SensorError
from iojoule.measure.host.changes import SysfsValue
from iojoule.measure.host.facts import HostControls
from iojoule.measure.host.guard import Interrupted
from iojoule.measure.host.host_files import FREQUENCY_MAX, GOVERNOR, SLEEP_DISABLE
from iojoule.measure.host_calibration import load_program
from iojoule.measure.host_calibration.loads import Load, LoadPlan, plan_loads
from iojoule.measure.host_calibration.session import CalibrationRequest, calibrate, prepare
from iojoule.model.evaluate import host_power, system_power
from iojoule.model.evaluate.host_work import load_of
from tests.errors import having
from tests.measure.host_calibration.known_host import MINIMUM_HERTZ, REFERENCE_HERTZ, KnownHost


def controls_of(host: KnownHost) -> HostControls:
    return HostControls(host.sysfs)


def test_without_counters_and_meter_it_says_what_to_name(tmp_path: Path) -> None:
    with pytest.raises(SensorError, match=r"--rapl-root|no RAPL"):
        prepare(CalibrationRequest(rapl_root=tmp_path))
    if not list(Path("/sys/class/powercap").glob("*/energy_uj")):
        with pytest.raises(SensorError, match="--power netio"):
            prepare(CalibrationRequest())


def test_too_little_time_is_refused_with_what_is_needed(tmp_path: Path) -> None:
    host = KnownHost(tmp_path)
    with pytest.raises(InputError, check=having(field="minutes")):
        prepare(CalibrationRequest(rapl_root=host.rapl, minutes=0.2, controls=controls_of(host)))


def test_a_dry_run_names_every_step_and_changes_nothing(tmp_path: Path) -> None:
    host = KnownHost(tmp_path)
    request = CalibrationRequest(rapl_root=host.rapl, proc=host.proc, controls=controls_of(host))
    prepared = prepare(request)
    lines = list(prepared.commands())
    assert sum(line.startswith("#") for line in lines) == len(prepared.plan.loads)
    assert any("performance > " in line for line in lines)
    assert any("disable" in line for line in lines)
    assert host.hertz() == REFERENCE_HERTZ
    assert prepared.plan.seconds == pytest.approx(300, rel=0.05)


def test_a_plan_is_bracketed_by_idle_and_mixes_the_rest(tmp_path: Path) -> None:
    controls = controls_of(KnownHost(tmp_path))
    found = plan_loads(4, controls, 5.0, 10.0, target=True)
    kinds = [each.kind for each in found.loads]
    assert (kinds[0], kinds[-1]) == ("idle", "idle")
    assert {each.cpus for each in found.loads if each.kind == "burn"} == {1, 2, 4}
    assert {each.sleep_limit for each in found.loads} == {None, 0, 1}
    assert len({each.hertz for each in found.loads}) == 3
    # a meter that is read twice a second needs longer windows
    assert plan_loads(4, controls, 5.0, 2.0, target=True).window_seconds >= 15
    bare = plan_loads(4, HostControls(tmp_path / "nothing"), 5.0, 10.0, target=False)
    assert all(each.hertz is None and each.sleep_limit is None for each in bare.loads)


def test_sleep_states_that_the_host_has_switched_off_are_told(tmp_path: Path) -> None:
    host = KnownHost(tmp_path)
    request = CalibrationRequest(rapl_root=host.rapl, proc=host.proc, controls=controls_of(host))
    assert not [gap for gap in prepare(request).gaps if "C6" in gap]
    for file in SLEEP_DISABLE.find(host.sysfs):
        if file.parent.name == "state2":
            file.write_text("1\n")
    prepared = prepare(request)
    [told] = [gap for gap in prepared.gaps if "keeps its CPUs from C6" in gap]
    assert "that of C1" in told
    assert {load.sleep_limit for load in prepared.plan.loads} == {None, 0}


def test_a_host_with_company_is_refused(tmp_path: Path) -> None:
    with KnownHost(tmp_path) as host:
        arguments = [sys.executable, "-I", "-S", load_program.__file__, "burn", "0", "1"]
        busy = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        time.sleep(0.5)
        try:
            prepared = prepare(
                CalibrationRequest(
                    rapl_root=host.rapl,
                    minutes=1.6,
                    others_cores=0.02,
                    proc=host.proc,
                    controls=controls_of(host),
                )
            )
            with pytest.raises(HostStateError, match=r"others keep [\d.]+ cores .*--others-cores"):
                calibrate(prepared)
        finally:
            busy.communicate()
        governor = host.sysfs / "devices/system/cpu/cpu0/cpufreq/scaling_governor"
        assert governor.read_text().strip() == "schedutil"


def test_a_signal_while_a_load_is_taken_back_leaves_nothing_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IOJOULE_JOURNALS", str(tmp_path / "journals"))
    write = Path.write_text
    with KnownHost(tmp_path / "host") as host:
        files = FREQUENCY_MAX.find(host.sysfs)
        request = CalibrationRequest(
            rapl_root=host.rapl, others_cores=99, proc=host.proc, controls=controls_of(host)
        )
        plan = LoadPlan((Load("idle"), Load("idle", hertz=MINIMUM_HERTZ)), 0.1)
        prepared = replace(prepare(request), plan=plan)

        def interrupted(path: Path, text: str, *rest: str) -> int:
            # what is put back last, so that the others' turn has not come
            if path in files and text == f"{REFERENCE_HERTZ / 1e3:.0f}":
                monkeypatch.setattr(Path, "write_text", write)
                signal.raise_signal(signal.SIGTERM)
            return write(path, text, *rest)

        monkeypatch.setattr(Path, "write_text", interrupted)
        with pytest.raises(Interrupted):
            calibrate(prepared)
        assert {float(file.read_text()) * 1e3 for file in files} == {REFERENCE_HERTZ}
        assert {file.read_text().strip() for file in GOVERNOR.find(host.sysfs)} == {"schedutil"}
    assert list((tmp_path / "journals").iterdir()) == []


def test_a_frequency_is_one_that_the_driver_offers(tmp_path: Path) -> None:
    host = KnownHost(tmp_path)
    (file,) = (host.sysfs / "devices/system/cpu/cpu0/cpufreq").glob("scaling_max_freq")

    def limit(hertz: float) -> str:
        return next(v for c, v in controls_of(host).frequency(hertz) if c == SysfsValue(str(file)))

    assert limit(2.1e9) == "2100000"
    assert [limit(9e9), limit(1e6)] == ["3000000", "1000000"]  # of a slower kind of core
    file.with_name("scaling_available_frequencies").write_text("2600000 1800000 1200000 \n")
    assert [limit(hertz) for hertz in (2.1e9, 2.6e9, 1e9)] == ["1800000", "2600000", "1200000"]
    file.with_name("scaling_boost_frequencies").write_text("3000000\n")
    assert limit(3e9) == "3000000"


@pytest.mark.parametrize(("kind", "amount"), [("burn", "0.3"), ("wake", "200"), ("copy", "1")])
def test_a_load_does_what_its_name_says(kind: str, amount: str) -> None:
    cpu = str(min(os.sched_getaffinity(0)))
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", load_program.__file__, kind, cpu, amount],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    time.sleep(1.0)
    said = json.loads(process.communicate(timeout=30)[0])
    assert 0.0 < said["busy_cores"] <= 1.1
    assert (said["bytes_per_second"] > 0) == (kind == "copy")
    if kind == "burn":
        assert said["busy_cores"] < 0.6
    if kind == "wake":
        assert 0 < said["wakeups_per_second"] < 400


@pytest.mark.soak
def test_what_was_set_is_what_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two and a half minutes on a host of known law, with real processes and fio."""
    monkeypatch.setenv("IOJOULE_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("IOJOULE_JOURNALS", str(tmp_path / "state"))
    (tmp_path / "host").mkdir()
    with KnownHost(tmp_path / "host") as host:
        time.sleep(1.0)
        prepared = prepare(
            CalibrationRequest(
                rapl_root=host.rapl,
                minutes=2.0,
                folder=tmp_path,
                proc=host.proc,
                controls=controls_of(host),
            )
        )
        found = calibrate(prepared)
    truth = host.truth
    write_host_profile(found, tmp_path / "host.json")
    assert read_host_profile(tmp_path / "host.json") == found
    # idle, memory and sleep, none of which depends on how busy this machine lets the loads be
    idle = found.power.parameters[0]
    assert idle.value == pytest.approx(truth.idle_watts, rel=0.03)
    assert abs(idle.value - truth.idle_watts) < 4 * idle.sd
    assert found.power.dram is not None
    assert found.power.dram.idle_watts.value == pytest.approx(truth.dram_watts, rel=0.02)
    assert found.operation is not None
    light = [state.core_watts.value for state in found.operation.idle_states]
    assert light == pytest.approx(truth.light_watts, abs=0.4)
    # the law at loads of the measured range, and the wall above it
    busy = np.array([0.05, 0.2, 0.4])
    value, sd = host_power.watts(found.power, load_of(busy, np.ones(3), np.zeros(3)))
    expected = np.array([truth.cpu_watts(one) for one in busy])
    np.testing.assert_allclose(value, expected, rtol=0.05)
    assert (np.abs(value - expected) < 4 * sd).all()
    assert found.system is not None
    parts = np.array([25.0, 30.0])
    wall, _ = system_power.watts(found.system, parts, np.zeros(2))
    np.testing.assert_allclose(wall, [truth.wall_watts(one) for one in parts], rtol=0.03)
    # a core and its package are told apart by loads of several cores only; their sum always is
    assert value[2] - value[0] == pytest.approx(expected[2] - expected[0], rel=0.1)
    assert found.performance is not None
    assert {path.engine.value for path in found.performance.paths} >= {"psync", "libaio"}
    # everything is as it was, and nothing stays behind
    assert host.hertz() == REFERENCE_HERTZ
    assert host.limit() == 2
    assert not list(tmp_path.glob(".iojoule-host-*"))
    assert not list((tmp_path / "state").glob("restore-*"))
