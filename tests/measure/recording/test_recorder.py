import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from iojoule.measure.errors import SensorError
from iojoule.measure.lab.powersensor3 import ConstantPower, EmulatedPowerSensor3
from iojoule.measure.recording import Recording, read_recording
from iojoule.measure.recording.recorder import Recorder
from iojoule.measure.recording.statistics import IdlePower
from iojoule.measure.sensors.polled import PolledSensor
from iojoule.measure.sensors.powersensor3 import PowerSensor3
from iojoule.measure.sensors.protocol import POWER_FIELDS, Flag, Kind, Probe, Rail, Scope
from tests.measure.fakes import POWER, FakeSensor, constant

PATIENCE_SECONDS = 20.0
FRAME_NS = 50_000
"""From one of PowerSensor3's frames to the next, at 20 kHz."""
ENERGY = (
    Rail("psys", "joules", Kind.ENERGY, Scope.SYSTEM),
    Rail("package-0", "joules", Kind.ENERGY, Scope.CPU),
    Rail("package-0-core", "joules", Kind.ENERGY, Scope.CPU, counts=False),
    Rail("package-1", "joules", Kind.ENERGY, Scope.CPU),
    Rail("package-0-dram", "joules", Kind.ENERGY, Scope.DRAM),
)


def wait_for(condition: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.01)


def recorded(
    folder: Path, *sensors: FakeSensor, seconds: float = 0.3
) -> tuple[Recording, int, int]:
    recorder = Recorder(sensors, folder)
    recorder.start()
    begin = time.monotonic_ns()
    time.sleep(seconds)
    end = time.monotonic_ns()
    return recorder.stop(), begin, end


def test_the_emulated_device_is_recorded_with_its_marker(tmp_path: Path) -> None:
    source = ConstantPower(1.5, 4.0)
    with EmulatedPowerSensor3(tmp_path, source) as device:
        sensor = PowerSensor3(str(device.path))
        with Recorder([sensor], tmp_path / "run") as recorder:
            begin = time.monotonic_ns()
            recorder.mark()
            wait_for(lambda: recorder.recent_power(Scope.DEVICE, 0.5))
            recent = recorder.recent_power(Scope.DEVICE, 0.5)
            end = time.monotonic_ns()
            recording = recorder.stop()
            assert recorder.failed() is None
    assert recent is not None
    assert recent.mean_watts == pytest.approx(5.5, abs=0.05)
    assert recent.standard_error_watts < 0.05
    power = recording.power(Scope.DEVICE, begin, end)
    assert power is not None
    assert power.mean_watts == pytest.approx(5.5, abs=0.03)
    assert power.energy_joules == pytest.approx(5.5 * (end - begin) * 1e-9, rel=0.01)
    # a busy machine may keep the device waiting; the first frame comes after the begin
    missing_ns = sum(until - since for since, until in power.gaps)
    assert power.coverage == pytest.approx(1 - missing_ns / (end - begin), abs=0.03)
    assert power.lost == pytest.approx(missing_ns / FRAME_NS, abs=400)
    assert power.rails == ("slot-3v3", "slot-12v")
    delivery = recording.delivery(sensor.name)
    assert delivery.samples + delivery.lost == device.frames_sent
    (file,) = (tmp_path / "run").glob("*.parquet")
    samples = pq.read_table(file, columns=["monotonic_ns", "flags"])
    (marker,) = samples["monotonic_ns"].to_numpy()[samples["flags"].to_numpy() & Flag.MARKER != 0]
    # times are anchored to this machine's clock, whatever the way they took
    assert begin - 10_000_000 < marker < end


def test_power_is_told_apart_by_scope_and_never_added(tmp_path: Path) -> None:
    watts = np.array([90.0, 20.0, 15.0, 30.0, 5.0])
    rapl = FakeSensor(lambda t: t[:, np.newaxis] * 1e-9 * watts, ENERGY, name="rapl", hertz=100)
    drive = FakeSensor(constant(7.0))
    recording, begin, end = recorded(tmp_path, drive, rapl)
    means = {}
    for scope in POWER_FIELDS:
        power = recording.power(scope, begin, end)
        assert power is not None
        means[scope.value] = power.mean_watts
    # psys not with the package, core not with its package
    assert means == pytest.approx({"device": 7, "cpu": 50, "dram": 5, "system": 90}, rel=1e-3)


