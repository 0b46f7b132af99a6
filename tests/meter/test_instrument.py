"""Instruments beside the meter that are read once a second or less often."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from iojoule.api.application.meter import INSTRUMENT_FAILED, LiveMeter, MeterOptions
from iojoule.measure.errors import SensorError
from iojoule.measure.sensors.polled import PolledSensor
from iojoule.measure.sensors.protocol import Kind, Probe, Rail, Scope
from iojoule.meter import instrument
from iojoule.meter.instrument import Instrument
from tests.meter.hosts import Host

PERIOD_SECONDS = 0.1
PATIENCE_SECONDS = 20.0
KINDS = {"watts": Kind.POWER, "joules": Kind.ENERGY}


class Polled(PolledSensor):
    """Reads what a function says of the number of the reading, from 0; None fails."""

    def __init__(self, value: Callable[[int], float | None], unit: str = "watts") -> None:
        super().__init__("polled", PERIOD_SECONDS, repeats_are_stale=True)
        self._value, self._unit, self.readings = value, unit, -1

    def probe(self) -> Probe:
        rail = Rail("drive", self._unit, KINDS[self._unit], Scope.DEVICE)
        return Probe((rail,), 1 / PERIOD_SECONDS)

    def poll(self) -> list[float]:
        self.readings += 1
        value = self._value(self.readings)
        if value is None:
            raise SensorError("it is gone")
        return [value]


@contextmanager
def beside(sensor: PolledSensor) -> Iterator[Instrument]:
    one = Instrument(sensor)
    try:
        yield one
    finally:
        one.close()


def wait_for(condition: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.01)


@pytest.mark.parametrize("seconds", [PERIOD_SECONDS / 2, PERIOD_SECONDS, 3 * PERIOD_SECONDS])
def test_a_beat_as_short_as_the_time_between_two_readings_has_watts(seconds: float) -> None:
    with beside(Polled(lambda number: 5.0 + number % 2)) as one:
        wait_for(lambda: one.watts(seconds))
        watts = one.watts(seconds)
    assert watts is not None
    assert 5.0 - 1e-9 <= watts[0] <= 6.0 + 1e-9
    assert watts[1] > 0


def test_joules_of_slow_counters_are_watts() -> None:
    with beside(Polled(lambda number: 0.7 * number, "joules")) as one:
        wait_for(lambda: one.watts(PERIOD_SECONDS))


def test_unchanged_watts_hold_and_those_of_an_instrument_that_hangs_do_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sensor = Polled(lambda number: 3.5)
    with beside(sensor) as one:
        wait_for(lambda: sensor.readings > 5 and one.watts(PERIOD_SECONDS))
        monkeypatch.setattr(instrument, "HELD_SECONDS", 0.0)
        wait_for(lambda: one.watts(PERIOD_SECONDS) is None)
        assert one.failure is None


def test_an_instrument_that_failed_is_named(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.nvme("nvme0n1", "S1")
    host.nvme("nvme0n2", "S1")
    (tmp_path / "watts").write_text("9.5\n")
    options = MeterOptions(
        proc=host.proc,
        sysfs=host.sysfs,
        instruments={"nvme0n2": f"program:cat {tmp_path / 'watts'},every=0.05"},
    )
    with LiveMeter(options) as live:
        wait_for(lambda: live.step()[0].watts == pytest.approx(9.5))
        assert live.readings[0].corrected
        (tmp_path / "watts").unlink()
        wait_for(lambda: INSTRUMENT_FAILED in live.step()[0].reasons)
        (reading,) = live.step()
        assert reading.watts_high > reading.watts
        assert len(list(live.remarks())) == 1
