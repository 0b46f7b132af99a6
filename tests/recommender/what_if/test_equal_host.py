"""Another drive is no other host, and several drives share one."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from iojoule.api.reports.what_if import verdict
from iojoule.datasets.errors import InputError
from iojoule.datasets.profile import DeviceProfile
from iojoule.model.prior.host import expected_cpu, host_standing, on_host_of
from iojoule.recommender.request import Scope, WorkloadProfile
from iojoule.recommender.what_if.compare import Answerer
from iojoule.recommender.what_if.outcome import Outcome
from iojoule.recommender.what_if.situation import Situation

MakeProfile = Callable[..., DeviceProfile]


@pytest.fixture(scope="module")
def other(make_profile: MakeProfile) -> DeviceProfile:
    """A drive that draws a watt more, fitted on a host with another law of its CPU."""
    plain = make_profile()
    assert plain.host_power is not None
    assert plain.device_power is not None
    host = plain.host_power.model_dump(mode="json")
    host |= {"host_id": "another host"}
    for one in host["parameters"][:2]:
        one["value"] *= 1.5
    drive = copy.deepcopy(plain.device_power.model_dump(mode="json"))
    for one in (drive["parameters"][0], *drive["idle_watts"]):
        one["value"] += 1.0
    return make_profile(
        device="another-1tb", model_name="Another 1 TB", host_power=host, device_power=drive,
        system_power=None,
    )  # fmt: skip


@pytest.fixture(scope="module")
def question(ask: Callable[..., WorkloadProfile]) -> WorkloadProfile:
    work = {"demand_operations_per_second": 2e4, "arrival_process": "poisson"}
    return ask(work, current={"queue_depth": 8, "jobs": 2}, free={"power_state": [0]})


def asked(
    base: DeviceProfile, workload: WorkloadProfile, named: dict[str, DeviceProfile], **change: Any
) -> Outcome:
    return Answerer(Situation(base, workload), named.__getitem__).ask(change)


def cpu(outcome: Outcome) -> tuple[float, float]:
    """CPU power of both sides, W."""
    rows = (outcome.base.row, outcome.changed.row)
    found = [row.cpu_power_watts for row in rows if row is not None]
    assert found[0] is not None
    assert found[1] is not None
    return found[0].value, found[1].value


def test_another_drive_costs_the_same_cpu_watts_and_its_own(
    make_profile: MakeProfile, other: DeviceProfile, question: WorkloadProfile
) -> None:
    found = asked(make_profile(), question, {"another": other}, drive="another")
    before, after = cpu(found)
    assert after == pytest.approx(before)
    watts = {one.quantity: one.change.value for one in found.differences}
    assert watts["device_power_watts"] == pytest.approx(1.0)
    assert watts["power_watts"] == pytest.approx(1.0)
    assert (found.host, found.compared_scope) == ("known", Scope.DEVICE_CPU)


def test_the_change_of_drives_is_surer_than_the_host(
    make_profile: MakeProfile, other: DeviceProfile, question: WorkloadProfile
) -> None:
    found = asked(make_profile(), question, {"another": other}, drive="another")
    power = next(one for one in found.differences if one.quantity == "power_watts")
    assert power.change.high - power.change.low < 0.5 * (power.base.high - power.base.low)


@pytest.mark.parametrize("host", [None, expected_cpu()])
def test_on_an_unknown_host_only_drives_are_compared(
    make_profile: MakeProfile, other: DeviceProfile, question: WorkloadProfile, host: Any
) -> None:
    base = make_profile().model_copy(update={"host_power": host, "system_power": None})
    found = asked(base, question, {"another": other}, drive="another")
    assert found.host == host_standing(base) == ("unknown" if host is None else "assumed")
    assert found.compared_scope is found.base.answer.scope is found.changed.answer.scope
    assert found.compared_scope is Scope.DEVICE
    watts = {one.quantity: one.change.value for one in found.differences}
    assert watts["power_watts"] == pytest.approx(watts["device_power_watts"])
    assert watts["power_watts"] == pytest.approx(1.0)


def test_what_changes_no_drive_is_compared_in_the_question_s_scope(
    make_profile: MakeProfile, question: WorkloadProfile
) -> None:
    base = make_profile().model_copy(update={"host_power": expected_cpu()})
    assert asked(base, question, {}, growth=2.0).compared_scope is Scope.DEVICE_CPU


def test_where_no_power_of_the_host_is_known_that_of_the_drives_is_compared(
    make_profile: MakeProfile, question: WorkloadProfile
) -> None:
    base = make_profile().model_copy(update={"host_power": None, "system_power": None})
    found = asked(base, question, {}, growth=2.0)
    assert found.base.answer.scope is Scope.DEVICE_CPU
    assert found.compared_scope is Scope.DEVICE
    assert verdict(found).startswith("With growth = 2.0 the drives draw")


def test_a_moved_drive_is_no_better_than_interpolated_and_keeps_itself(
    make_profile: MakeProfile, other: DeviceProfile
) -> None:
    base = make_profile()
    moved = on_host_of(other, base)
    assert moved.host_power == base.host_power
    assert moved.system_power == base.system_power
    assert moved.surfaces == other.surfaces
    assert moved.device_power == other.device_power
    assert moved.host.calibrated_apart
    assert on_host_of(base, base) is base


@pytest.mark.parametrize("drives", [2, 3, 4])
def test_drives_of_one_host_wake_it_up_once(
    make_profile: MakeProfile, question: WorkloadProfile, drives: int
) -> None:
    """What n drives at 1/n of the load add to a host is what one at all of it adds, and cores."""
    found = asked(make_profile(), question, {}, drives=drives)
    assert found.base.totals is not None
    assert found.changed.totals is not None

    def host(totals: Any) -> float:
        return float(totals.power_watts.value - totals.device_power_watts.value)

    one, many = host(found.base.totals), host(found.changed.totals)
    law = make_profile().host_power
    assert law is not None
    woken = law.parameters[3].value * 2 * (drives - 1)  # two jobs a drive
    assert one * (1 - 1e-9) <= many <= one + woken + 0.05 * one
    power = found.changed.totals.power_watts
    assert power is not None
    assert power.low < power.value < power.high


def test_a_demand_above_the_link_is_refused_by_name(
    make_profile: MakeProfile, ask: Callable[..., WorkloadProfile]
) -> None:
    link = {"name": "link_bytes_per_second", "value": 6e8, "sd": 0.0, "unit": "bytes/s",
            "evidence": "published", "source": "made up"}  # fmt: skip
    base = make_profile(link_bytes_per_second=link)
    for field, value in (
        ("demand_bytes_per_second", 6.1e8), ("demand_operations_per_second", 1.5e5),
    ):  # fmt: skip
        with pytest.raises(InputError) as caught:
            Answerer(Situation(base, ask({field: value})), {}.__getitem__)
        assert caught.value.field == f"workload.{field}"
    assert Answerer(Situation(base, ask({"demand_bytes_per_second": 5.9e8})), {}.__getitem__)
