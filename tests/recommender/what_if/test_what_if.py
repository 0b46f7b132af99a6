"""What must be true of every what-if, whatever the drive."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from iojoule.datasets.errors import InputError
from iojoule.datasets.schema import AskedConditions
from iojoule.datasets.vocabulary import IntervalFor
from iojoule.recommender.request import Scope
from iojoule.recommender.what_if.changes import KINDS, changed, kind_of
from iojoule.recommender.what_if.compare import OF_SCOPE, Answerer
from iojoule.recommender.what_if.outcome import Difference, Outcome, Totals
from iojoule.recommender.what_if.situation import Situation
from tests.errors import having

TIE = 1e-3


def difference(outcome: Outcome, name: str) -> Difference:
    return next(each for each in outcome.differences if each.quantity == name)


def watts(outcome: Outcome) -> float:
    totals = outcome.changed.totals
    assert totals is not None
    assert totals.power_watts is not None
    return totals.power_watts.value


@pytest.mark.parametrize(
    "change",
    [{}, {"growth": 1.0}, {"drives": 1}, {"mix": 0.4}, {"size": 4096},
     {"demand_iops": 60_000}, {"sla": "p99 < 3 ms"}, {"price": 0.25}],
    ids=str,
)  # fmt: skip
def test_a_change_to_what_is_already_so_changes_nothing_to_the_bit(
    answerer: Answerer, change: dict[str, Any]
) -> None:
    outcome = answerer.ask(change)
    before, after = outcome.base, outcome.changed
    assert after.totals == before.totals
    assert after.answer.recommended == before.answer.recommended
    assert outcome.same_configuration
    for each in outcome.differences:
        assert (each.change.value, each.change.low, each.change.high) == (0.0, 0.0, 0.0)
        assert not each.certain


def test_twice_the_drives_halve_the_load_of_each_and_rest_twice_as_much(
    answerer: Answerer, situation: Situation
) -> None:
    outcome = answerer.ask({"drives": 2})
    one, two = outcome.base.answer, outcome.changed.answer
    assert one.demand_bytes_per_second is not None
    assert two.demand_bytes_per_second == one.demand_bytes_per_second / 2
    throughput = difference(outcome, "throughput_bytes_per_second")
    assert throughput.changed.value == pytest.approx(throughput.base.value)
    assert difference(outcome, "device_power_watts").change.value > 0
    # the host is one (test_equal_host): two drives add less to it than each would to its own
    host = situation.profile.host_power
    assert host is not None
    assert two.recommended is not None
    each = two.recommended.device_cpu_power_watts
    assert each is not None
    assert each.value < watts(outcome) < 2 * each.value - host.parameters[0].value


def test_twice_the_drives_do_twice_the_work_as_one_does_it(answerer: Answerer) -> None:
    outcome = answerer.ask({"drives": 2, "growth": 2})
    assert outcome.same_configuration
    device = difference(outcome, "device_power_watts")
    assert device.changed.value == pytest.approx(2 * device.base.value)
    latency = difference(outcome, "latency_p99_ns")
    assert latency.change.value == 0.0


def test_a_price_scales_the_cost_and_nothing_else(answerer: Answerer) -> None:
    outcome = answerer.ask({"price": "0.50EUR/kWh"})
    cost = difference(outcome, "cost_per_year")
    assert cost.changed.value == pytest.approx(2 * cost.base.value)
    assert cost.change.low == pytest.approx(cost.base.low)
    assert cost.change.high == pytest.approx(cost.base.high)
    assert outcome.same_configuration
    for name in set(Totals.model_fields) - {"cost_per_year", "co2_kilograms_per_year"}:
        assert difference(outcome, name).change.value == 0.0, name


def test_a_looser_sla_never_costs_more(answerer: Answerer) -> None:
    bounds = ["p99 < 500 us", "p99 < 700 us", "p99 < 1 ms", "p99 < 2 ms", "p99 < 5 ms"]
    drawn = [answerer.ask({"sla": bound}) for bound in bounds]
    met = [watts(one) for one in drawn if one.changed.feasible]
    assert len(met) >= 2
    assert all(looser <= tighter * (1 + TIE) for tighter, looser in pairwise(met))
    feasible = [one.changed.feasible for one in drawn]
    assert feasible == sorted(feasible)


def test_the_order_of_changes_does_not_matter(answerer: Answerer) -> None:
    one = {
        "growth": 2.0, "demand": 1e8, "sla": "p99 < 9 ms", "sla.latency_mean_ns_max": 3e6,
        "workload.operation": "read", "workload.read_fraction": None,
    }  # fmt: skip
    other = dict(reversed(one.items()))
    assert answerer.changed(one) == answerer.changed(other)
    grown = answerer.changed(one).workload
    assert grown.workload.demand_bytes_per_second == 2e8
    assert grown.workload.demand_operations_per_second is None
    assert set(grown.sla.bounds()) == {"latency_p99_ns_max", "latency_mean_ns_max"}


def test_what_both_sides_err_alike_leaves_the_change_surer_than_either(answerer: Answerer) -> None:
    power = difference(answerer.ask({"growth": 1.2}), "power_watts")
    apart = power.base.high - power.base.low
    assert power.change.high - power.change.low < 0.5 * apart
    assert power.certain
    assert power.change.value > 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"drivs": 2}, "did you mean DRIVES?|did you mean drives?"),
        ({"growth": 0}, "growth"),
        ({"growth": True}, "growth"),
        ({"drives": 1.5}, "whole number"),
        ({"drives": math.nan}, "whole number"),
        ({"drives": math.inf}, "whole number"),
        ({"growth": math.inf}, "number above 0"),
        ({"growth": 10**310}, "number above 0"),
        ({"mix": 1.2}, "share of reads"),
        ({"cap": "p99 < 2 ms"}, "write a cap as in"),
        ({"geometry.channels": 4}, "no simulated drive stands for"),
        ({"workload.operation": "erase"}, "operation"),
    ],
    ids=str,
)
def test_what_cannot_be_changed_is_refused_by_name(
    answerer: Answerer, change: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        answerer.ask(change)


def test_every_kind_is_found_by_its_own_names(situation: Situation) -> None:
    for kind in KINDS:
        for name in kind.names:
            assert kind_of(f"{name}x" if name.endswith(".") else name) is kind
    assert changed(situation, {}, lambda named: situation.profile) == situation


def test_growth_of_what_runs_as_fast_as_possible_is_refused(situation: Situation) -> None:
    fast = Answerer(situation, lambda named: situation.profile).changed(
        {"workload.demand_operations_per_second": None}
    )
    with pytest.raises(InputError, check=having(field="growth")):
        Answerer(fast, lambda named: situation.profile).ask({"growth": 2})


def test_what_the_intervals_are_about_decides_their_width(situation: Situation) -> None:
    widths = []
    for about in IntervalFor:
        asked = replace(situation, conditions=AskedConditions(interval_for=about))
        totals = Answerer(asked, _no_drive).ask({"growth": 0.2}).changed.totals
        assert totals is not None
        assert totals.power_watts is not None
        widths.append(totals.power_watts.high - totals.power_watts.low)
    assert widths == sorted(widths)
    assert widths[0] < widths[1]


def test_another_drive_has_other_firmware_on_the_same_host(situation: Situation) -> None:
    stated = AskedConditions(
        firmware="FW1", pcie_lanes=2, host_id="here", interval_for=IntervalFor.SAME_HOST
    )
    asked = replace(situation, conditions=stated)
    other = changed(asked, {"drive": "another"}, lambda _: situation.profile)
    assert other.conditions == AskedConditions(host_id="here", interval_for=IntervalFor.SAME_HOST)


def _no_drive(named: str) -> Any:
    raise AssertionError(named)


@pytest.mark.parametrize("scope", ["device", "device_cpu", "system"])
def test_whose_energy_counts_saves_nothing(answerer: Answerer, scope: str) -> None:
    outcome = answerer.ask({"scope": scope})
    if outcome.changed.answer.scope is not outcome.base.answer.scope:
        assert outcome.compared_scope is Scope.DEVICE
        assert not {each.quantity for each in outcome.differences} & OF_SCOPE
    power = difference(outcome, "device_power_watts")
    moved = power.changed.value - power.base.value
    assert power.change.value == pytest.approx(moved, abs=1e-9)
