"""The host: what a request costs it, when requests come, and what it measures."""

from pathlib import Path
from typing import Any

import pytest

from iojoule.sim.errors import LimitError
from iojoule.sim.physical_options import HOST_COSTS, Completion, HostEngine, HostOptions
from iojoule.sim.result import FlowResult
from tests.sim.physical.drives import MS, READS, SECOND, US, WRITES, drive, merged, run

FAST: dict[str, Any] = {
    "channels": 8,
    "chips_per_channel": 4,
    "page_read_ns": (10_000,) * 3,
    "channel_megatransfers_per_second": 4000,
    "link_lane_gigabytes_per_second": 10.0,
    "physical": {"nand": {"transfer_metadata": False}},
}
"""A drive of a million reads per second."""
CPU_NS = 2612
"""What io_uring takes of a core per request."""


def flow(**changes: Any) -> FlowResult:
    return run(drive(**FAST), {**READS, **changes}).flows[0]


def test_one_thread_is_the_bottleneck_of_a_fast_drive() -> None:
    """383 k requests/s of one io_uring thread, as on the 980 PRO, however deep the queue."""
    for depth in (64, 256):
        one = flow(queue_depth=depth, host={"engine": "io_uring"})
        assert one.iops == pytest.approx(1e9 / CPU_NS, rel=0.01)
        assert one.host_cpu_seconds == pytest.approx(one.flow_last_completion_ns / 1e9, rel=0.01)


def test_what_a_busy_thread_notes_after_the_warm_up_counts() -> None:
    """Completions that wait for the thread at its end are no fewer than those at the run's end."""
    measured = run(
        drive(**merged(FAST, {"physical": {"warmup_ns": 2 * MS}})),
        {**READS, "queue_depth": 256, "stop_ns": 6 * MS, "host": {"engine": "io_uring"}},
    ).flows[0]
    served = measured.serviced - 256  # which are under way when no new ones are made
    assert served == pytest.approx(4 * MS / CPU_NS, rel=0.01)
    assert measured.serviced == measured.generated


def test_jobs_have_cores_of_their_own() -> None:
    two = flow(queue_depth=64, host={"engine": "io_uring", "jobs": 2})
    assert two.iops == pytest.approx(2e9 / CPU_NS, rel=0.01)


def test_a_single_request_pays_for_submission_waking_and_completion() -> None:
    bare = flow()
    for engine in HOST_COSTS:
        costs = HOST_COSTS[engine]
        host = {"engine": engine[0].value, "completion": engine[1].value}
        each = flow(host=host)
        assert each.e2e_ns == pytest.approx(bare.e2e_ns + sum(costs), abs=2)
        assert each.drt_ns == pytest.approx(bare.drt_ns, abs=2)
        # the time of the device alone is what the host does not see
        assert each.iops == pytest.approx(1e9 / each.e2e_ns, rel=0.001)


def test_a_busy_thread_is_not_woken() -> None:
    """At the limit of the CPU waking adds nothing."""
    costs = {"submit_cpu_ns": 1500, "complete_cpu_ns": 1112, "wake_ns": 50_000}
    deep = flow(queue_depth=256, host={"engine": "io_uring", **costs})
    assert deep.iops == pytest.approx(1e9 / CPU_NS, rel=0.01)


def test_synchronous_requests_are_one_at_a_time_for_each_job() -> None:
    result = flow(queue_depth=32, host={"engine": "psync", "jobs": 3})
    assert result.iops * result.e2e_ns / 1e9 == pytest.approx(3, rel=0.01)


def test_costs_of_an_engine_are_filled_in_or_asked_for() -> None:
    options = HostOptions(engine=HostEngine.spdk)
    assert options.completion is Completion.polled
    assert options.submit_cpu_ns == HOST_COSTS[HostEngine.spdk, Completion.polled].submit_cpu_ns
    with pytest.raises(ValueError, match="nobody has published"):
        HostOptions(engine=HostEngine.io_uring_cmd)
    given = {"submit_cpu_ns": 1, "complete_cpu_ns": 2, "wake_ns": 3}
    assert HostOptions(engine=HostEngine.io_uring_cmd, **given).wake_ns == 3  # type: ignore[arg-type]


@pytest.mark.parametrize("arrivals", ["periodic", "exponential"])
def test_an_open_loop_keeps_its_rate(arrivals: str) -> None:
    host = {"arrivals_per_second": 50_000.0, "arrivals": arrivals}
    result = flow(stop_ns=SECOND, host=host)
    tolerance = 1e-4 if arrivals == "periodic" else 0.02
    assert result.generated == pytest.approx(50_000, rel=tolerance)
    bandwidth = {"generator": "bandwidth", "bandwidth_bytes_per_second": 50_000 * 8192}
    again = flow(stop_ns=SECOND, **bandwidth)
    assert again.generated == pytest.approx(50_000, rel=0.02)


