import math

import numpy as np
import pytest

from iojoule.measure.errors import SensorError
from iojoule.measure.sensors.polled import PolledSensor
from iojoule.measure.sensors.protocol import Flag, Kind, Probe, Rail, Scope


class Answers(PolledSensor):
    """Answers from a list; None = no answer."""

    def __init__(self, *answers: float | None, patience: int = 0) -> None:
        super().__init__("answers", 0.03, repeats_are_stale=True, patience=patience)
        self.answers = list(answers)

    def probe(self) -> Probe:
        return Probe((Rail("wall", "watts", Kind.POWER, Scope.SYSTEM),), 100.0)

    def poll(self) -> list[float]:
        answer = self.answers.pop(0)
        if answer is None:
            raise SensorError("no answer")
        return [answer]


def readings(sensor: Answers, count: int) -> list[tuple[float, int]]:
    chunks = [sensor.read(1.0) for _ in range(count)]
    return [(float(chunk.values[0, 0]), int(chunk.flags[0])) for chunk in chunks if len(chunk)]


def test_a_repeated_reading_is_stale() -> None:
    sensor = Answers(5, 5, 6, 6, 5)
    sensor.start()
    stale = [bool(flags & Flag.STALE) for _, flags in readings(sensor, 5)]
    assert stale == [False, True, False, True, False]


def test_nothing_is_asked_before_it_is_due() -> None:
    sensor = Answers(1, 2)
    sensor.start()
    assert len(sensor.read(1.0)) == 1
    assert len(sensor.read(0.0)) == 0
    assert sensor.answers == [2]


def test_a_missing_answer_is_a_gap_and_too_many_are_an_error() -> None:
    sensor = Answers(1, None, None, 2, None, None, None, patience=2)
    sensor.start()
    assert readings(sensor, 4) == [(1, 0), (2, Flag.GAP)]
    with pytest.raises(SensorError, match="no answer"):
        readings(sensor, 3)
    delivery = sensor.stop()
    assert (delivery.samples, len(delivery.errors)) == (2, 5)
    assert delivery.lost >= 5
    assert len(sensor.read(0.0)) == 0


def test_the_time_is_that_of_the_question() -> None:
    sensor = Answers(1, 2)
    sensor.start()
    times = np.concatenate([sensor.read(1.0).monotonic_ns for _ in range(2)])
    assert times[1] > times[0]
    delivery = sensor.stop()
    assert (delivery.first_ns, delivery.last_ns) == (times[0], times[1])


@pytest.mark.parametrize("wrong", [-3.0, math.inf])
def test_power_that_cannot_be_is_no_reading(wrong: float) -> None:
    sensor = Answers(5, wrong, 6, patience=1)
    sensor.start()
    assert readings(sensor, 3) == [(5, 0), (6, Flag.GAP)]
    sensor = Answers(wrong)
    sensor.start()
    with pytest.raises(SensorError, match=r"answers: states .* watts for wall; .* wrong way round"):
        sensor.read(1.0)


def test_a_rail_without_a_value_is_none() -> None:
    sensor = Answers(5, math.nan, 6)
    sensor.start()
    seen = readings(sensor, 3)
    assert [value for value, _ in seen if not math.isnan(value)] == [5, 6]
