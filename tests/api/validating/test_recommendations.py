"""What is known of simulated drives, asked about them, and said of the answers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from iojoule.api.validating.drives import HiddenDrive, Host, draw_drives
from iojoule.api.validating.judging import Outcome
from iojoule.api.validating.questions import draw_question
from iojoule.api.validating.recommendations import validate
from iojoule.api.validating.report import share, summaries
from iojoule.api.validating.truth import Grid, Table, Work

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


def test_the_same_seed_draws_the_same_drives_and_questions(table: Table) -> None:
    assert draw_drives(7, 2) == draw_drives(7, 2)
    assert draw_drives(7, 2) != draw_drives(8, 2)
    assert draw_question(table, 3, 7).workload == draw_question(table, 3, 7).workload
    assert draw_question(table, 3, 7).workload != draw_question(table, 4, 7).workload


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


@pytest.mark.parametrize("number", range(30))
def test_questions_are_about_what_can_be_done_or_nearly(table: Table, number: int) -> None:
    asked = draw_question(table, number, 5)
    workload = asked.workload
    assert workload.free is not None
    if asked.demand is not None:
        most = (table.iops * table.request_bytes)[asked.candidates].max()
        assert 0.1 <= asked.demand / most <= 0.9
    assert 1 <= len(workload.sla.bounds()) <= 3
    sizes = table.request_bytes[asked.candidates]
    assert sizes.min() >= (workload.workload.useful_request_bytes or 0)
    assert sizes.max() <= (workload.workload.request_bytes_coalescible or 0)


def outcome(**changes: Any) -> Outcome:
    said: dict[str, Any] = {
        "question": 0, "drive": "known", "picker": "intervals", "picked": True, "possible": True,
        "stated": {"latency_p99_ns_max": 0.1}, "broken": (), "regret": 0.0,
    }  # fmt: skip
    return Outcome(**(said | changes))


def test_a_summary_counts_what_happened() -> None:
    every = [outcome(regret=0.02)] * 8
    every += [outcome(broken=("latency_p99_ns_max",), regret=-0.5)]
    every += [outcome(picked=False, regret=None), outcome(possible=False, regret=None)]
    every += [outcome(picker="points", stated={"a": 0.2, "b": 0.05}, saving_covered=True)]
    ours, points = summaries(every)
    assert (ours.asked, ours.picked, ours.violated.count) == (11, 10, 1)
    assert ours.stated == pytest.approx(0.1)
    assert ours.keeps_the_sla
    assert ours.declined_possible.share == pytest.approx(0.1)
    assert ours.picked_impossible.count == 1
    assert ours.regret is not None
    assert ours.regret.mean == pytest.approx(0.16 / 9)  # what breaks a bound is no gain
    assert ours.regret.mean_broken_as_twice == pytest.approx(1.16 / 9)
    assert ours.regret_is_small
    assert points.stated == pytest.approx(0.2)
    assert points.savings_covered.count == 1


def test_no_case_says_nothing_of_a_share() -> None:
    assert (share([]).low, share([]).high, share([]).share) == (0.0, 1.0, None)
    many = share([True] * 10 + [False] * 90)
    assert many.low == pytest.approx(0.049, abs=1e-3)  # Clopper and Pearson (1934)
    assert many.high == pytest.approx(0.1762, abs=1e-3)


def test_answers_about_a_small_grid_are_judged() -> None:
    """One drive, eighteen configurations, a profile of its own: every part once."""
    outcomes = validate(6, 11, drives=1, grid=SMALL, works=(READS,), runs=12)
    assert [one.question for one in outcomes] == [n for n in range(6) for _ in range(2)]
    ours, points = summaries(outcomes)
    assert ours.asked == points.asked == 6
    assert points.picked > 0
    assert outcomes == validate(6, 11, drives=1, grid=SMALL, works=(READS,), runs=12)
