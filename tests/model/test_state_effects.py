"""Power states of drives on which nobody measured them, by class of drive."""

from __future__ import annotations

import numpy as np
import pytest

from iojoule.datasets.profile import Parameter, PowerStateEffect, load_shipped_profile
from iojoule.datasets.schema import Measurement
from iojoule.datasets.vocabulary import Evidence, Operation
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.fit.power_states import power_state_recipes

CAPS = [25.0, 12.0, 10.0]
"""Of the D7-P5510 (004 3.2.1)."""

FULL_WRITE = 4e9
NORMAL_90 = 1.645


def rows() -> list[Measurement]:
    """Writes reach 14.7 W, reads stay at 9 W; the controller alone draws 4.2 W."""
    return [
        Measurement.model_validate(
            {
                "workload": {"operation": operation, "pattern": "sequential"},
                "configuration": {"request_bytes": 262144, "queue_depth": 64},
                "observations": {
                    "throughput_bytes_per_second": share * full,
                    "device_power_watts": 4.2 + share * (watts - 4.2),
                },
            }
        )
        for operation, full, watts in (("write", FULL_WRITE, 14.7), ("read", 6.5e9, 9.0))
        for share in (0.001, 0.25, 0.5, 1.0)
    ]


def shares(drive_class: str) -> dict[tuple[Operation, int], tuple[float, float]]:
    """Share of the full speed that each state leaves, and its log sd."""
    full = {Operation.WRITE: FULL_WRITE, Operation.READ: 6.5e9}
    return {
        (recipe.operation, recipe.power_state): (
            recipe.ceiling_bytes_per_second.value / full[recipe.operation],
            recipe.ceiling_bytes_per_second.sd,
        )
        for recipe in power_state_recipes(CAPS, rows(), drive_class)
    }


def test_the_law_of_power_says_what_a_cap_leaves_a_data_centre_drive() -> None:
    found = shares("datacentre")
    assert found[Operation.WRITE, 1][0] == pytest.approx(0.74, abs=0.01)  # 004 X3
    assert found[Operation.WRITE, 2][0] == pytest.approx(0.55, abs=0.01)
    assert found[Operation.READ, 1][0] > 1.0, "reads stay below the cap (004 X4)"
    assert found[Operation.READ, 2][0] > 1.0


def test_reads_of_a_data_centre_drive_are_as_fast_and_its_write_tails_grow() -> None:
    effects = {
        (o.operation, o.power_state): o for o in power_state_recipes(CAPS, rows(), "datacentre")
    }
    read, write = effects[Operation.READ, 2], effects[Operation.WRITE, 2]
    assert read.latency_factor.value == read.tail_factor.value == 1.0
    tail = write.tail_factor
    assert np.exp(NORMAL_90 * tail.sd) * tail.value > 6.19  # 004 X5: up to
    assert 1.0 < write.latency_factor.value < 2.0
    assert effects[Operation.WRITE, 1].tail_factor.value < tail.value


def test_reads_of_a_consumer_drive_lose_too() -> None:
    found = shares("consumer")
    assert found[Operation.READ, 1][0] < 0.5
    assert found[Operation.READ, 2][0] <= found[Operation.READ, 1][0]
    assert found[Operation.WRITE, 2][0] < found[Operation.WRITE, 1][0]


def test_an_unknown_class_reaches_over_both() -> None:
    consumer, datacentre, unknown = (shares(n) for n in ("consumer", "datacentre", "unknown"))
    for key, (share, sd) in unknown.items():
        low, high = share * np.exp(-NORMAL_90 * sd), share * np.exp(NORMAL_90 * sd)
        assert low < consumer[key][0]
        assert high > min(datacentre[key][0], 1.0)


def test_without_any_power_the_caps_alone_say_it_less_surely() -> None:
    bare = [
        m.model_copy(
            update={"observations": m.observations.model_copy(update={"device_power_watts": None})}
        )
        for m in rows()
    ]
    for recipe in power_state_recipes(CAPS, bare, "datacentre"):
        if recipe.operation is Operation.WRITE:
            share = recipe.ceiling_bytes_per_second.value / FULL_WRITE
            seen = {1: 0.74, 2: 0.55}[recipe.power_state]
            assert abs(np.log(share / seen)) < NORMAL_90 * recipe.ceiling_bytes_per_second.sd
            assert recipe.ceiling_bytes_per_second.sd > 0.4


def test_a_ceiling_that_falls_with_depth_holds_as_stated_at_eight_commands() -> None:
    profile = load_shipped_profile("samsung-980-pro-1tb")
    flat, falling = (
        Predictor(profile.model_copy(update={"power_state_effects": [_effect(exponent)]}))
        for exponent in (None, 0.5)
    )
    asked = {"request_bytes": 65536, "queue_depth": [8, 32, 128], "power_state": 1}
    before, after = (
        one.predict_columns(asked, 3)[0]["throughput_bytes_per_second"].value
        for one in (flat, falling)
    )
    assert before == pytest.approx(3e7, rel=0.01)
    assert after / before == pytest.approx([1.0, 0.5, 0.25], rel=0.01)


def _effect(exponent: float | None) -> PowerStateEffect:
    def number(value: float) -> Parameter:
        return Parameter(
            name="n", value=value, sd=0.1, unit="1", evidence=Evidence.PUBLISHED, source="made up"
        )

    return PowerStateEffect(
        power_state=1,
        operation=Operation.READ,
        ceiling_bytes_per_second=number(3e7),
        ceiling_depth_exponent=number(exponent) if exponent else None,
        latency_factor=number(1.0),
        tail_factor=number(1.0),
    )