def test_of_two_sensors_of_one_scope_the_first_counts(tmp_path: Path) -> None:
    first, second = FakeSensor(constant(7.0)), FakeSensor(constant(9.0), name="fake:b")
    recording, begin, end = recorded(tmp_path, first, second)
    one = recording.power(Scope.DEVICE, begin, end)
    other = recording.power(Scope.DEVICE, begin, end, sensor="fake:b")
    assert one is not None
    assert other is not None
    assert (one.mean_watts, other.mean_watts) == pytest.approx((7, 9))


def test_gauges_counters_and_what_nobody_measures(tmp_path: Path) -> None:
    rails = (
        Rail("drive-temperature", "celsius", Kind.GAUGE, Scope.HOST),
        Rail("reads", "operations", Kind.COUNTER, Scope.HOST),
    )
    sensor = FakeSensor(
        lambda times: np.column_stack([40 + 0 * times, times * 1e-6]), rails, hertz=100
    )
    recording, begin, end = recorded(tmp_path, sensor)
    gauge = recording.gauge("drive-temperature", begin, end)
    assert gauge is not None
    assert (gauge.mean, gauge.minimum, gauge.maximum, gauge.last) == (40, 40, 40, 40)
    counter = recording.counter("reads", begin, end)
    assert counter is not None
    assert counter.per_second == pytest.approx(1000, rel=1e-3)
    assert recording.power(Scope.DEVICE, begin, end) is None
    assert recording.background(Scope.DEVICE, begin, IdlePower(1, 0.1)) is None
    with pytest.raises(SensorError, match="no rail 'writes' was recorded, only"):
        recording.gauge("writes", begin, end)
    with pytest.raises(SensorError, match="empty window"):
        recording.power(Scope.DEVICE, end, begin)


def test_the_last_reading_of_a_slow_counter_is_awaited(tmp_path: Path) -> None:
    rail = Rail("drive", "joules", Kind.ENERGY, Scope.DEVICE)
    slow = FakeSensor(lambda times: 3.0e-9 * times, (rail,), hertz=2.0)
    recording, begin, end = recorded(tmp_path, slow, seconds=0.7)
    power = recording.power(Scope.DEVICE, begin, end)
    assert power is not None
    assert power.mean_watts == pytest.approx(3.0)
    assert power.coverage > 0.95  # from its first reading, a moment after the begin


def test_what_was_recorded_is_read_back(tmp_path: Path) -> None:
    recording, begin, end = recorded(tmp_path, FakeSensor(constant(7.0, 1.0), rails_of(2)))
    again = read_recording(tmp_path)
    assert again.power(Scope.DEVICE, begin, end) == recording.power(Scope.DEVICE, begin, end)
    assert again.sensors == ("fake:a",)
    assert again.identity("fake:a") == {"serial": "1"}
    (file,) = tmp_path.glob("*.parquet")
    schema = pq.read_schema(file)
    assert schema.names == ["monotonic_ns", "flags", "rail0", "rail1"]
    assert schema.field("rail0").metadata[b"unit"] == b"watts"
    assert not list(tmp_path.glob(".*.part"))


def rails_of(count: int) -> tuple[Rail, ...]:
    return tuple(Rail(f"rail{n}", "watts", Kind.POWER, Scope.DEVICE) for n in range(count))


def test_a_sensor_that_fails_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    bad = FakeSensor(constant(1.0), name="fake:bad", fail_after=200)
    good = FakeSensor(constant(2.0), name="fake:good")
    recorder = Recorder([bad, good], tmp_path)
    recorder.start()
    wait_for(recorder.failed)
    assert recorder.failed() == "fake:bad stalled"
    assert recorder.recent_power(Scope.DEVICE, 0.1) is None
    begin = time.monotonic_ns()
    time.sleep(0.1)
    recording = recorder.stop()
    assert recording.failures == {"fake:bad": "fake:bad stalled"}
    power = recording.power(Scope.DEVICE, begin, begin + 50_000_000, sensor="fake:good")
    assert power is not None
    assert power.mean_watts == pytest.approx(2)
    late = recording.power(Scope.DEVICE, begin, begin + 50_000_000)
    assert late is not None
    assert late.mean_watts is None


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_bug_in_a_sensor_fails_the_run_too(tmp_path: Path) -> None:
    recorder = Recorder([FakeSensor(constant(1.0), fail_after=100, error=KeyError)], tmp_path)
    recorder.start()
    wait_for(recorder.failed)
    assert "an error in iojoule itself" in (recorder.failed() or "")
    recorder.stop()


