"""The core's one entry from Python: what goes in and out, limits, threads, interruption."""

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from iojoule.sim import _core
from iojoule.sim.errors import CancelledError, ConfigError, LimitError, TraceError
from tests.errors import having

FOREVER = {"stop_ns": 10**18}
COUNTS = ("serviced", "serviced_read", "serviced_write", "bytes_read", "bytes_written")


def limits(**fields: object) -> _core.Limits:
    made = _core.Limits()
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def numbers(result: _core.RunResult) -> list[object]:
    """Enough of a result to tell two runs apart."""
    device = [result.device.sim_end_ns, result.device.events, *result.device.chip_exec_ns]
    flows = [
        value
        for flow in result.flows
        for value in (*(getattr(flow, name) for name in COUNTS), flow.device.mean_ns)
    ]
    return device + flows


def test_a_run_gives_what_was_asked_for(drive, flow) -> None:
    result = _core.simulate(drive(), [flow(), flow(read_percent=0, seed=9)], limits())
    reads, writes = result.flows
    for one in result.flows:
        assert one.generated == one.serviced == one.device.count == one.end_to_end.count > 0
        assert one.device.min_ns <= one.device.p50_ns <= one.device.p99_ns <= one.device.max_ns
        assert one.last_completion_ns <= result.device.sim_end_ns
    assert reads.bytes_read == 4096 * reads.serviced_read == 4096 * reads.serviced
    assert writes.bytes_written == 4096 * writes.serviced_write == 4096 * writes.serviced


def test_a_run_repeats_itself_in_any_thread(drive, flow) -> None:
    def run() -> list[object]:
        flows = [flow(read_percent=70), flow(seed=5, address_distribution="random_hotcold")]
        return numbers(_core.simulate(drive(), flows, limits()))

    first = run()
    with ThreadPoolExecutor(4) as pool:
        others = [pool.submit(run) for _ in range(8)]
    assert all(other.result() == first for other in others)


def test_the_series_adds_up_to_the_totals(drive, flow) -> None:
    result = _core.simulate(drive(), [flow(read_percent=60)], limits(), series_step_ns=700_000)
    (one,) = result.flows
    assert result.series_step_ns == 700_000
    for name in COUNTS[1:]:
        assert one.series[name].sum() == getattr(one, name)
    assert one.series["latency_max_ns"].max() == one.device.max_ns
    assert len(one.series["bytes_read"]) == result.device.sim_end_ns // 700_000 + 1


def test_no_series_unless_asked(drive, flow) -> None:
    result = _core.simulate(drive(), [flow()], limits())
    assert all(len(column) == 0 for column in result.flows[0].series.values())


def test_a_series_of_endless_length_is_refused(drive, flow) -> None:
    with pytest.raises(ConfigError, check=having(field="series_step_ns")) as caught:
        _core.simulate(drive(), [flow()], limits(), series_step_ns=1)
    assert caught.value.field == "series_step_ns"


def test_parts_of_a_result_outlive_it(drive, flow) -> None:
    def parts() -> tuple[object, ...]:
        result = _core.simulate(drive(), [flow()], limits(), series_step_ns=10**6)
        (one,) = result.flows
        return one.device, one.series["serviced_read"], result.device.chip_exec_ns

    latency, reads, busy = parts()
    for _ in range(3):
        _core.simulate(drive(), [flow()], limits())
    assert latency.count == reads.sum() > 0
    assert any(busy)


def test_the_inputs_may_change_during_a_run(drive, flow) -> None:
    device, one = drive(), flow()
    undisturbed = numbers(_core.simulate(device, [one], limits()))

    def disturb(_: float) -> None:
        device.channels = 1000
        one.channel_ids = [77]

    assert numbers(_core.simulate(device, [one], limits(), progress=disturb)) == undisturbed


@pytest.mark.parametrize(
    ("limit", "value", "said"),
    [
        ("events", 1000, "more than its limit of 1000 events"),
        ("simulated_ns", 1_000_000, "past its limit of 1000000 ns of simulated time"),
        ("wall_seconds", 0.01, "longer than its limit of 0.01"),
        ("memory_bytes", 10_000, "more than the limit of 10000"),
    ],
)
def test_a_run_ends_at_its_limit(drive, flow, limit: str, value: float, said: str) -> None:
    with pytest.raises(LimitError, match=said) as caught:
        _core.simulate(drive(), [flow(**FOREVER)], limits(**{limit: value}))
    assert caught.value.limit == limit


def test_progress_is_the_share_of_simulated_time(drive, flow) -> None:
    seen: list[float] = []

    def note(done: float) -> None:
        seen.append(done)
        if len(seen) == 3:
            raise StopIteration

    with pytest.raises(StopIteration):
        _core.simulate(drive(), [flow(**FOREVER)], limits(), progress=note)
    assert seen == sorted(seen)
    assert all(0 <= done < 1 for done in seen)


