"""What is known of simulated drives, asked about them, and said of the answers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from iojoule.api.validating.chance import COLUMNS, at_random_work, in_bursts, one_at_a_time
from iojoule.api.validating.drives import HiddenDrive, Host, draw_drives
from iojoule.api.validating.judging import Outcome
from iojoule.api.validating.questions import POISSON, Asked, draw_question
from iojoule.api.validating.recommendations import validate
from iojoule.api.validating.report import share, summaries
from iojoule.api.validating.truth import Grid, Table, Work
from iojoule.sim.result import LatencySummary

SMALL = Grid((4096, 16384, 65536), (1, 4, 16), (1,), ("interrupt",), (0, 1))
READS = Work("read", 1.0)


@pytest.fixture(scope="module")
def table() -> Table:
    """A drive that serves by Little's law, at 100 us and up, and draws what it moves."""
    chosen = SMALL.configurations()
    depth = np.array([one.queue_depth for one in chosen], dtype=float)
    size = np.array([one.request_bytes for one in chosen], dtype=float)
    state = np.array([one.power_state for one in chosen], dtype=np.intp)
    mean = 1e5 * (1 + depth / 8) * (1 + size / 65536) * (1 + 0.2 * state)
    iops = depth / mean * 1e9
    drive = HiddenDrive("known", draw_drives(1, 1)[0].states, (1.0, 0.8, 0.6), Host(5.0, 3.0))
    return Table(
        drive, READS, SMALL, size, state, iops,
        {"latency_mean_ns": mean, "latency_p50_ns": 0.9 * mean, "latency_p99_ns": 2 * mean},
        2.0 - 0.3 * state + iops * size * 1e-9, np.ones(len(size)),
    )  # fmt: skip


def by_formula(table: Table, rows: Any, demand: float) -> Any:
    """M/M/1 instead of a simulation: the wait grows as 1 / (1 - load)."""
    load = demand * table.slower / (table.iops * table.slower * table.request_bytes)
    mean = table.latency["latency_mean_ns"] / table.slower / (1.0 - np.minimum(load, 0.999))
    watts = table.idle_watts + load * (table.watts - table.idle_watts) * table.slower
    columns = [mean, 0.7 * mean, 4.0 * mean, watts, load * table.cores]
    assert len(columns) == len(COLUMNS)
    return np.stack(columns, axis=1)[rows]


def drawn(table: Table, number: int, seed: int) -> Asked:
    return draw_question(table, number, seed, by_formula)


def test_the_same_seed_draws_the_same_drives_and_questions(table: Table) -> None:
    assert draw_drives(7, 2) == draw_drives(7, 2)
    assert draw_drives(7, 2) != draw_drives(8, 2)
    assert drawn(table, 3, 7).workload == drawn(table, 3, 7).workload
    assert drawn(table, 3, 7).workload != drawn(table, 4, 7).workload


def test_a_place_in_the_grid_is_that_of_the_configuration() -> None:
    chosen = SMALL.configurations()
    assert [SMALL.place(one) for one in chosen] == list(range(len(chosen)))


def test_at_a_demand_energy_is_that_of_busy_and_idle_time(table: Table) -> None:
    full, half = table.at_work(None), table.at_work(0.5 * float(table.iops[0] * 4096))
    idle = np.array(table.drive.idle_watts)[table.power_state]
    busy = half["served_bytes_per_second"] / full["capacity_bytes_per_second"]
    mean = busy * full["device_power_watts"] + (1 - busy) * idle
    assert half["device_power_watts"] == pytest.approx(mean)
    assert busy[0] == pytest.approx(0.5)


def test_leakage_feeds_on_the_heat_it_makes(table: Table) -> None:
    leaking = replace(table.drive, leakage_watts=0.2)
    watts = np.array([0.0, 1.0, 3.0])
    total = leaking.with_leakage(watts)
    assert total[0] == pytest.approx(0.0)
    assert total == pytest.approx(watts + 0.2 * np.expm1(8.0 * total / 22.0))
    assert np.all(np.diff(total - watts) > 0)


def test_requests_by_chance_wait_the_longer_the_busier_the_drive(table: Table) -> None:
    rows = np.arange(len(table.iops))
    least = float((table.iops * table.request_bytes).min())
    quiet, busy = (at_random_work(table, rows, part * least, by_formula) for part in (0.1, 0.9))
    for name in ("latency_mean_ns", "latency_p99_ns"):
        assert np.all(busy[name] > quiet[name])
    for name in ("device_power_watts", "cpu_power_watts"):
        assert np.all(busy[name] >= quiet[name])
    beyond = at_random_work(table, rows, 2.0 * least, by_formula)
    unable = table.iops * table.request_bytes <= 2.0 * least
    assert np.all(np.isinf(beyond["latency_p99_ns"]) == unable)


