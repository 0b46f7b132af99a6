"""The spread between drives follows the drives that were measured, and never vanishes."""

from __future__ import annotations

import numpy as np
import pytest

from iojoule.datasets.schema import Measurement
from iojoule.model.fitting.between import between_drives, drive_effects
from iojoule.model.fitting.recipe import Figure

ASSUMED = Figure(value=0.03, sd=0.02, unit="log", source="assumed")


def runs(factors: dict[str, float]) -> list[Measurement]:
    """Every drive runs every configuration, slower by its factor."""
    return [
        Measurement.model_validate(
            {
                "workload": {"operation": "read", "pattern": "random"},
                "configuration": {"request_bytes": size, "queue_depth": depth},
                "conditions": {"device_serial_hash": drive},
                "observations": {"iops": depth * 1e4 / (factor * size / 4096)},
            }
        )
        for drive, factor in factors.items()
        for size in (4096, 8192)
        for depth in (1, 8)
    ]


def test_one_drive_leaves_the_prior_as_it_is() -> None:
    assert between_drives(runs({"a": 1.0}), ASSUMED) == ASSUMED


def test_effects_of_a_balanced_table_are_exact() -> None:
    effects = drive_effects(runs({"a": 1.0, "b": 1.1, "c": 0.9}))
    logs = np.log([1.0, 1.1, 0.9])
    assert list(effects.values()) == pytest.approx(logs - logs.mean(), abs=1e-12)


def test_equal_drives_narrow_the_prior_and_never_to_zero() -> None:
    equal = between_drives(runs({"a": 1.0, "b": 1.0, "c": 1.0}), ASSUMED)
    assert 0.02 < equal.value < ASSUMED.value
    apart = between_drives(runs({"a": 0.8, "b": 1.0, "c": 1.25}), ASSUMED)
    assert apart.value > 0.1


def test_many_drives_speak_for_themselves() -> None:
    spread = np.random.default_rng(3).normal(0.0, 0.1, 60)
    told = between_drives(runs({f"d{i}": float(np.exp(s)) for i, s in enumerate(spread)}), ASSUMED)
    assert told.value == pytest.approx(float(np.std(spread, ddof=1)), rel=0.1)
