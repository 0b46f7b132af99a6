"""What flushes cost, what a power cut takes, and that nothing weakens durability unasked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from iojoule.datasets.profile import DeviceProfile, FlushCost
from iojoule.datasets.schema import (
    AskedConditions,
    Configuration,
    Measurement,
    Observations,
    Workload,
)
from iojoule.datasets.vocabulary import Engine, Operation
from iojoule.model.fit.selection import fit_flush
from iojoule.recommender.recommend import Recommender
from iojoule.recommender.request import WorkloadProfile
from iojoule.recommender.sla import parse_sla
from iojoule.sim.device import DeviceConfig
from iojoule.sim.formats.files import read_drive
from iojoule.sim.presets import preset_path
from tests.recommender.conftest import parameter
from tests.sim.physical.drives import MS, run

Ask = Callable[..., WorkloadProfile]

FLUSHING = {"operation": "write", "flush_every_writes": 4}
TODAY = {"queue_depth": 4, "jobs": 2}
PERMITTED = "p99 < 50 ms, allow weaker durability"
SECONDS = 2e-3


def flush_cost(seconds: float) -> dict[str, Any]:
    return {"seconds": parameter("flush_seconds", seconds, 0.1, "s"), "every_writes": [1, 100]}


@pytest.fixture(scope="module")
def flushing(make_profile: Callable[..., DeviceProfile]) -> Recommender:
    """The made-up drive, whose flush takes 2 ms."""
    return Recommender(make_profile(flush=flush_cost(SECONDS)))


def run_of(depth: int, every: int | None, iops: float, jobs: int = 1) -> Measurement:
    return Measurement(
        workload=Workload(operation=Operation.WRITE, flush_every_writes=every),
        configuration=Configuration(
            request_bytes=4096, queue_depth=depth, jobs=jobs, engine=Engine.LIBAIO
        ),
        observations=Observations(iops=iops),
    )


def test_pairs_give_the_time_of_a_flush_whatever_depth_and_jobs() -> None:
    rows = []
    for depth, jobs, free in ((1, 1, 20e3), (8, 1, 90e3), (4, 4, 200e3)):
        rows.append(run_of(depth, None, free, jobs))
        rows += [
            run_of(depth, every, 1.0 / (1.0 / free + 3e-3 / every / jobs), jobs) for every in (1, 8)
        ]
    found = fit_flush(rows)
    assert found is not None
    assert found.seconds.value == pytest.approx(3e-3)
    assert found.every_writes == (1, 8)


def test_runs_without_a_twin_tell_nothing() -> None:
    assert fit_flush([run_of(1, 1, 300.0), run_of(8, None, 1e5)]) is None
    # so far apart that the flushes are lost in what repeats differ by
    assert fit_flush([run_of(1, 1000, 1e4), run_of(1, None, 1.001e4)]) is None


@pytest.fixture(scope="module")
def simulated() -> Callable[[int, int], tuple[float, float]]:
    """IOPS and mean time of a flush of a simulated 980 PRO under random 4 KiB writes."""
    device = read_drive(preset_path("samsung-980-pro-1tb")).device
    assert isinstance(device, DeviceConfig)
    known: dict[tuple[int, int], tuple[float, float]] = {}

    def simulate(depth: int, every: int) -> tuple[float, float]:
        if (depth, every) not in known:
            flow = {
                "size_mean_sectors": 8, "alignment_sectors": 8, "read_percent": 0,
                "queue_depth": depth, "working_set_percent": 10, "stop_ns": 40 * MS,
                "host": {"engine": "libaio", "flush_every_writes": every},
            }  # fmt: skip
            found = run(device, flow)
            physical = found.device.physical
            assert physical is not None
            mean_ns = physical.flush_wait_sum_ns / max(physical.flushes, 1)
            known[depth, every] = found.flows[0].iops, mean_ns * 1e-9
        return known[depth, every]

    return simulate


def test_a_simulated_drive_obeys_the_law(
    simulated: Callable[[int, int], tuple[float, float]],
) -> None:
    """Fitted at depths 1 and 16, it holds at depth 4 and for flushes in between, within 6 %."""
    rows = [
        run_of(depth, every or None, simulated(depth, every)[0])
        for depth in (1, 16)
        for every in (0, 1, 16)
    ]
    found = fit_flush(rows)
    assert found is not None
    assert found.seconds.value == pytest.approx(simulated(4, 4)[1], rel=0.1)
    for every in (1, 4, 64):
        law = 1.0 / (1.0 / simulated(4, 0)[0] + found.seconds.value / every)
        assert law == pytest.approx(simulated(4, every)[0], rel=0.06)


def test_flushes_slow_a_configuration_down_as_the_law_says(
    flushing: Recommender, recommender: Recommender, ask: Ask
) -> None:
    """Each of two jobs stands still for 2 ms after every four of its writes."""
    without = recommender.recommend(ask(FLUSHING, current=TODAY, free={})).current
    with_flushes = flushing.recommend(ask(FLUSHING, current=TODAY, free={})).current
    law = 1.0 / (1.0 / without.iops.value + SECONDS / 4 / 2)
    assert with_flushes.iops.value == pytest.approx(law)
    assert without.device_power_watts is not None
    assert with_flushes.device_power_watts is not None
    assert with_flushes.device_power_watts.value < without.device_power_watts.value
    reads = {"operation": "read", "flush_every_writes": 4}
    assert flushing.recommend(ask(reads)).durability is None


def test_flushes_are_not_touched_without_the_permission(flushing: Recommender, ask: Ask) -> None:
    found = flushing.recommend(ask(FLUSHING, current=TODAY, sla="p99 < 50 ms")).durability
    assert found is not None
    assert not found.weakened
    assert found.flush_every_writes == 4
    assert "does not say 'allow weaker durability'" in found.reason
    assert [one.setting for one in found.options] == [
        "flush_every_writes 40", "flush_every_writes 400", "flush_every_writes none",
    ]  # fmt: skip


def test_with_the_permission_flushes_go_as_far_apart_as_it_pays(
    flushing: Recommender, ask: Ask
) -> None:
    cached = {"current": TODAY, "state": {"device_state": "cached"}}
    strict = flushing.recommend(ask(FLUSHING, sla="p99 < 50 ms", **cached))
    found = flushing.recommend(ask(FLUSHING, sla=PERMITTED, **cached))
    assert found.durability is not None
    assert found.durability.weakened
    assert found.durability.flush_every_writes != 4
    assert strict.recommended is not None
    assert found.recommended is not None
    assert strict.recommended.joules_per_useful_gb is not None
    assert found.recommended.joules_per_useful_gb is not None
    assert (
        found.recommended.joules_per_useful_gb.value < strict.recommended.joules_per_useful_gb.value
    )
    assert found.current == strict.current  # today still flushes as it does
    assert found.saving is not None
    assert 0.0 < found.saving.percent.value < 100.0
    assert found.saving.watts.value > 0.0


def test_nothing_is_weakened_for_nothing(flushing: Recommender, ask: Ask) -> None:
    """Where a demand is met and the watts are the same to 1 %, flushes stay as they are."""
    light = FLUSHING | {"demand_operations_per_second": 50.0, "flush_every_writes": 100}
    found = flushing.recommend(ask(light, current=TODAY, sla=PERMITTED)).durability
    assert found is not None
    assert not found.weakened
    assert "is worth it" in found.reason


def test_what_a_power_cut_takes_is_what_was_not_flushed(flushing: Recommender, ask: Ask) -> None:
    busy = FLUSHING | {"demand_operations_per_second": 400.0}
    found = flushing.recommend(ask(busy, current=TODAY, free={})).durability
    assert found is not None
    assert found.power_cut.writes == 4 * 2  # of each job
    assert found.power_cut.written_bytes == 8 * 4096
    assert found.power_cut.seconds == pytest.approx(8 / 400.0)
    unbounded = found.options[-1].loses
    assert (unbounded.writes, unbounded.written_bytes, unbounded.seconds) == (None, None, None)


def test_power_loss_protection_and_forced_unit_access_leave_nothing_to_lose(
    make_profile: Callable[..., DeviceProfile], recommender: Recommender, ask: Ask
) -> None:
    valid = {**make_profile().valid_for.model_dump(), "power_loss_protection": True}
    protected = Recommender(make_profile(valid_for=valid))
    for answers, workload in (
        (protected, FLUSHING), (recommender, {"operation": "write", "force_unit_access": True}),
    ):  # fmt: skip
        found = answers.recommend(ask(workload, current=TODAY)).durability
        assert found is not None
        assert found.power_cut.writes == 0.0


def test_power_loss_protection_that_is_stated_tells_what_a_flush_costs(
    make_profile: Callable[..., DeviceProfile], ask: Ask
) -> None:
    """Every bound waits for the cost of a flush, which nobody measured on most drives."""
    profile = make_profile()
    asked = ask(FLUSHING, current=TODAY, free={}, sla="p99 < 50 ms")
    plain = Recommender(profile).recommend(asked)
    assert plain.reason_code == "not_shown_to_hold"
    stated = AskedConditions(power_loss_protection=True)
    found = Recommender.under(profile, stated).recommend(asked)
    assert found.recommended is not None
    assert found.durability is not None
    assert found.durability.power_cut.writes == 0.0
    assert any("is assumed to take" in note for note in found.notes)


def test_what_the_profile_does_not_know_is_said(recommender: Recommender, ask: Ask) -> None:
    """Allowed, but nothing is known of flushes: no figure changes, and none is invented."""
    asked = {"current": TODAY | {"filesystem": "ext4"}, "sla": "allow weaker durability"}
    found = recommender.recommend(ask(FLUSHING, **asked))
    plain = recommender.recommend(ask({"operation": "write"}, **asked))
    assert plain.recommended is not None
    # without bounds nothing depends on the unknown
    assert found.recommended is not None
    assert found.recommended.configuration == plain.recommended.configuration
    assert found.durability is not None
    assert found.durability.options[-1].setting == "mount_options commit=60"
    assert found.durability.options[-1].loses.seconds == 60.0


def test_what_nobody_knows_holds_no_promise(
    flushing: Recommender, recommender: Recommender, ask: Ask
) -> None:
    """Flushes, or forced writes, of unknown cost: no bound on speed is met, by anything."""
    for workload in (FLUSHING, {"operation": "write", "force_unit_access": True}):
        for bound in ({"latency_p99_ns_max": 1e12}, {"latency_mean_ns_max": 1e12}, {"iops_min": 1}):
            answer = recommender.recommend(ask(workload, current=TODAY, sla=bound))
            assert answer.action == "none"
            assert answer.reason_code == "not_shown_to_hold"
            assert answer.recommended is None
            assert answer.counts.feasible == 0
            assert answer.current is not None
            assert not answer.current.meets_sla
            (short,) = answer.nearest_misses[0].shortfalls
            assert short.unknown
    # a bound on watts needs no flush, and a known cost decides
    watts = recommender.recommend(ask(FLUSHING, current=TODAY, sla={"device_power_watts_max": 9}))
    assert watts.recommended is not None
    known = flushing.recommend(ask(FLUSHING, current=TODAY, sla={"latency_p99_ns_max": 1e12}))
    assert known.recommended is not None


def test_a_flush_is_part_of_the_latency_of_who_waits_for_it(
    flushing: Recommender, ask: Ask
) -> None:
    assert flushing.profile.flush is not None
    wait = 1e9 * flushing.profile.flush.seconds.value
    for every, share in ((4, 0.25), (1000, 0.001)):
        asked = {"operation": "write", "demand_operations_per_second": 100.0}
        plain, waits = (
            flushing.recommend(ask(asked | more, current=TODAY, free={})).current
            for more in ({}, {"flush_every_writes": every})
        )
        assert plain is not None
        assert waits is not None
        assert plain.latency_p99_ns is not None
        assert waits.latency_p99_ns is not None
        more = waits.latency_mean_ns.value - plain.latency_mean_ns.value
        assert more == pytest.approx(share * wait, rel=0.05)
        tail = waits.latency_p99_ns.value - plain.latency_p99_ns.value
        assert tail == pytest.approx(wait if share > 0.01 else 0.0, rel=0.05, abs=0.02 * wait)


def test_the_permission_is_a_clause_of_its_own() -> None:
    assert parse_sla("p99 < 2 ms, allow weaker durability").allow_weaker_durability
    assert parse_sla("Allow weaker durability").bounds() == {}
    assert not parse_sla("p99 < 2 ms").allow_weaker_durability


def test_the_cost_of_a_flush_widens_what_can_be_carried(
    make_profile: Callable[..., DeviceProfile], ask: Ask
) -> None:
    def width(sd: float) -> float:
        cost = flush_cost(SECONDS)
        cost["seconds"] = cost["seconds"] | {"sd": sd}
        profile = make_profile(flush=FlushCost.model_validate(cost).model_dump())
        row = Recommender(profile).recommend(ask(FLUSHING, current=TODAY, free={})).current
        carried = row.capacity_bytes_per_second
        return float(np.log(carried.value / carried.low))

    # the flush takes nearly all of the time, so its error is nearly that of the throughput
    assert width(0.3) == pytest.approx(1.645 * 0.3, rel=0.15)
    assert width(0.01) < 0.1
