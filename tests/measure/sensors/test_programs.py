"""ipmitool and nvme, played by small programs on the PATH."""

import itertools
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from iojoule.measure.errors import SensorError
from iojoule.measure.sensors import open_sensor
from iojoule.measure.sensors.protocol import Kind, Scope
from tests.stand_ins import look_in

Program = Callable[[str, str], Path]

READING = """
    Instantaneous power reading:                   220 Watts
    Minimum during sampling period:                  2 Watts
    Average power reading over sample period:      184 Watts
    IPMI timestamp:                           Thu Feb 15 09:37:32 2024
    Sampling period:                          00001000 Milliseconds
    Power reading state is:                   {state}
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """Puts a Python program of that name on the PATH; its arguments land in `arguments`."""
    look_in(monkeypatch, tmp_path)

    def put(name: str, source: str) -> Path:
        path = tmp_path / name
        noted = "open(sys.argv[0] + '.arguments', 'w').write(' '.join(sys.argv[1:]))"
        path.write_text(f"#!{sys.executable}\nimport sys\n{noted}\n{source}", encoding="utf-8")
        path.chmod(0o755)
        return path.with_name(f"{name}.arguments")

    return put


def test_ipmi_reads_the_controller_of_this_machine(program: Program) -> None:
    arguments = program("ipmitool", f"print({READING.format(state='activated')!r})")
    sensor = open_sensor("ipmi")
    assert [rail.scope for rail in sensor.probe().rails] == [Scope.SYSTEM]
    sensor.start()
    assert sensor.read(1.0).values.tolist() == [[220.0]]
    assert arguments.read_text() == "dcmi power reading"


def test_ipmi_over_the_network_shows_no_password(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = program("ipmitool", f"print({READING.format(state='activated')!r})")
    monkeypatch.setenv("IOJOULE_IPMI_USER", "operator")
    monkeypatch.setenv("IPMI_PASSWORD", "secret")
    open_sensor("ipmi:bmc.example").probe()
    assert arguments.read_text() == ("-I lanplus -H bmc.example -U operator -E dcmi power reading")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (f"print({READING.format(state='deactivated')!r})", "measures no power"),
        ("sys.exit('Could not open device at /dev/ipmi0')", "Could not open device"),
        ("", "it printed nothing"),
    ],
)
def test_ipmi_without_a_reading(program: Program, source: str, words: str) -> None:
    program("ipmitool", source)
    with pytest.raises(SensorError, match=words):
        open_sensor("ipmi").probe()


@pytest.mark.usefixtures("program")
@pytest.mark.parametrize(
    ("text", "package"), [("ipmi", "ipmitool"), ("drive-power:/dev/nvme0", "nvme-cli")]
)
def test_a_program_that_is_missing(text: str, package: str) -> None:
    with pytest.raises(SensorError, match=f"apt-get install {package}"):
        open_sensor(text).probe()


def test_a_program_that_hangs(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    program("ipmitool", "import time; time.sleep(60)")
    monkeypatch.setattr("iojoule.measure.sensors.ipmi.TIMEOUT_SECONDS", 0.2)
    with pytest.raises(SensorError, match=r"did not answer within 0\.2 s"):
        open_sensor("ipmi").probe()


def nvme(value: int, scale: int, *, percent: int | None) -> str:
    """An nvme that hands out logs; without the power log where `percent` is None."""
    return f"""
smart = bytearray(512)
smart[240:244] = ({scale} << 16 | {value}).to_bytes(4, "little")
power = bytearray(64)
if sys.argv[1] == "smart-log":
    sys.stdout.buffer.write(smart)
elif {percent!r} is None:
    sys.exit("NVMe status: Invalid Log Page")
else:
    power[56] = {percent or 0}
    sys.stdout.buffer.write(power)
