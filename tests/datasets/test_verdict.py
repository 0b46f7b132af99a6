"""What makes a run doubtful or failed, what does not, and who may use it then."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iojoule.datasets.schema import Configuration, Judgement, Measurement, Workload, from_row
from iojoule.datasets.verdict import (
    GAP_SECONDS,
    DeviceEvidence,
    IdleLevel,
    PowerEvidence,
    Reason,
    ReasonCode,
    RunEvidence,
    judge,
    usable,
    verdict_of,
    with_idle_drift,
)
from iojoule.datasets.vocabulary import Engine, Operation, Verdict

GOOD, DOUBTFUL, FAILED = Verdict.GOOD, Verdict.DOUBTFUL, Verdict.FAILED


def evidence(
    depth: int = 8,
    jobs: int = 1,
    *,
    latency: float = 1e-3,
    engine: Engine = Engine.IO_URING,
    request_bytes: int = 4096,
    seconds: float = 30.0,
    workload: Workload | None = None,
    largest: int = 131072,
    slower: float = 1.0,
) -> RunEvidence:
    """A run without a fault; `slower` stretches the time between requests."""
    asked = workload or Workload(operation=Operation.READ)
    gap = GAP_SECONDS[engine] + (asked.think_time_ns or 0.0) * 1e-9 if depth == 1 else 0.0
    iops = depth * jobs / (latency + gap) / slower
    parts = -(-request_bytes // largest)
    return RunEvidence(
        workload=asked,
        configuration=Configuration(
            request_bytes=request_bytes, queue_depth=depth, jobs=jobs, engine=engine
        ),
        measured_seconds=seconds,
        iops=iops,
        bytes_per_second=iops * request_bytes,
        latency_mean_ns=latency * 1e9,
        usual_p999_ns=2e9 * latency,
        pause_seconds=0.1,
        in_flight_in_pause=float(depth * jobs),
        unread_seconds=0.1,
        power=(PowerEvidence("meter", 2.6, 0.01, 1.0, 0.0),),
        device=DeviceEvidence(iops * request_bytes, iops * parts, 0.0, 0.1, True, largest),
    )


def power(**changes: Any) -> dict[str, Any]:
    return {"power": (replace(evidence().power[0], **changes),)}


def device(**changes: Any) -> dict[str, Any]:
    known = evidence().device
    assert known is not None
    return {"device": replace(known, **changes)}


CLEAN = evidence()
RATE = CLEAN.iops
BYTES = CLEAN.bytes_per_second


@pytest.mark.parametrize(
    ("changes", "verdict", "code"),
    [
        (power(full_scale_seconds=5e-5), FAILED, "full_scale"),
        (power(full_scale_seconds=None), GOOD, None),
        (power(coverage=0.96), GOOD, None),
        (power(coverage=0.94), DOUBTFUL, "low_coverage"),
        (power(coverage=0.176), FAILED, "low_coverage"),
        (power(mean_watts=None, coverage=0.0), GOOD, None),
        (power(mean_watts=0.2, standard_error_watts=0.3), FAILED, "standard_error"),
        ({"pause_seconds": 0.9}, GOOD, None),
        ({"pause_seconds": 1.1}, DOUBTFUL, "stall"),
        ({"pause_seconds": 20.0}, DOUBTFUL, "stall"),
        ({"pause_seconds": 3.9, "usual_p999_ns": 0.2e9}, GOOD, None),
        ({"pause_seconds": 4.1, "usual_p999_ns": 0.2e9}, DOUBTFUL, "stall"),
        ({"pause_seconds": 2.0, "in_flight_in_pause": 0.0}, DOUBTFUL, "fio_slept"),
        ({"pause_seconds": 2.0, "in_flight_in_pause": None}, DOUBTFUL, "stall"),
        ({"unread_seconds": 2.0}, DOUBTFUL, "iojoule_slept"),
        ({"wall_step_seconds": 0.05}, GOOD, None),
        ({"wall_step_seconds": 2.0}, FAILED, "clock_step"),
        ({"wall_step_seconds": -2.0}, FAILED, "clock_step"),
        ({"wall_step_seconds": 3600.0}, FAILED, "clock_step"),
        ({"wall_step_seconds": 60.0, "suspended_seconds": 60.0}, FAILED, "host_suspended"),
        ({"outside_seconds": 0.4}, GOOD, None),
        ({"outside_seconds": 2.0}, FAILED, "clock_mismatch"),
        (device(bytes_per_second=1.04 * BYTES), GOOD, None),
        (device(bytes_per_second=1.2 * BYTES), FAILED, "foreign_io"),
        (device(bytes_per_second=0.8 * BYTES), FAILED, "missing_io"),
        (device(bytes_per_second=0.0, holds_own=False, commands_per_second=0.0), GOOD, None),
        (device(bytes_per_second=BYTES, holds_own=False), FAILED, "foreign_io"),
        (device(commands_per_second=2 * RATE), DOUBTFUL, "commands"),
        (device(commands_per_second=0.5 * RATE), DOUBTFUL, "commands"),
        (device(commands_per_second=0.25 * RATE, merged_per_second=0.75 * RATE), GOOD, None),
    ],
)
def test_each_rule(changes: dict[str, Any], verdict: Verdict, code: str | None) -> None:
    found = judge(replace(CLEAN, **changes))
    assert found.verdict is verdict
    assert [one.code.value for one in found.reasons] == ([code] if code else [])
    assert all(one.said and one.remedy and one.value is not None for one in found.reasons)


def test_what_the_drive_counted_is_not_judged_beside_a_pause() -> None:
    uneven = {"pause_seconds": 19.8, **device(bytes_per_second=0.8 * BYTES)}
    found = judge(replace(CLEAN, **uneven))
    assert (found.verdict, found.judgement.verdict_reasons) == (DOUBTFUL, "stall")


@pytest.mark.parametrize(
    ("slower", "verdict"), [(1.02, GOOD), (1.04, DOUBTFUL), (0.96, DOUBTFUL), (1.1, FAILED)]
)
def test_littles_law_judges_saturated_runs_above_depth_1(slower: float, verdict: Verdict) -> None:
    found = judge(evidence(8, slower=slower))
    assert found.verdict is verdict
    assert {one.code for one in found.reasons} <= {ReasonCode.LITTLES_LAW}
    assert judge(replace(evidence(8, slower=slower), verify_littles_law=False)).verdict is GOOD
    held = Workload(operation=Operation.READ, demand_operations_per_second=100)
    assert judge(evidence(8, slower=slower, workload=held)).verdict is GOOD


@pytest.mark.parametrize(
    ("seconds", "slower", "verdict"),
    [(3.0, 1.06, GOOD), (30.0, 1.06, FAILED), (0.5, 1.06, GOOD), (0.5, 1.15, FAILED)],
)
def test_requests_at_the_ends_of_a_short_run_are_allowed_for(
    seconds: float, slower: float, verdict: Verdict
) -> None:
    seen = evidence(64, latency=0.15, seconds=seconds, slower=slower)
    assert judge(replace(seen, device=None)).verdict is verdict


@pytest.mark.parametrize("engine", [Engine.PSYNC, Engine.LIBAIO, Engine.IO_URING, Engine.SPDK])
def test_at_depth_1_the_gap_between_requests_is_judged_and_not_the_law(engine: Engine) -> None:
    # 0.3 to 1 us of 7 us are more than 3 %, and are what the engine takes
    fast = evidence(1, latency=6e-6, engine=engine)
    assert judge(fast).verdict is GOOD
    assert judge(evidence(1, latency=100e-6, engine=engine, slower=1.02)).verdict is GOOD
    late = judge(evidence(1, latency=100e-6, engine=engine, slower=1.065))
    assert (late.verdict, late.judgement.verdict_reasons) == (DOUBTFUL, "request_gap")
    assert judge(evidence(1, latency=100e-6, engine=engine, slower=1.2)).verdict is FAILED


def test_a_think_time_is_part_of_the_gap() -> None:
    thinking = Workload(operation=Operation.READ, think_time_ns=5e6)
    assert judge(evidence(1, workload=thinking)).verdict is GOOD
    assert judge(evidence(1, workload=thinking, slower=1.2)).verdict is FAILED


@given(
    depth=st.sampled_from([1, 2, 8, 64, 256]),
    jobs=st.sampled_from([1, 4, 16]),
    latency=st.floats(5e-6, 5e-2),
    engine=st.sampled_from(list(GAP_SECONDS)),
    request_bytes=st.sampled_from([512, 4096, 131072, 1 << 20]),
    seconds=st.floats(3, 600),
    law=st.floats(-0.02, 0.02),
    moved=st.floats(-0.03, 0.03),
)
def test_a_run_without_a_fault_is_good(
    depth: int,
    jobs: int,
    latency: float,
    engine: Engine,
    request_bytes: int,
    seconds: float,
    law: float,
    moved: float,
) -> None:
    if engine is Engine.PSYNC:
        depth = 1
    seen = evidence(
        depth,
        jobs,
        latency=latency,
        engine=engine,
        request_bytes=request_bytes,
        seconds=seconds,
        slower=1 + law,
    )
    assert seen.device is not None
    counted = replace(
        seen.device,
        bytes_per_second=seen.device.bytes_per_second * (1 + moved),
        commands_per_second=seen.device.commands_per_second * (1 + moved),
    )
    assert judge(replace(seen, device=counted)).reasons == ()


@given(worse=st.floats(1.0, 10.0), coverage=st.floats(0.0, 1.0))
def test_a_worse_figure_is_never_judged_better(worse: float, coverage: float) -> None:
    order = [GOOD, DOUBTFUL, FAILED]
    less = judge(replace(CLEAN, **power(coverage=coverage / worse))).verdict
    assert order.index(less) >= order.index(
        judge(replace(CLEAN, **power(coverage=coverage))).verdict
    )


@pytest.mark.parametrize(
    ("levels", "error", "run_watts", "verdict"),
    [
        ((1.0, 1.0, 1.02), 0.001, 2.0, GOOD),
        ((1.0, 1.0, 1.1), 0.001, 2.0, DOUBTFUL),
        ((1.0, 1.1, 1.0), 0.001, 2.0, DOUBTFUL),
        ((1.0, 1.1, 1.1), 0.001, 2.0, DOUBTFUL),  # moved for good before the run
        ((1.0, 1.0, 1.1), 0.05, 2.0, GOOD),  # noise of the meter
        ((0.03, 0.03, 0.04), 0.0001, 5.0, GOOD),  # 10 mW are nothing beside the run's power
    ],
)
def test_drift_of_idle_power(
    levels: tuple[float, ...], error: float, run_watts: float, verdict: Verdict
) -> None:
    found = with_idle_drift(verdict_of([]), [IdleLevel(one, error) for one in levels], run_watts)
    assert found.verdict is verdict
    steady = [IdleLevel(1.0), IdleLevel(1.0), IdleLevel(1.0)]
    assert with_idle_drift(found, steady, run_watts).verdict is GOOD, "judged anew"


def row(verdict: Verdict | None, reasons: str | None = None) -> Measurement:
    return from_row(
        {
            "operation": "read",
            "request_bytes": 4096,
            "iops": 1000.0,
            "verdict": verdict,
            "verdict_reasons": reasons,
        }
    )


def test_failed_rows_are_never_used_and_doubtful_ones_only_if_asked_for() -> None:
    good, old = row(GOOD), row(None)
    doubtful, failed = row(DOUBTFUL, "stall,low_coverage"), row(FAILED, "clock_step")
    found = usable([good, doubtful, failed, old])
    assert found.measurements == [good, old]
    assert len(found.notes) == 2
    assert "1 stall" in " ".join(found.notes)
    asked = usable([good, doubtful, failed, old], with_doubtful=True)
    assert asked.measurements == [good, doubtful, old]
    assert len(asked.notes) == 1


def test_the_worst_reason_is_the_verdict() -> None:
    doubt = Reason(code=ReasonCode.STALL, verdict=DOUBTFUL, said="a", remedy="b")
    fail = Reason(code=ReasonCode.CLOCK_STEP, verdict=FAILED, said="c", remedy="d")
    both = verdict_of([doubt, fail])
    assert both.verdict is FAILED
    assert both.judgement == Judgement(verdict=FAILED, verdict_reasons="clock_step,stall")
    assert verdict_of([]).judgement == Judgement(verdict=GOOD)
