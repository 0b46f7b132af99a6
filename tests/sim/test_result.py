"""The one type of result: its JSON layout, what follows from what, and what is unknown."""

import json

import pytest
from pydantic import ValidationError

from iojoule.sim.result import (
    DeviceResult,
    FlowResult,
    FlowSeries,
    LatencyByClass,
    LatencySummary,
    OriginCounts,
    PhysicalResult,
    ScenarioResult,
    SimulationResult,
)

SCENARIO_KEYS = {"device", "flows", "run_user_seconds", "run_wall_seconds", "peak_bytes", "events"}
FLOW_KEYS = {
    "serviced",
    "serviced_read",
    "serviced_write",
    "sim_end_ns",
    "flow_last_completion_ns",
    "drt_ns",
    "drt_read_ns",
    "drt_write_ns",
    "e2e_ns",
    "max_drt_ns",
    "p50_ns",
    "p99_ns",
    "p999_ns",
}
DEVICE_KEYS = {
    "pages_read",
    "pages_programmed",
    "blocks_erased",
    "cmd_read",
    "cmd_mp_read",
    "cmd_prog",
    "cmd_mp_prog",
    "cmd_erase",
    "map_reads",
    "cmt_queries",
    "cmt_hits",
    "gc_exec",
}


def device(**changed: object) -> DeviceResult:
    counts = dict.fromkeys(
        (
            "cmd_read",
            "cmd_mp_read",
            "cmd_prog",
            "cmd_mp_prog",
            "cmd_erase",
            "cmd_mp_erase",
            "map_reads",
            "map_writes",
            "cmt_queries_read",
            "cmt_queries_write",
            "cmt_hits_read",
            "cmt_hits_write",
            "gc_exec",
            "gc_page_moves",
        ),
        0,
    )
    origins = dict.fromkeys(
        ("pages_read_by_origin", "pages_programmed_by_origin", "blocks_erased_by_origin"),
        OriginCounts(),
    )
    return DeviceResult.model_validate(
        {**counts, **origins, "chip_exec_ns": (), "chip_transfer_ns": (), **changed}
    )


def reads(
    count: int = 4, *, generated: int = 4, seconds: float = 2.0, **changed: object
) -> FlowResult:
    some = LatencySummary(
        count=count,
        mean_ns=90.5,
        min_ns=80,
        max_ns=120,
        p50_ns=88,
        p90_ns=99,
        p99_ns=110,
        p999_ns=119,
        p9999_ns=120,
    )
    latency = LatencyByClass(all=some, read=some, write=LatencySummary())
    last_ns = int(seconds * 1e9)
    return FlowResult.model_validate(
        {
            "generated": generated,
            "generated_read": generated,
            "generated_write": 0,
            "serviced": count,
            "serviced_read": count,
            "serviced_write": 0,
            "bytes_read": 4096 * count,
            "bytes_written": 0,
            "flow_last_completion_ns": last_ns,
            "sim_end_ns": last_ns + 8,
            "device_latency": latency,
            "end_to_end_latency": latency,
            **changed,
        }
    )


def scenario(*flows: FlowResult, **changed: object) -> ScenarioResult:
    return ScenarioResult.model_validate(
        {
            "engine": "embedded",
            "mode": "compat",
            "device": device(),
            "flows": flows or (reads(),),
            "run_user_seconds": 0.25,
            "run_wall_seconds": 0.5,
            "peak_bytes": 1024,
            "events": 9,
            **changed,
        }
    )


def test_the_json_form_has_the_promised_keys_and_no_null() -> None:
    written = json.loads(SimulationResult(scenarios=(scenario(),)).model_dump_json())
    assert set(written) == {"scenarios"}
    (first,) = written["scenarios"]
    assert set(first) >= SCENARIO_KEYS
    assert set(first["flows"][0]) >= FLOW_KEYS
    assert set(first["device"]) >= DEVICE_KEYS
    assert "null" not in json.dumps(written)


def test_an_absent_class_is_zero_and_an_unknown_one_is_left_out() -> None:
    known = json.loads(reads().model_dump_json())
    assert known["drt_write_ns"] == 0
    assert known["drt_read_ns"] == 90.5
    only_both = LatencyByClass(all=LatencySummary(count=4, mean_ns=90.5))
    unknown = reads(device_latency=only_both)
    assert unknown.drt_write_ns is None
    assert "drt_write_ns" not in json.loads(unknown.model_dump_json())


def test_a_written_result_reads_back_equal() -> None:
    columns = FlowSeries.model_fields
    steps = FlowSeries.model_validate(dict.fromkeys(columns, (0, 0)) | {"serviced_read": (3, 1)})
    both = scenario(
        reads(series=steps),
        reads(device_latency=LatencyByClass(all=LatencySummary())),
        device=device(
            pages_programmed_by_origin=OriginCounts(user=10, gc=5),
            energy_joules={"array_read": 1.5, "idle": 2.0},
        ),
        series_step_ns=10**9,
    )
    written = SimulationResult(scenarios=(both,)).model_dump_json()
    assert SimulationResult.model_validate_json(written).scenarios == (both,)


def test_rates_are_over_the_exact_time_to_the_last_completion() -> None:
    flow = reads(5, generated=5, seconds=2.5)
    assert flow.iops == flow.iops_read == 2.0
    assert flow.bandwidth_bytes_per_second == 2.0 * 4096
    assert flow.iops_write == 0
    warmed = reads(5, generated=5, seconds=2.5, measured_from_ns=500_000_000)
    assert warmed.iops == 2.5


def test_a_flow_that_never_completed_has_no_rate() -> None:
    flow = reads(0, generated=3, seconds=0.0)
    assert flow.iops == 0
    assert flow.bandwidth_bytes_per_second == 0


def test_counts_are_sums_over_their_origins() -> None:
    drive = device(
        pages_read_by_origin=OriginCounts(user=3, gc=4, mapping=5),
        pages_programmed_by_origin=OriginCounts(user=4, gc=6),
        blocks_erased_by_origin=OriginCounts(gc=2),
        cmt_queries_read=7,
        cmt_queries_write=1,
        cmt_hits_read=2,
        cmt_hits_write=1,
        energy_joules={"array_read": 0.25, "idle": 1.0},
    )
    assert (drive.pages_read, drive.pages_programmed, drive.blocks_erased) == (12, 10, 2)
    assert (drive.cmt_queries, drive.cmt_hits) == (8, 3)
    assert drive.write_amplification == 2.5
    assert drive.energy_joules_total == 1.25


def test_a_drive_that_wrote_nothing_has_no_write_amplification() -> None:
    assert device().write_amplification is None
    assert device().energy_joules_total is None


def test_a_drive_that_counts_units_has_its_write_amplification_in_units() -> None:
    units = PhysicalResult(units_written=100, units_moved=30)
    full_pages = OriginCounts(user=30, gc=8)
    drive = device(pages_programmed_by_origin=full_pages, physical=units)
    assert drive.write_amplification == 1.3


def test_lost_requests_are_told_by_flow() -> None:
    both = scenario(reads(), reads(3))
    assert list(both.lost()) == [(1, 1)]


def test_flows_of_one_scenario_end_together() -> None:
    with pytest.raises(ValidationError, match="sim_end_ns must be the same"):
        scenario(reads(seconds=1.0), reads(seconds=2.0))


def test_a_result_cannot_be_changed_or_hold_nonsense() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        reads().serviced = 5  # type: ignore[misc]
    with pytest.raises(ValidationError):
        LatencySummary(mean_ns=float("nan"))
    with pytest.raises(ValidationError, match="greater than or equal to 0"):
        reads(-1)
