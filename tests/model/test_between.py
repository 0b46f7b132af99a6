"""The spread between drives follows the drives that were measured, and never vanishes."""

from __future__ import annotations

import numpy as np
import pytest

from iojoule.datasets.schema import Measurement
from iojoule.model.fit.widths import (
    PRIOR_SESSIONS,
    between_drives,
    between_sessions,
    drive_effects,
)
from iojoule.model.prior.document import load_assumptions
from iojoule.model.recipe import Figure

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


def days(factors: dict[str, float]) -> list[Measurement]:
    """One drive in several sessions, slower in each by its factor."""
    return [
        run.model_copy(
            update={
                "conditions": run.conditions.model_copy(
                    update={
                        "device_serial_hash": "a",
                        "session_id": run.conditions.device_serial_hash,
                    }
                )
            }
        )
        for run in runs(factors)
    ]


def test_one_session_says_nothing_of_others() -> None:
    assert between_sessions(days({"monday": 1.0})) is None
    # nor do published points, nor sessions that share no configuration
    assert between_sessions(days({"monday": 1.0, "published": 2.0})) is None
    apart = [*days({"monday": 1.0})[:2], *days({"tuesday": 1.3})[2:]]
    assert between_sessions(apart) is None


def test_two_sessions_move_the_prior_of_other_drives() -> None:
    prior = load_assumptions().conditions["session"].sd
    found = between_sessions(days({"monday": 1.0, "tuesday": 1.26}))
    assert found is not None
    own = np.log(1.26) ** 2 / 2.0
    expected = (PRIOR_SESSIONS * prior**2 + own) / (PRIOR_SESSIONS + 1.0) * 1.5
    assert found.value == pytest.approx(np.sqrt(expected), rel=1e-6)
    alike = between_sessions(days({"monday": 1.0, "tuesday": 1.0}))
    assert alike is not None
    assert 0.0 < alike.value < found.value


def test_many_sessions_speak_for_themselves() -> None:
    spread = np.random.default_rng(3).normal(0.0, 0.2, 60)
    found = between_sessions(days({f"day{i}": float(np.exp(s)) for i, s in enumerate(spread)}))
    assert found is not None
    assert found.value == pytest.approx(float(np.std(spread, ddof=1)), rel=0.05)