def test_what_is_slower_is_the_same_run_on_a_slower_clock(table: Table) -> None:
    """Half the demand on a drive that takes twice as long: twice the latency, half the dynamic."""
    rows, demand = np.arange(len(table.iops)), 0.5 * float((table.iops * table.request_bytes).min())
    twice = replace(
        table, slower=np.full(len(rows), 2.0), iops=table.iops / 2.0,
        watts=table.idle_watts + (table.watts - table.idle_watts) / 2.0,
        latency={name: 2.0 * value for name, value in table.latency.items()},
    )  # fmt: skip
    once = at_random_work(table, rows, demand, by_formula)
    slow = at_random_work(twice, rows, demand / 2.0, by_formula)
    assert slow["latency_mean_ns"] == pytest.approx(2.0 * once["latency_mean_ns"])
    above = once["device_power_watts"] - table.idle_watts
    assert slow["device_power_watts"] - table.idle_watts == pytest.approx(above / 2.0)


def test_bursts_wait_as_in_a_queue_with_constant_service(table: Table) -> None:
    """M/D/1 (Pollaczek and Khinchine): a mean wait of load / (2 (1 - load)) services."""
    rows, demand = np.arange(len(table.iops)), 0.6 * float((table.iops * table.request_bytes).min())
    seen = in_bursts(table, rows, demand)
    load = demand / (table.iops * table.request_bytes)
    depth = np.array([one.queue_depth * one.jobs for one in SMALL.configurations()])
    wait = load / (2.0 * (1.0 - load)) * 1e9 * depth / table.iops
    own = table.latency["latency_mean_ns"]
    assert seen["latency_mean_ns"] == pytest.approx(own + wait, rel=0.03)
    assert np.all(seen["latency_p99_ns"] >= 0.97 * table.latency["latency_p99_ns"])


def test_one_request_at_a_time_is_a_single_server() -> None:
    """Constant service at half load (M/D/1): a mean wait of half a service."""
    constant = LatencySummary.model_validate(
        {"count": 1, "mean_ns": 1e5}
        | {f"{name}_ns": 100_000 for name in ("min", "max", "p50", "p90", "p99", "p999", "p9999")}
    )
    mean, median, late = one_at_a_time(constant, 5_000.0)
    assert mean == pytest.approx(1.5e5, rel=0.02)
    assert 1e5 <= median < mean < late


@pytest.mark.parametrize("number", range(30))
def test_questions_are_about_what_can_be_done_or_nearly(table: Table, number: int) -> None:
    asked = drawn(table, number, 5)
    workload = asked.workload
    assert workload.free is not None
    if asked.demand is not None:
        most = (table.iops * table.request_bytes)[asked.candidates].max()
        assert 0.1 <= asked.demand / most <= 0.9
    assert 1 <= len(workload.sla.bounds()) <= 3
    sizes = table.request_bytes[asked.candidates]
    assert sizes.min() >= (workload.workload.useful_request_bytes or 0)
    assert sizes.max() <= (workload.workload.request_bytes_coalescible or 0)
    assert asked.today in asked.candidates


def test_half_of_the_questions_come_as_poisson_arrivals(table: Table) -> None:
    arrivals = [drawn(table, number, 5).arrivals for number in range(200)]
    assert 80 <= arrivals.count(POISSON) <= 120
    assert min(arrivals.count("bursts"), arrivals.count("none")) >= 30


def test_no_candidate_keeps_more_in_flight_than_the_application_can(table: Table) -> None:
    chosen = SMALL.configurations()
    in_flight = np.array([one.queue_depth * one.jobs * one.request_bytes for one in chosen])
    said = set()
    for number in range(40):
        asked = drawn(table, number, 5)
        most = asked.workload.most_bytes_in_flight(chosen[asked.today])
        assert np.all(in_flight[asked.candidates] <= most)
        said.add(type(asked.workload.concurrency_max))
    assert said == {type(None), str, int}


