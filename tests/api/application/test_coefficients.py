"""Joules by command and byte for other programs."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from iojoule.api.application.coefficients import (
    coefficients,
    coefficients_document,
    recording_rules,
)
from iojoule.datasets.errors import NoProfileError
from iojoule.datasets.profile import load_shipped_profile, shipped_profiles
from iojoule.model.evaluate.frame import make_frame
from iojoule.model.evaluate.predictor import Predictor

PROFILE = load_shipped_profile("samsung-980-pro-1tb")


@pytest.mark.parametrize("size", [4096, 131072])
def test_the_formula_is_the_law_at_full_speed(size: int) -> None:
    columns = {"operation": "read", "pattern": "random", "request_bytes": size, "queue_depth": 32}
    frame, _ = make_frame(PROFILE, {**columns, "jobs": 1}, 1)
    told = Predictor(PROFILE).predict(frame)
    rate = float(told["iops"].value[0])
    one = {name: coefficient.value for name, coefficient in coefficients(PROFILE).items()}
    watts = one["idle_watts"] + one["awake_watts"] + one["read_command_joules"] * rate
    watts += one["read_byte_joules"] * rate * size
    assert told["device_power_watts"].low[0] <= watts <= told["device_power_watts"].high[0]


@pytest.mark.parametrize("device", shipped_profiles())
def test_the_formula_takes_the_coefficients_that_are_known(device: str) -> None:
    told = coefficients_document(load_shipped_profile(device))
    taken = re.findall(r"\w+_(?:watts|joules)", told["formula"])
    assert sorted(taken) == sorted(told["coefficients"])


def test_a_regular_expression_of_drives_is_escaped() -> None:
    rules = recording_rules(PROFILE, r'nvme\dn1"')
    assert rules.count(r'{device=~"nvme\\dn1\""}[5m]') == rules.count("[5m]")


def test_each_has_its_interval_and_where_it_comes_from() -> None:
    for one in coefficients_document(PROFILE)["coefficients"].values():
        assert 0 <= one["low"] <= one["value"] <= one["high"]
        assert one["unit"] in {"W", "J"}
        assert one["evidence"]
        assert one["source"]


def test_prometheus_accepts_the_rules(tmp_path: Path) -> None:
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool is not installed: apt-get install prometheus")
    rules = tmp_path / "rules.yml"
    rules.write_text(recording_rules(PROFILE, "nvme0n1"))
    done = subprocess.run([program, "check", "rules", rules], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_profile_without_watts_is_refused() -> None:
    with pytest.raises(NoProfileError):
        coefficients(PROFILE.model_copy(update={"device_power": None}))
