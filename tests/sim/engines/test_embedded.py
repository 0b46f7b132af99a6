import threading

import numpy as np
import pytest

from iojoule.sim.device import DeviceConfig
from iojoule.sim.engines import Limits, RunOptions, engine
from iojoule.sim.engines.embedded import EmbeddedEngine, native
from iojoule.sim.errors import CancelledError, LimitError
from iojoule.sim.findings import RefusedError
from iojoule.sim.result import EngineName, Mode
from iojoule.sim.workload import FlowConfig, Scenario, SizeDistribution

DEVICE = DeviceConfig(preconditioning=False, gc_preemptible=False, mapping_ideal=True)
SHORT = Scenario(flows=(FlowConfig(stop_ns=1_000_000),))
LONG = Scenario(flows=(FlowConfig(stop_ns=10**15),))


def test_the_engine_is_found_by_its_name() -> None:
    assert isinstance(engine(EngineName.EMBEDDED), EmbeddedEngine)


def test_one_read_at_a_time_takes_what_its_parts_take() -> None:
    # doorbell, fetch, entry; command, array (+20 ns), 4 KiB at 3 ns a byte; data, completion
    parts = (8, 8, 25, 290, 75_020, 12_288, 1_248, 11)
    device = DEVICE.model_copy(update={"link_lane_gigabytes_per_second": 1.0})
    result = EmbeddedEngine().run(device, SHORT)
    latency = result.flows[0].device_latency.all
    assert latency.min_ns == sum(parts)
    # from the second on the doorbell of the last completion goes first
    assert latency.p50_ns == latency.max_ns == 8 + sum(parts)
    assert latency.count == result.flows[0].serviced == result.device.pages_read == 12


def test_every_field_reaches_the_core() -> None:
    device = DeviceConfig(mode=Mode.PHYSICAL, page_read_ns=(1, 2, 3), seed=7)
    made = native(device)
    assert (made.mode, made.page_read_ns, made.seed) == ("physical", [1, 2, 3], 7)
    flow = native(FlowConfig(stop_ns=5, channel_ids=(2, 1)))
    assert (flow.kind, flow.channel_ids, flow.stop_ns) == ("synthetic", [1, 2], 5)


def test_the_same_input_gives_the_same_result() -> None:
    one, two = (EmbeddedEngine().run(DEVICE, SHORT) for _ in range(2))
    assert (one.flows, one.device, one.events) == (two.flows, two.device, two.events)


def test_scenarios_of_one_file_have_seeds_of_their_own() -> None:
    third = EmbeddedEngine().run(DEVICE, SHORT, RunOptions(scenario_number=2))
    seeded = EmbeddedEngine().run(DEVICE.model_copy(update={"seed": DEVICE.seed + 4}), SHORT)
    assert third.device == seeded.device


def test_a_time_series_adds_up() -> None:
    result = EmbeddedEngine().run(DEVICE, SHORT, RunOptions(series_step_ns=100_000))
    flow = result.flows[0]
    assert flow.series is not None
    assert result.series_step_ns == 100_000
    assert sum(flow.series.serviced_read) == flow.serviced
    assert sum(flow.series.bytes_read) == flow.bytes_read


def test_a_trap_is_refused_before_anything_runs() -> None:
    deep = DEVICE.model_copy(update={"io_queue_depth": 65536})
    with pytest.raises(RefusedError) as caught:
        EmbeddedEngine().run(deep, LONG)
    assert caught.value.name == "io_queue_depth_16_bit"


@pytest.mark.parametrize(
    ("limits", "name"),
    [
        (Limits(events=1000), "events"),
        (Limits(simulated_ns=10**6), "simulated_ns"),
        (Limits(wall_seconds=0.05), "wall_seconds"),
        (Limits(memory_bytes=1), "memory_bytes"),
    ],
)
def test_a_run_beyond_its_limit_is_stopped(limits: Limits, name: str) -> None:
    with pytest.raises(LimitError) as caught:
        EmbeddedEngine().run(DEVICE, LONG, RunOptions(limits=limits))
    assert caught.value.limit == name


def test_a_run_can_be_called_off_from_another_thread() -> None:
    off = threading.Event()
    timer = threading.Timer(0.1, off.set)
    timer.start()
    with pytest.raises(CancelledError):
        EmbeddedEngine().run(DEVICE, LONG, RunOptions(cancelled=off.is_set))
    timer.join()


def test_progress_goes_from_nothing_to_all() -> None:
    shares: list[float] = []
    scenario = Scenario(flows=(FlowConfig(stop_ns=3 * 10**9, queue_depth=64),))
    EmbeddedEngine().run(DEVICE, scenario, RunOptions(progress=shares.append))
    assert shares == sorted(shares)
    assert all(0 <= share <= 1 for share in shares)


def test_normal_sizes_are_those_that_mqsim_draws() -> None:
    def sectors(requests: int) -> int:
        flow = FlowConfig(
            total_requests=requests,
            seed=5,
            size_distribution=SizeDistribution.NORMAL,
            size_mean_sectors=1000,
            size_sd_sectors=100,
        )
        return EmbeddedEngine().run(DEVICE, Scenario(flows=(flow,))).flows[0].bytes_read // 512

    totals = [sectors(requests) for requests in range(7)[1:]]
    assert np.diff(totals, prepend=0).tolist() == [1033, 931, 901, 979, 882, 1044]
