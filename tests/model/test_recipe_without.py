"""Recipes less a finding, and profiles built from them."""

from __future__ import annotations

import pytest

from iojoule.model.fit.without import facts_of, without
from iojoule.model.recipe import (
    Figure,
    Recipe,
    generic_recipe,
    load_recipe,
    pool,
    shipped_recipes,
)


@pytest.fixture(scope="module")
def recipe() -> Recipe:
    return load_recipe("samsung-980-pro-1tb")


@pytest.mark.parametrize("name", shipped_recipes())
def test_every_finding_of_every_recipe_can_be_left_out(name: str) -> None:
    whole = load_recipe(name)
    for fact in facts_of(whole):
        assert fact not in facts_of(without(whole, [fact])), fact


def test_anchors_and_points_that_rest_on_it_are_dropped(recipe: Recipe) -> None:
    less = without(recipe, ["000-139"])
    assert recipe.host_power is not None
    assert less.host_power is not None
    assert len(less.host_power.anchors) == len(recipe.host_power.anchors) - 1
    assert all("000-139" not in anchor.facts for anchor in less.host_power.anchors)
    assert less.device_power == recipe.device_power


def test_a_number_that_is_needed_falls_back_to_a_wider_one(recipe: Recipe) -> None:
    less = without(recipe, ["000-187"])
    before = next(one for one in recipe.mixed if one.pattern == "sequential").latency_factor
    after = next(one for one in less.mixed if one.pattern == "sequential").latency_factor
    assert after.facts == []
    assert after.sd > before.sd


def test_a_rate_below_ps0_falls_back_to_what_the_cap_leaves(recipe: Recipe) -> None:
    """The cap leaves a share of the watts above the base; the other states say how much is kept."""

    def ceiling(one: Recipe, state: int, operation: str) -> float:
        found = next(
            s for s in one.power_states if (s.power_state, s.operation) == (state, operation)
        )
        return found.ceiling_bytes_per_second.value

    fact = next(
        s.ceiling_bytes_per_second.facts
        for s in recipe.power_states
        if (s.power_state, s.operation) == (1, "read")
    )
    less = without(recipe, fact)
    assert recipe.link_bytes_per_second is not None
    assert 0 < ceiling(less, 1, "read") < recipe.link_bytes_per_second.value
    assert ceiling(less, 1, "read") > ceiling(recipe, 2, "read")  # a higher cap leaves more
    assert ceiling(less, 2, "write") == ceiling(recipe, 2, "write")


def test_priors_taken_from_a_finding_go_with_it(recipe: Recipe) -> None:
    less = without(recipe, ["000-143"])
    one = next(s for s in less.surfaces if (s.operation, s.pattern) == ("read", "sequential"))
    assert one.priors == recipe.fallback.surface_priors["read/sequential"]


def test_an_unknown_finding_changes_nothing(recipe: Recipe) -> None:
    assert without(recipe, ["999-999"]) is recipe
    assert without(generic_recipe("x", "X"), []).device == "x"


def test_pooling_weighs_by_precision_and_is_never_surer_than_the_surest() -> None:
    one = Figure(value=1.0, sd=0.1, unit="1", source="a", facts=["000-001"])
    two = Figure(value=2.0, sd=0.2, unit="1", source="b", facts=["000-002"])
    both = pool([one, two])
    assert both.value == pytest.approx((100 * 1.0 + 25 * 2.0) / 125)
    assert both.sd == 0.1
    assert both.facts == ["000-001", "000-002"]
