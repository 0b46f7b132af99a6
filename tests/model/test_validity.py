"""Conditions: unknown and different ones widen, known ones do not, impossible are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from iojoule.datasets.catalogue import load_catalogue
from iojoule.datasets.errors import InputError
from iojoule.datasets.profile import (
    DATASETS_RECIPE,
    DeviceProfile,
    DriveRating,
    load_shipped_profile,
)
from iojoule.datasets.schema import AskedConditions, Conditions
from iojoule.datasets.vocabulary import IntervalFor
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.evaluate.validity import interval_for, judge, under
from iojoule.model.fit.build import valid_for
from iojoule.model.prior.build import build_profile
from iojoule.model.prior.document import load_assumptions
from iojoule.model.prior.facts import facts_of
from iojoule.model.recipe import generic_recipe

SAME: dict[str, Any] = {
    "firmware": "FW1",
    "pcie_generation": 4,
    "pcie_lanes": 4,
    "temperature_celsius_mean": 40.0,
    "aspm_policy": "disabled",
    "power_loss_protection": False,
    "percentage_used": 3.0,
}


@pytest.fixture
def profile() -> DeviceProfile:
    """A profile that states everything it was measured under."""
    shipped = load_shipped_profile("samsung-980-pro-1tb")
    shipped = shipped.model_copy(update={"between_sessions_relative_sd": None})
    stated = shipped.valid_for.model_copy(
        update={
            "firmware": ["FW1"],
            "pcie_generation": [4],
            "temperature_celsius": (25.0, 60.0),
            "aspm_policy": "disabled",
            "power_loss_protection": False,
        }
    )
    return shipped.model_copy(update={"valid_for": stated})


SESSION_SD = load_assumptions().conditions["session"].sd


def sd(profile: DeviceProfile, **stated: Any) -> float:
    return under(profile, AskedConditions(**stated)).between_drives_relative_sd.value


def spread(profile: DeviceProfile) -> float:
    """What specimens and sessions differ by, of a profile that learned of no second session."""
    return float(np.hypot(profile.between_drives_relative_sd.value, np.sqrt(2.0) * SESSION_SD))


def test_what_is_known_to_be_the_same_leaves_the_specimen_alone(profile: DeviceProfile) -> None:
    same = SAME | {"host_id": profile.host.host_id}
    specimen, session, *others = judge(profile, Conditions(**same))
    assert (specimen.standing, session.standing) == ("unknown", "unknown")
    assert {other.standing for other in others} == {"same"}
    assert sd(profile, **same) == pytest.approx(spread(profile))
    assert sd(profile, **same) > 0


def test_only_the_very_drive_that_was_measured_has_no_spread_between_drives(
    profile: DeviceProfile,
) -> None:
    same = SAME | {"host_id": profile.host.host_id}
    stated = profile.valid_for.model_copy(update={"device_serial_hash": "measured"})
    measured = profile.model_copy(update={"valid_for": stated})
    between = spread(profile)
    assert sd(measured, **same, device_serial_hash="measured") == 0.0
    for other in (None, "another"):
        assert sd(measured, **same, device_serial_hash=other) == pytest.approx(between)
    assert sd(profile, **same, device_serial_hash="measured") == pytest.approx(between)


def test_the_same_host_has_what_runs_scatter_and_another_drive_most(
    profile: DeviceProfile,
) -> None:
    kinds = {kind: sd(profile, interval_for=kind) for kind in IntervalFor}
    assert kinds[IntervalFor.SAME_HOST] == 0.0
    assert kinds[IntervalFor.ANOTHER_HOST] == sd(profile)
    assert kinds[IntervalFor.ANOTHER_DRIVE] > 3 * kinds[IntervalFor.ANOTHER_HOST]
    # what is known to differ widens all of them
    for kind in IntervalFor:
        assert sd(profile, interval_for=kind, firmware="FW2") > kinds[kind]


def test_learned_sessions_take_the_place_of_the_prior(profile: DeviceProfile) -> None:
    between = profile.between_drives_relative_sd.model_copy(update={"value": 0.26})
    learned = profile.model_copy(update={"between_sessions_relative_sd": between})
    assert sd(learned) == pytest.approx(np.sqrt(sd(profile) ** 2 - 2 * SESSION_SD**2 + 0.26**2))
    assert sd(learned, interval_for=IntervalFor.SAME_HOST) == 0.0


def test_profile_and_question_say_what_an_interval_is_about(profile: DeviceProfile) -> None:
    serial = profile.valid_for.model_copy(update={"device_serial_hash": "measured"})
    shipped = profile.model_copy(update={"valid_for": serial})
    own = shipped.model_copy(update={"recipe": DATASETS_RECIPE})
    facts = build_profile(facts_of(load_catalogue().get("micron-7450")))
    host = profile.host.host_id
    same, other, drive = IntervalFor
    for asked, expected in (
        ((shipped, {}), other),
        ((shipped, {"host_id": host}), other),
        ((shipped, {"host_id": host, "device_serial_hash": "measured"}), same),
        ((own, {}), same),
        ((own, {"host_id": host}), same),
        ((own, {"host_id": "elsewhere"}), other),
        ((own, {"device_serial_hash": "another"}), other),
        ((facts, {}), drive),
        ((facts, {"host_id": host}), drive),
        ((own, {"interval_for": drive}), drive),
        ((shipped, {"interval_for": same}), same),
    ):
        assert interval_for(asked[0], AskedConditions(**asked[1])) is expected, asked[1]


def test_a_drive_of_facts_is_another_drive_already() -> None:
    drive = build_profile(facts_of(load_catalogue().get("micron-7450")))
    assert sd(drive) == sd(drive, interval_for=IntervalFor.ANOTHER_DRIVE)
    assert sd(drive) < 0.2


@pytest.mark.parametrize(("serials", "known"), [("aaa", "a"), ("aba", None)])
def test_a_fit_names_its_drive_where_it_is_one(
    measure: Any, serials: str, known: str | None
) -> None:
    rows = [
        one.model_copy(update={"conditions": Conditions(device_serial_hash=serial)})
        for one, serial in zip(measure()[:3], serials, strict=True)
    ]
    found = valid_for(generic_recipe("a", "A").valid_for, rows)
    assert found.device_serial_hash == known


@pytest.mark.parametrize("field", [*SAME, "host_id"])
def test_every_unknown_condition_widens(profile: DeviceProfile, field: str) -> None:
    same = SAME | {"host_id": profile.host.host_id}
    unknown = {name: value for name, value in same.items() if name != field}
    assert sd(profile, **unknown) > sd(profile, **same)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("firmware", "FW2"),
        ("pcie_generation", 3),
        ("pcie_lanes", 2),
        ("temperature_celsius_mean", 80.0),
        ("temperature_celsius_max", 75.0),
        ("temperature_celsius_mean", 5.0),
        ("aspm_policy", "powersave"),
        ("power_loss_protection", True),
        ("percentage_used", 120.0),
    ],
)
def test_conditions_that_differ_widen_more_than_unknown_ones_and_are_extrapolated(
    profile: DeviceProfile, field: str, value: Any
) -> None:
    told = SAME | {field: value}
    unknown = {name: value for name, value in SAME.items() if name != field}
    if field == "temperature_celsius_max":
        del unknown["temperature_celsius_mean"]
    found = under(profile, Conditions(**told))
    assert found.other_conditions == [field]
    assert found.between_drives_relative_sd.value > sd(profile, **unknown)
    answer, _ = Predictor(found).predict_columns({"queue_depth": [1]}, 1)
    assert answer.evidence_words() == ["extrapolated"]
    same, _ = Predictor(under(profile, Conditions(**SAME))).predict_columns({"queue_depth": [1]}, 1)
    assert same.evidence_words() == ["measured"]


@pytest.mark.parametrize("degrees", [5.0, 85.0])
def test_an_extreme_temperature_differs_where_the_profile_states_none(
    profile: DeviceProfile, degrees: float
) -> None:
    unstated = profile.valid_for.model_copy(update={"temperature_celsius": None})
    profile = profile.model_copy(update={"valid_for": unstated})
    usual = under(profile, Conditions(**SAME))
    extreme = under(profile, Conditions(**SAME | {"temperature_celsius_mean": degrees}))
    assert usual.other_conditions == []
    assert extreme.other_conditions == ["temperature_celsius_mean"]
    assert extreme.between_drives_relative_sd.value > usual.between_drives_relative_sd.value


def test_a_faster_link_than_the_measured_one_may_pass_more(profile: DeviceProfile) -> None:
    """Measured at PCIe 3.0 x4; the drive itself has PCIe 4.0."""
    old = profile.valid_for.model_copy(update={"pcie_generation": [3]})
    profile = profile.model_copy(update={"valid_for": old})
    asked = SAME | {"pcie_generation": 4}
    large = {"request_bytes": [1 << 20], "queue_depth": [64]}
    found = under(profile, Conditions(**asked))
    band = Predictor(found).predict_columns(large, 1)[0]["throughput_bytes_per_second"]
    assert found.link_bytes_per_second is not None
    assert band.high[0] > 3.938e9
    assert band.high[0] <= found.link_bytes_per_second.value * (1 + 1e-9)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("pcie_generation", 5),
        ("pcie_lanes", 8),
        ("pcie_lanes", 3),
        ("temperature_celsius_mean", 71.0),
        ("temperature_celsius_max", -1.0),
    ],
)
def test_what_the_drive_cannot_be_is_refused_by_name(
    profile: DeviceProfile, field: str, value: Any
) -> None:
    rating = DriveRating(
        interface="nvme", pcie_generation=4, pcie_lanes=4, temperature_celsius=(0.0, 70.0)
    )
    with pytest.raises(InputError) as caught:
        under(profile.model_copy(update={"rating": rating}), Conditions(**(SAME | {field: value})))
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("field", "value"), [("pcie_generation", 3), ("pcie_lanes", 4), ("temperature_celsius_max", 90)]
)
def test_a_sata_drive_has_no_pcie_and_drives_do_not_boil(field: str, value: Any) -> None:
    drive = build_profile(facts_of(load_catalogue().get("samsung-850-pro")))
    with pytest.raises(InputError) as caught:
        under(drive, Conditions(**{field: value}))
    assert caught.value.field == field


def test_another_host_widens(profile: DeviceProfile) -> None:
    assert sd(profile, **SAME, host_id="another") > sd(
        profile, **SAME, host_id=profile.host.host_id
    )


def test_a_drive_nobody_measured_takes_the_stated_link() -> None:
    drive = build_profile(facts_of(load_catalogue().get("micron-7450")))
    slow = under(drive, Conditions(pcie_generation=3, pcie_lanes=2))
    assert slow.link_bytes_per_second is not None
    assert slow.link_bytes_per_second.value == pytest.approx(2 * 8e9 * 128 / 130 / 8)


def test_a_fit_is_valid_for_what_was_measured(measure: Any) -> None:
    rows = [
        one.model_copy(
            update={
                "conditions": one.conditions.model_copy(
                    update={
                        "firmware": "FW1",
                        "pcie_generation": 4,
                        "temperature_celsius_mean": 41.0,
                        "power_loss_protection": True,
                    }
                )
            }
        )
        for one in measure()
    ]
    found = valid_for(generic_recipe("a", "A").valid_for, rows)
    assert (found.firmware, found.pcie_generation) == (["FW1"], [4])
    assert found.power_loss_protection is True
    assert found.temperature_celsius == (36.0, 46.0)