def test_another_thread_cancels_all_runs_of_a_control(drive, flow) -> None:
    # Only because the runs let other threads go on does this one come to cancel them.
    control = _core.Control()
    running = threading.Barrier(3)

    def run() -> None:
        first = iter([running.wait])
        _core.simulate(
            drive(), [flow(**FOREVER)], limits(), control, lambda _: next(first, lambda: None)()
        )

    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(run) for _ in range(2)]
        running.wait()
        control.cancel()
    assert control.cancelled
    assert all(isinstance(each.exception(), CancelledError) for each in runs)
    with pytest.raises(CancelledError):
        _core.simulate(drive(), [flow()], limits(), control)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """A process that was started in the background ignores interrupts unless it asks for them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_a_run(drive, flow) -> None:
    asked = iter([True])

    def interrupt(_: float) -> None:
        if next(asked, False):
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        _core.simulate(drive(), [flow(**FOREVER)], limits(), progress=interrupt)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_a_run_that_nobody_watches(drive, flow) -> None:
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        _core.simulate(drive(), [flow(**FOREVER)], limits())
    timer.join()


def test_a_trace_that_cannot_be_read_ends_the_run(drive, flow, tmp_path) -> None:
    path = tmp_path / "t"
    path.write_text("0 0 0 8 1\n7 0 0 8\n")
    with pytest.raises(TraceError, match="4 columns") as caught:
        _core.simulate(drive(), [flow(kind="trace", trace_path=str(path))], limits())
    assert (caught.value.path, caught.value.line) == (str(path), 2)


def test_an_unknown_word_is_refused_with_the_known_ones(drive, flow) -> None:
    with pytest.raises(ConfigError, match="'lru'; one of greedy rga random") as caught:
        drive(gc_policy="lru")
    assert caught.value.field == "gc_policy"
    with pytest.raises(ConfigError, match="one of synthetic trace"):
        flow(kind="Trace")


def test_every_choice_is_taken_and_told(drive, flow) -> None:
    words = _core.choices()
    for owner in (drive(), flow(), drive().physical.nand, flow().host):
        for name in words.keys() & set(dir(owner)):
            for word in words[name]:
                setattr(owner, name, word)
                assert getattr(owner, name) == word


@pytest.mark.parametrize("mode", ["compat"], indirect=True)
def test_queues_hold_what_the_chips_took(drive, flow) -> None:
    flows = [flow(read_percent=60, queue_depth=32, seed=5), flow(caching="turned_off")]
    result = _core.simulate(
        drive(scheduler="priority_out_of_order"), flows, limits(), with_queues=True
    )
    device = result.device
    assert len(device.queues) == 4 * (2 * 4 + 5)
    pages = device.pages_read.total + device.pages_programmed.total + device.blocks_erased.total
    assert sum(queue.dequeued for queue in device.queues) == pages
    assert max(queue.max_length for queue in device.queues) > 1
    for queue in device.queues:
        if queue.enqueued != queue.dequeued:
            continue  # programs of mapping pages never leave
        # Little's law holds exactly for a queue that ends empty
        waited_ns = queue.mean_waiting_ns * queue.dequeued
        assert queue.mean_length * device.sim_end_ns == pytest.approx(waited_ns)
        assert queue.mean_waiting_ns <= queue.max_waiting_ns
        assert queue.mean_length <= queue.max_length
        if queue.max_length == 1:  # (0 - mean)^2 + (mean - mean)^2
            assert queue.sd_length == pytest.approx(queue.mean_length)


def test_queues_change_nothing_and_are_not_there_unless_asked(drive, flow) -> None:
    asked = _core.simulate(drive(), [flow(read_percent=60)], limits(), with_queues=True)
    not_asked = _core.simulate(drive(), [flow(read_percent=60)], limits())
    assert numbers(asked) == numbers(not_asked)
    assert not_asked.device.queues == []


def test_memory_is_that_of_the_tables(drive, flow) -> None:
    def held(blocks: int, **fields: object) -> int:
        large = drive(blocks_per_plane=blocks)
        return _core.simulate(large, [flow(**fields)], limits()).device.memory_bytes

    assert held(32) == held(32) > 10_000
    assert held(1 << 14) > held(32)


@pytest.mark.parametrize("mode", ["compat"], indirect=True)
def test_memory_is_of_what_a_run_touches(drive, flow) -> None:
    def held(**fields: object) -> int:
        large = drive(blocks_per_plane=1 << 14, pages_per_block=256)  # 16 Mi pages
        return _core.simulate(large, [flow(**fields)], limits()).device.memory_bytes

    few, many = held(stop_ns=1_000_000), held(stop_ns=100_000_000)
    assert 10_000 < few < many < 16 << 20
