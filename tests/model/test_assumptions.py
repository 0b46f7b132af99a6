"""A number is labelled by what it rests on: an assumption is never published."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from importlib import resources
from typing import Any

import pytest
from pydantic import ValidationError

from iojoule.datasets.profile import HostPath, Parameter, load_shipped_profile, shipped_profiles
from iojoule.datasets.vocabulary import Evidence, is_assumption
from iojoule.model.prior.host import expected_cpu, expected_wall
from iojoule.model.recipe import Figure, load_recipe, shipped_recipes

NUMBER: dict[str, Any] = {"name": "a", "value": 1.0, "sd": 0.1, "unit": "W"}
ASSUMED = {"source": "assumption: about so much"}


def sourced(item: Any) -> Iterator[dict[str, Any]]:
    """Everything with a source, however deep."""
    if isinstance(item, dict):
        if "source" in item:
            yield item
        for part in item.values():
            yield from sourced(part)
    elif isinstance(item, list):
        for part in item:
            yield from sourced(part)


def test_nothing_is_weaker_than_an_assumption() -> None:
    assert list(Evidence)[-1] is Evidence.ASSUMED


@pytest.mark.parametrize("evidence", ["measured", "published", "datasheet"])
def test_an_assumption_of_a_profile_says_so_whatever_it_was_called(evidence: str) -> None:
    found = Parameter.model_validate(NUMBER | ASSUMED | {"evidence": evidence})
    assert found.evidence is Evidence.ASSUMED
    path = HostPath.model_validate(
        {
            "engine": "psync",
            "completion": "interrupt",
            "submission_polling": False,
            "added_latency_ns": 1.0,
            "core_time_ns": 1.0,
            "wakeup_ns": 1.0,
            "relative_sd": 0.1,
            "evidence": evidence,
            **ASSUMED,
        }
    )
    assert path.evidence is Evidence.ASSUMED


@pytest.mark.parametrize("evidence", ["measured", "interpolated", "published"])
def test_a_recipe_that_calls_an_assumption_better_is_refused(evidence: str) -> None:
    number = {name: NUMBER[name] for name in ("value", "sd", "unit")}
    assert Figure.model_validate(number | ASSUMED).evidence is Evidence.ASSUMED
    assert Figure.model_validate(number | {"source": "000 5.2"}).evidence is Evidence.PUBLISHED
    with pytest.raises(ValidationError, match="evidence"):
        Figure.model_validate(number | ASSUMED | {"evidence": evidence})


@pytest.mark.parametrize("name", [*shipped_recipes(), "common"])
def test_recipes_state_no_other_evidence_of_assumptions(name: str) -> None:
    folder = resources.files("iojoule.model").joinpath("recipes")
    data = tomllib.loads(folder.joinpath(f"{name}.toml").read_text("utf-8"))
    for one in sourced(data):
        if is_assumption(one["source"]):
            assert one.get("evidence", "assumed") == "assumed", one


@pytest.mark.parametrize("device", shipped_profiles())
def test_no_shipped_profile_has_a_mislabelled_assumption(device: str) -> None:
    profile = load_shipped_profile(device).model_dump(mode="json")
    found = [one for one in sourced(profile) if is_assumption(one["source"])]
    assert found
    assert {one["evidence"] for one in found if "evidence" in one} == {"assumed"}


def test_what_the_reviewed_figures_of_the_980_pro_rest_on() -> None:
    profile = load_shipped_profile("samsung-980-pro-1tb")
    assert profile.device_power is not None
    assert profile.write_state is not None
    idle = [watts.evidence for watts in profile.device_power.idle_watts]
    assert idle == ["published"] * 5
    tails = {one.pattern.value: one.tail_factor.evidence for one in profile.mixed}
    assert tails == {"random": "published", "sequential": "assumed"}
    figures = load_recipe("samsung-980-pro-1tb").host_power
    assert figures is not None


def test_the_host_of_unmeasured_drives_is_assumed() -> None:
    wall = expected_wall()
    found = [*expected_cpu().parameters, wall.floor_watts, wall.slope]
    assert {one.evidence for one in found} == {Evidence.ASSUMED}