def test_where_one_does_not_start_nothing_is_kept(tmp_path: Path) -> None:
    good = FakeSensor(constant(1.0))
    bad = FakeSensor(constant(1.0), name="fake:bad", fail_start=True)
    with pytest.raises(SensorError, match="fake:bad does not start"):
        Recorder([good, bad], tmp_path).start()
    assert good.stopped
    assert not list(tmp_path.iterdir())


def test_a_folder_holds_one_recording(tmp_path: Path) -> None:
    recorded(tmp_path, FakeSensor(constant(1.0)), seconds=0.05)
    with pytest.raises(SensorError, match="already holds a recording"):
        Recorder([FakeSensor(constant(1.0))], tmp_path)
    with pytest.raises(SensorError, match="holds no recording"):
        read_recording(tmp_path / "elsewhere")
    with pytest.raises(SensorError, match="named once"):
        Recorder([FakeSensor(constant(1.0))] * 2, tmp_path / "new")


def test_marks_reach_the_sensors_that_take_them(tmp_path: Path) -> None:
    sensor = FakeSensor(constant(1.0))
    with Recorder([sensor], tmp_path) as recorder:
        recorder.mark()
    assert sensor.marks == 1


def test_recent_power_waits_for_enough_and_follows(tmp_path: Path) -> None:
    change = time.monotonic_ns() + 400_000_000
    with Recorder(
        [FakeSensor(lambda times: np.where(times < change, 5.0, 2.0))], tmp_path
    ) as recorder:
        assert recorder.recent_power(Scope.DEVICE, 60) is None
        assert recorder.recent_power(Scope.CPU, 0.1) is None
        wait_for(lambda: recorder.recent_power(Scope.DEVICE, 0.1))
        wait_for(lambda: getattr(recorder.recent_power(Scope.DEVICE, 0.2), "mean_watts", 9) < 2.01)


class Hangs(PolledSensor):
    """Says the same from some reading on."""

    def __init__(self) -> None:
        super().__init__("hangs", 0.01, repeats_are_stale=True)
        self.readings = 0

    def probe(self) -> Probe:
        return Probe(POWER, 100.0)

    def poll(self) -> list[float]:
        self.readings += 1
        return [float(min(self.readings, 100))]


def test_what_a_meter_that_hangs_said_before_is_not_recent(tmp_path: Path) -> None:
    with Recorder([Hangs()], tmp_path) as recorder:
        wait_for(lambda: recorder.recent_power(Scope.DEVICE, 0.2))
        wait_for(lambda: recorder.recent_power(Scope.DEVICE, 0.2) is None)


def test_a_foreign_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "00-x.parquet").write_bytes(b"PAR1 no such thing PAR1")
    with pytest.raises(SensorError, match="cannot be read"):
        read_recording(tmp_path)


FULL_DISK = """
import resource, signal, sys, time
from pathlib import Path
import numpy as np
from iojoule.measure.errors import SensorError
from iojoule.measure.recording import series as spool
from iojoule.measure.recording.recorder import Recorder
from tests.measure.fakes import FakeSensor
spool.GROUP_ROWS = 20_000
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
random = np.random.default_rng(1)
sensor = FakeSensor(lambda times: random.random((len(times), 1)), hertz=200_000)
recorder = Recorder([sensor], Path(sys.argv[1]))
recorder.start()
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
end = time.monotonic() + 20
while not recorder.failed() and time.monotonic() < end:
    time.sleep(0.05)
try:
    recorder.stop()
except SensorError as error:
    print(error)
"""


def test_a_full_disk_fails_clearly_and_leaves_no_half_file(tmp_path: Path, root: Path) -> None:
    assert resource.RLIMIT_FSIZE  # a limit on the size of files stands in for a full disk
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, tmp_path / "run"],
        capture_output=True,
        text=True,
        cwd=root,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "samples cannot be written" in done.stdout
    assert "make room" in done.stdout
    assert not list((tmp_path / "run").iterdir())
