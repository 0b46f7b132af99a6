"""Up the ladder: each step narrows the intervals, and they keep covering the drive."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from iojoule.datasets.profile import DeviceProfile
from iojoule.datasets.schema import Measurement
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.fit.build import fit_profile
from iojoule.model.fit.expectation import Expectation
from iojoule.model.fit.learn_prior import flow_rows, predict_rows
from iojoule.model.prior.build import build_profile
from iojoule.model.prior.facts import DriveFacts
from iojoule.model.recipe import generic_recipe

Maker = Callable[..., list[Measurement]]
DRIVE = DriveFacts(device="truth", model="Truth", sata=False, datacentre=False, xpoint=False)


def fitted(rows: list[Measurement]) -> DeviceProfile:
    expected = Expectation(DRIVE, generic_recipe("truth", "Truth"), rows)
    profile = fit_profile(expected.power_recipe(rows), rows, [], priors_of=expected.priors)
    return expected.completed(profile)


@pytest.fixture(scope="module")
def ladder(measure: Maker) -> list[DeviceProfile]:
    """Facts, two rows, a handful, and a campaign of one simple drive."""
    handful = measure(sizes=(4096, 65536), depths=(1, 16), noise=0.02)
    return [
        build_profile(DRIVE),
        fitted(measure(sizes=(4096,), depths=(1, 64), noise=0.02)),
        fitted(handful),
        fitted(measure(noise=0.02, depths=(1, 2, 4, 8, 16, 32, 64, 128, 256))),
    ]


def test_each_step_narrows_and_covers(ladder: list[DeviceProfile], measure: Maker) -> None:
    (rows,) = flow_rows(measure(depths=(1, 3, 12, 48, 200)), 20).values()
    widths = []
    for profile in ladder:
        answer = predict_rows(Predictor(profile), "read_random", rows)
        band = answer["latency_mean_ns"]
        inside = (band.low <= rows.mean_ns) & (rows.mean_ns <= band.high)
        assert inside.mean() >= 0.85
        widths.append(float(np.mean(np.log(band.high / band.low))))
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < 0.5 * widths[0]


def test_rows_of_one_flow_tell_of_the_others(ladder: list[DeviceProfile]) -> None:
    widths = []
    for profile in (ladder[0], ladder[2]):
        assert profile.ladder is not None
        told = {entry.quantity: entry.relative_half_width for entry in profile.ladder.entries}
        widths.append(told["read_sequential_operations_per_second"])
    assert widths[1] < widths[0]
    assert ladder[2].surface("write", "sequential") is not None


def test_power_that_no_sensor_saw_is_expected_and_says_so(ladder: list[DeviceProfile]) -> None:
    for profile in ladder:
        answer, _ = Predictor(profile).predict_columns({"queue_depth": [16]}, 1)
        assert answer.evidence_words("device_power_watts") == ["datasheet"]
    assert any("no sensor saw it" in gap for gap in ladder[2].gaps)


def test_the_ladder_counts_rows(ladder: list[DeviceProfile]) -> None:
    rungs = []
    for profile in ladder:
        assert profile.ladder is not None
        told = {entry.quantity: entry for entry in profile.ladder.entries}
        rungs.append(told["read_random_latency_ns"].rung)
        assert told["write_random_latency_ns"].rung == "datasheet"
    assert rungs == ["datasheet", "few_measurements", "few_measurements", "campaign"]