def test_latency_of_an_open_loop_counts_from_the_intended_start() -> None:
    """One core too slow for the rate: the delay grows to what has piled up."""
    host = {
        "engine": "io_uring",
        "submit_cpu_ns": 0,
        "complete_cpu_ns": 20_000,
        "wake_ns": 0,
        "arrivals_per_second": 60_000.0,
        "arrivals": "periodic",
    }
    result = flow(stop_ns=100 * MS, host=host)
    assert result.iops == pytest.approx(50_000, rel=0.01)
    # 6000 requests take 120 ms
    assert result.end_to_end_latency.all.max_ns == pytest.approx(20 * MS, rel=0.05)
    assert result.drt_ns < 100 * US


def test_think_time_comes_after_each_completion() -> None:
    result = flow(queue_depth=4, stop_ns=SECOND, host={"think_time_ns": MS})
    assert result.iops == pytest.approx(4 / (MS + result.e2e_ns) * 1e9, rel=0.01)


def test_a_gap_follows_each_burst() -> None:
    host = {"burst_requests": 100, "burst_gap_ns": 10 * MS}
    steady = flow(queue_depth=10, stop_ns=0, total_requests=1000)
    paused = flow(queue_depth=10, stop_ns=0, total_requests=1000, host=host)
    gaps_ns = paused.flow_last_completion_ns - steady.flow_last_completion_ns
    # nine gaps, and each burst ends with a queue that runs empty
    assert gaps_ns == pytest.approx(9 * 10 * MS, rel=0.02)


def test_a_gap_in_an_open_loop_is_between_arrivals() -> None:
    host = {
        "burst_requests": 10,
        "burst_gap_ns": 9 * MS,
        "arrivals_per_second": 10_000.0,
        "arrivals": "periodic",
    }
    assert flow(stop_ns=SECOND, host=host).generated == pytest.approx(1000, abs=2)


def test_the_drive_takes_no_more_commands_than_its_queue_fetches() -> None:
    shallow = run(drive(**FAST, queue_fetch_size=1), {**READS, "queue_depth": 16}).flows[0]
    one = flow()
    assert shallow.iops == pytest.approx(one.iops, rel=0.05)
    assert shallow.drt_ns == pytest.approx(16 * one.drt_ns, rel=0.05)


def test_sata_adds_its_delay_twice_and_has_32_tags() -> None:
    slow = drive(**FAST, host_interface="sata", sata_processing_delay_ns=100 * US)
    assert run(slow, READS).flows[0].drt_ns == pytest.approx(flow().drt_ns + 200 * US, rel=0.01)
    deep = run(slow, {**READS, "queue_depth": 64, "stop_ns": SECOND}).flows[0]
    assert deep.iops * 100 * US / 1e9 < 33


def test_the_same_input_gives_the_same_result() -> None:
    mixed = {**WRITES, "read_percent": 60, "queue_depth": 9, "host": {"trim_percent": 5}}
    one, two = (run(drive(), mixed) for _ in range(2))
    assert one.device == two.device
    assert one.flows == two.flows
    assert one.events == two.events
    assert run(drive(), {**mixed, "seed": 2}).flows != one.flows


def test_the_time_series_adds_up() -> None:
    result = run(drive(), {**WRITES, "read_percent": 50}, series_step_ns=MS)
    series, whole = result.flows[0].series, result.flows[0]
    assert series is not None
    assert sum(series.serviced_read) + sum(series.serviced_write) == whole.serviced
    assert sum(series.bytes_read) == whole.bytes_read
    assert sum(series.bytes_written) == whole.bytes_written


def test_a_trace_comes_when_it_says_and_as_often_as_asked(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_text("1000 0 0 16 1\n2000000 0 16 16 0\n5000000 0 32 8 1\n", encoding="utf-8")
    trace = {"kind": "trace", "trace_path": str(path), "trace_replays": 2}
    result = run(drive(), trace).flows[0]
    assert result.generated_read == 4
    assert result.generated_write == 2
    assert result.first_arrival_ns == 1000
    assert result.flow_last_completion_ns == pytest.approx(10 * MS, rel=0.02)


def test_a_run_ends_before_its_clock_begins_anew() -> None:
    """After 213 days, as resources keep picoseconds in 64 bits."""
    host = {"burst_requests": 1, "burst_gap_ns": 40 * 86_400 * SECOND}
    few = {**READS, "stop_ns": 0, "total_requests": 2, "queue_depth": 1, "host": host}
    assert run(drive(), few).flows[0].serviced == 2
    with pytest.raises(LimitError, match="simulated time"):
        run(drive(), {**few, "total_requests": 9})