def test_nobody_saves_a_watt_of_the_drive_with_more_of_the_cpu(table: Table) -> None:
    asked = drawn(table, 0, 5)
    truth = {name: value.copy() for name, value in asked.truth.items()}
    served = truth["served_bytes_per_second"]
    for name in ("device_power_watts", "cpu_power_watts"):
        truth[name] = served.copy()  # one joule a byte each
    row = next(int(one) for one in asked.candidates if one != asked.today)
    truth["device_power_watts"][row] -= 0.2 * served[row]
    truth["cpu_power_watts"][row] += 0.3 * served[row]
    assert not replace(asked, truth=truth).fair()[row]
    truth["cpu_power_watts"][row] -= 0.2 * served[row]
    assert replace(asked, truth=truth).fair()[row]


def test_headroom_is_that_of_the_candidate_farthest_from_its_nearest_bound(table: Table) -> None:
    asked = next(
        one for one in (drawn(table, number, 5) for number in range(50))
        if list(one.workload.sla.bounds()) == ["latency_p99_ns_max"] and one.demand is None
    )  # fmt: skip
    limit = asked.workload.sla.bounds()["latency_p99_ns_max"]
    best = asked.truth["latency_p99_ns"][asked.candidates].min()
    assert asked.headroom(asked.candidates) == pytest.approx(limit / best - 1.0)
    assert asked.headroom(asked.candidates[:0]) == 0.0


def outcome(**changes: Any) -> Outcome:
    said: dict[str, Any] = {
        "question": 0, "drive": "known", "picker": "intervals", "arrivals": "none",
        "objective": "watts", "action": "change", "reason_code": None, "picked": True,
        "today_keeps": True, "possible": True, "headroom": 0.3,
        "stated": {"latency_p99_ns_max": 0.1}, "broken": (), "regret": 0.0,
    }  # fmt: skip
    return Outcome(**(said | changes))


def test_a_summary_counts_what_happened() -> None:
    every = [outcome(regret=0.02)] * 8
    every += [outcome(broken=("latency_p99_ns_max",), regret=-0.5)]
    every += [
        outcome(picked=False, regret=None, action="none", reason_code="infeasible"),
        outcome(possible=False, regret=None, action="no change"),
    ]
    every += [outcome(picker="points", stated={"a": 0.2, "b": 0.05}, saving_covered=True)]
    ours, _, points = summaries(every)
    assert (ours.asked, ours.picked, ours.violated.count) == (11, 10, 1)
    assert ours.stated == pytest.approx(0.1)
    assert ours.keeps_the_sla
    assert ours.declined_possible.share == pytest.approx(0.1)
    assert ours.declined_reasons == {"infeasible": 1}
    assert ours.kept_today == 1
    assert ours.declines_little
    assert {one.part: one.asked for one in ours.parts} == {
        "objective watts": 11,
        "arrivals none": 11,
        "headroom 25% to 50%": 10,
    }
    assert ours.picked_impossible.count == 1
    assert ours.regret is not None
    assert ours.regret.mean == pytest.approx(0.16 / 9)  # what breaks a bound is no gain
    assert ours.regret.mean_broken_as_twice == pytest.approx(1.16 / 9)
    assert ours.regret_is_small
    assert points.stated == pytest.approx(0.2)
    assert points.savings_covered.count == 1


def test_changes_count_where_only_their_saving_speaks_for_them() -> None:
    every = [outcome(optional=True, cheaper=True)] * 3
    every += [outcome(optional=True, cheaper=False), outcome(cheaper=False)]
    ours, _, _ = summaries(every)
    assert (ours.changes_that_save.count, ours.changes_that_save.of) == (3, 4)


def test_no_case_says_nothing_of_a_share() -> None:
    assert (share([]).low, share([]).high, share([]).share) == (0.0, 1.0, None)
    many = share([True] * 10 + [False] * 90)
    assert many.low == pytest.approx(0.049, abs=1e-3)  # Clopper and Pearson (1934)
    assert many.high == pytest.approx(0.1762, abs=1e-3)


def test_answers_about_a_small_grid_are_judged() -> None:
    """One drive, eighteen configurations, a profile of its own: every part once."""
    outcomes = validate(6, 11, drives=1, grid=SMALL, works=(READS,), runs=12)
    assert [one.question for one in outcomes] == [n for n in range(6) for _ in range(3)]
    ours, measured, points = summaries(outcomes)
    assert ours.asked == measured.asked == points.asked == 6
    assert measured.declined_possible.count <= ours.declined_possible.count
    assert points.picked > 0
    assert outcomes == validate(6, 11, drives=1, grid=SMALL, works=(READS,), runs=12)
