"""A profile says which iojoule fitted it, and another one says so."""

from __future__ import annotations

import json
from typing import Any

import pytest

from iojoule.datasets.errors import InputError, SchemaVersionError
from iojoule.datasets.profile import fitted_by_another, load_shipped_profile, parse_profile

PROFILE = load_shipped_profile("samsung-860-pro")
REMOVED = object()


def test_the_iojoule_that_fitted_a_profile_has_nothing_to_say() -> None:
    assert fitted_by_another(PROFILE) is None


def test_another_version_is_named_with_the_remedy() -> None:
    older = PROFILE.model_copy(update={"generator": "iojoule 0.0.9"})
    said = fitted_by_another(older)
    assert said is not None
    assert "iojoule 0.0.9" in said
    assert "iojoule fit" in said


@pytest.mark.parametrize("version", [0, 99])
def test_a_layout_of_another_version_is_refused(version: int) -> None:
    text = json.dumps(PROFILE.model_dump(mode="json") | {"schema_version": version})
    with pytest.raises(SchemaVersionError, match="schema"):
        parse_profile(text.encode(), "p.json")


def test_a_host_of_the_version_before_is_carried_over_and_said_to_be() -> None:
    """Its factors by engine are gone, its wall saves what is saved behind it."""
    data = load_shipped_profile("samsung-980-pro-1tb").model_dump(mode="json")
    data["host_power"] |= {
        "parameters": [
            {
                "name": name,
                "value": value,
                "sd": 0.5,
                "unit": "W",
                "evidence": "published",
                "source": "test",
            }
            for name, value in (
                ("idle_watts", 40.6),
                ("uncore_watts", 19.1),
                ("core_watts", 1.0),
                ("job_watts", 0.5),
            )
        ],
        "covariance": [[0.25 * (i == j) for j in range(4)] for i in range(4)],
        "engine_factors": {},
        "scheduler_factors": {},
    }
    data["system_power"]["slope"]["value"] = 0.52
    before = len(data["gaps"])
    profile = parse_profile(json.dumps(data).encode(), "p.json")
    assert profile.host_power is not None
    assert profile.system_power is not None
    names = [one.name for one in profile.host_power.parameters]
    assert names == ["idle_watts", "package_watts", "core_watts", "awake_core_watts"]
    assert profile.system_power.slope.value >= 1.0
    assert len(profile.gaps) == before + 1
    again = parse_profile(json.dumps(profile.model_dump(mode="json")).encode(), "p.json")
    assert again == profile


def test_unknown_parameters_of_cpu_power_are_refused() -> None:
    data = load_shipped_profile("samsung-980-pro-1tb").model_dump(mode="json")
    data["host_power"]["parameters"][1]["name"] = "magic_watts"
    with pytest.raises(InputError):
        parse_profile(json.dumps(data).encode(), "p.json")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("surfaces.1.residuals.0.values.p50_sd", []),
        ("surfaces.1.residuals.0.values.measured.0", REMOVED),
        ("surfaces.1.residuals.0.values.measured", REMOVED),
        ("surfaces.1.residuals.0.values.latency", REMOVED),
        ("surfaces.1.residuals.0.paths", []),
        ("surfaces.1.residuals.0.log2_queue_depth.0", 99.0),
        ("surfaces.1.log2_request_bytes.0", REMOVED),
        ("surfaces.1.unloaded_latency_ns", []),
        ("surfaces.1.sharpness.0", REMOVED),
        ("surfaces.1.tails.0.collision", [1.0] * 99),
        ("host_power.covariance.0", []),
        ("host_power.covariance", []),
        ("device_power.covariance.2.1", REMOVED),
        ("device_power.parameters.0", REMOVED),
        ("device_power.cap_watts", []),
        ("device_power.idle_watts", []),
        ("system_power.covariance", [[1.0]]),
        ("surfaces.1.unloaded_latency_ns.0", 0.0),
        ("surfaces", []),
        ("max_transfer_bytes", 0),
        ("defaults.completion", 1e-308),
        ("defaults.completion", REMOVED),
        ("defaults.queue_depth", "32"),
        ("defaults.jobs", 0),
    ],
)
def test_arrays_that_do_not_fit_together_and_wrong_defaults_are_refused(
    path: str, value: Any
) -> None:
    data = load_shipped_profile("samsung-980-pro-1tb").model_dump(mode="json")
    place: Any = data
    *before, last = (int(part) if part.isdigit() else part for part in path.split("."))
    for part in before:
        place = place[part]
    if value is REMOVED:
        del place[last]
    else:
        place[last] = value
    with pytest.raises(InputError) as refused:
        parse_profile(json.dumps(data).encode(), "p.json")
    assert str(refused.value.field).split(".")[0] == path.split(".")[0]


def test_a_hull_has_an_offset_for_each_facet() -> None:
    data = load_shipped_profile("samsung-980-pro-1tb").model_dump(mode="json")
    next(iter(data["surfaces"][1]["hulls"].values()))["offsets"] = []
    with pytest.raises(InputError, match="offsets"):
        parse_profile(json.dumps(data).encode(), "p.json")
