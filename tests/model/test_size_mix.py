"""Requests of several sizes: what is true of any mix, and the rule against a simulated drive."""

from __future__ import annotations

import random

import numpy as np
import pytest

from iojoule.datasets.profile import load_shipped_profile
from iojoule.model.evaluate.bands import Direction
from iojoule.model.evaluate.prediction import Prediction
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.evaluate.size_mix import SizeMixPredictor, blend
from iojoule.sim import _core
from iojoule.sim.device import DeviceConfig
from iojoule.sim.engines.embedded import native
from iojoule.sim.formats.files import read_drive
from iojoule.sim.presets import preset_path

DEPTHS = [1, 4, 16, 64, 256]
SMALL, LARGE, MEAN = 4096, 65536, 19456
SHARES = {SMALL: 0.75, LARGE: 0.25}


@pytest.fixture(scope="module")
def single() -> Predictor:
    return Predictor(load_shipped_profile("samsung-980-pro-1tb"))


def at(predictor: Predictor, size: int, operation: str = "read") -> Prediction:
    columns = {"request_bytes": [size] * 5, "queue_depth": DEPTHS, "operation": [operation] * 5}
    return predictor.predict_columns(columns, 5)[0]


@pytest.mark.parametrize("operation", ["read", "write"])
def test_the_time_of_requests_adds_up(single: Predictor, operation: str) -> None:
    mixed = at(SizeMixPredictor(single, SHARES, MEAN), MEAN, operation)
    small, large = (1.0 / at(single, size, operation)["iops"].value for size in SHARES)
    np.testing.assert_allclose(1.0 / mixed["iops"].value, 0.75 * small + 0.25 * large, rtol=1e-9)
    np.testing.assert_allclose(
        mixed["throughput_bytes_per_second"].value, mixed["iops"].value * MEAN
    )
    np.testing.assert_allclose(mixed["iops"].value * mixed["latency_mean_ns"].value * 1e-9, DEPTHS)


def test_a_mix_of_one_size_is_that_size_and_no_surer(single: Predictor) -> None:
    one, mixed = (at(p, LARGE) for p in (single, SizeMixPredictor(single, {LARGE: 1.0}, LARGE)))
    for name in ("iops", "latency_mean_ns", "device_power_watts", "cpu_power_watts"):
        np.testing.assert_allclose(mixed[name].value, one[name].value, rtol=1e-9)
    for name in ("iops", "latency_p99_ns"):
        assert (mixed[name].high / mixed[name].low > one[name].high / one[name].low).all()


def test_other_sizes_are_answered_as_before(single: Predictor) -> None:
    one, mixed = (at(p, LARGE) for p in (single, SizeMixPredictor(single, SHARES, MEAN)))
    for name in ("iops", "latency_p99_ns", "device_power_watts"):
        np.testing.assert_array_equal(mixed[name].value, one[name].value)


def test_percentiles_rise_and_lie_where_they_can(single: Predictor) -> None:
    mixed = at(SizeMixPredictor(single, SHARES, MEAN), MEAN)
    p50, p99, p999 = (mixed[f"latency_{name}_ns"].value for name in ("p50", "p99", "p999"))
    assert (p50 < p99).all()
    assert (p99 < p999).all()
    small, large = (at(single, size)["latency_p99_ns"].value[0] for size in SHARES)
    assert small <= p99[0] <= large  # with one request in flight nothing waits


def simulated(sizes: dict[int, float], depth: int, kind: str) -> Direction:
    """A closed loop of requests of random sizes at random places on the simulated 980 PRO."""
    device = read_drive(preset_path("samsung-980-pro-1tb")).device
    assert isinstance(device, DeviceConfig)
    drive, chance = _core.LiveDrive(native(device)), random.Random(1)
    begun: list[int] = []
    latencies: list[int] = []

    def submit(now_ns: int) -> None:
        [size] = chance.choices(list(sizes), list(sizes.values()))
        place = 8 * chance.randrange(18_000_000)
        drive.submit(kind, place, size // 512, len(begun), now_ns)
        begun.append(now_ns)

    for number in range(depth):
        submit(number + 1)
    while len(latencies) < 1500:
        for request, done_ns in drive.advance(drive.next_event_ns):
            latencies.append(done_ns - begun[request])
            submit(max(done_ns, drive.now_ns))
    seen = np.array(latencies[300:])
    value = {"latency": np.log([seen.mean()])}
    for name, level in (("p50", 50.0), ("p99", 99.0), ("p999", 99.9)):
        value[name] = np.log([np.percentile(seen, level)])
    return Direction(value, {}, np.zeros(1, dtype=np.intp), np.ones(1))


def test_the_rule_beats_one_size_on_a_simulated_drive() -> None:
    errors: dict[str, list[tuple[float, float]]] = {"latency": [], "p99": []}
    for kind in ("read", "write"):
        alone = [simulated({size: 1.0}, 1, kind) for size in SHARES]
        for depth in (1, 4, 16):
            mix, mean = (simulated(sizes, depth, kind) for sizes in (SHARES, {MEAN: 1.0}))
            loaded = [simulated({size: 1.0}, depth, kind) for size in SHARES]
            told = blend(list(SHARES.values()), loaded, alone, mean)
            for name, error in errors.items():
                seen = mix.log_value[name][0]
                error.append((told[name][0] - seen, mean.log_value[name][0] - seen))
    for name, most in (("latency", 0.08), ("p99", 0.25)):
        rule, one_size = np.sqrt(np.mean(np.square(errors[name]), axis=0))
        assert rule < most
        assert rule < 0.7 * one_size