"""


@pytest.mark.parametrize(
    ("value", "scale", "watts"), [(412, 2, 4.12), (41_200, 1, 4.12), (1, 2, 0.01)]
)
def test_a_drive_that_measures_itself(
    program: Program, value: int, scale: int, watts: float
) -> None:
    program("nvme", nvme(value, scale, percent=5))
    sensor = open_sensor("drive-power:/dev/nvme0,every=0.01")
    (rail,) = sensor.probe().rails
    assert (rail.scope, rail.gain_uncertainty) == (Scope.DEVICE, 0.05)
    sensor.start()
    assert sensor.read(1.0).values[0, 0] == pytest.approx(watts)


@pytest.mark.parametrize("percent", [None, 255])
def test_an_error_that_the_drive_does_not_state_is_unknown(
    program: Program, percent: int | None
) -> None:
    program("nvme", nvme(100, 2, percent=percent))
    assert open_sensor("drive-power:/dev/nvme0").probe().rails[0].gain_uncertainty is None


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (nvme(0, 0, percent=5), "does not measure its own power"),
        ("print('short')", "6 and not 512 bytes"),
        ("sys.exit('/dev/nvme0: No such file or directory')", "No such file"),
    ],
)
def test_a_drive_that_does_not(program: Program, source: str, words: str) -> None:
    program("nvme", source)
    with pytest.raises(SensorError, match=words):
        open_sensor("drive-power:/dev/nvme0").probe()


def measuring(folder: Path, *, attributes: int = 0, restart_at: int = 0) -> str:
    """An nvme with a Power Measurement log: 4 W, one interval more at each reading."""
    return f"""
import pathlib, struct
state = pathlib.Path({str(folder)!r}, "state")
known = state.read_text() if state.exists() else "255 0 0 0"
generation, running, count, reads = map(int, known.split())
verb, words = sys.argv[1], " ".join(sys.argv[2:])
if verb == "id-ctrl":
    data = bytearray(4096); data[4] = 65; struct.pack_into("<I", data, 96, 1 << 21)
    sys.stdout.buffer.write(data)
elif verb == "set-feature":
    assert "--feature-id=0x25" in words
    running = int("--value=0x1" in words)
    if running:
        generation, count = generation + 1 & 255, 0
elif verb == "get-log":
    assert "--log-id=0x25" in words
    reads += 1
    count += running
    if reads == {restart_at}:
        generation += 1
    data = bytearray(64)
    struct.pack_into("<BBHII", data, 0, 0, generation, running | {attributes}, 64, count)
    struct.pack_into("<I", data, 40, 2 << 16 | 400)
    data[56] = 5
    sys.stdout.buffer.write(data)
else:
    sys.exit("unexpected " + verb)
state.write_text(f"{{generation}} {{running}} {{count}} {{reads}}")
"""


def test_the_power_log_comes_before_the_smart_log(program: Program, tmp_path: Path) -> None:
    program("nvme", measuring(tmp_path))
    sensor = open_sensor("drive-power:/dev/nvme0,every=0.01")
    (rail,) = sensor.probe().rails
    assert (rail.kind, rail.scope, rail.gain_uncertainty) == (Kind.ENERGY, Scope.DEVICE, 0.05)
    sensor.start()
    joules = [sensor.read(1.0).values[0, 0] for _ in range(3)]
    assert [after - before for before, after in itertools.pairwise(joules)] == [4.0, 4.0]
    assert sensor.stop().errors == ()
    assert (tmp_path / "state").read_text().split()[:2] == ["0", "0"]


def test_an_estimate_is_refused(program: Program, tmp_path: Path) -> None:
    program("nvme", measuring(tmp_path, attributes=4))
    with pytest.raises(SensorError, match="estimates its power"):
        open_sensor("drive-power:/dev/nvme0").probe()


def test_a_measurement_that_somebody_restarts_is_refused(program: Program, tmp_path: Path) -> None:
    program("nvme", measuring(tmp_path, restart_at=5))
    sensor = open_sensor("drive-power:/dev/nvme0,every=0.01")
    sensor.start()
    assert len(sensor.read(1.0)) == 1
    with pytest.raises(SensorError, match="generation"):
        sensor.read(1.0)
    sensor.stop()
    # the other program's measurement goes on
    assert (tmp_path / "state").read_text().split()[1] == "1"


def test_a_measurement_of_somebody_else_is_not_erased(program: Program, tmp_path: Path) -> None:
    program("nvme", measuring(tmp_path))
    (tmp_path / "state").write_text("7 1 100 0")
    with pytest.raises(SensorError, match="another program"):
        open_sensor("drive-power:/dev/nvme0").start()
    assert (tmp_path / "state").read_text().split()[:2] == ["7", "1"]
