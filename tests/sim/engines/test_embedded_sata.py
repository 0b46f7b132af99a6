"""SATA as MQSim has it, against recorded runs and what their parts take."""

from pathlib import Path

import numpy as np
import pytest

from iojoule.sim import _core
from iojoule.sim.device import DeviceConfig, HostInterface
from iojoule.sim.engines import RunOptions
from iojoule.sim.engines.embedded import EmbeddedEngine
from iojoule.sim.findings import RefusedError
from iojoule.sim.known_defects import findings
from iojoule.sim.result import ScenarioResult
from iojoule.sim.workload import CachingMode, FlowConfig, FlowKind, Scenario
from tests.sim.recordings import FOLDER, ONE_CHIP, READS, RUNS, SATA_QUEUE, TRACE

SATA = ONE_CHIP.model_copy(update={"host_interface": HostInterface.SATA})


def run(
    device: DeviceConfig, *flows: FlowConfig, options: RunOptions | None = None
) -> ScenarioResult:
    return EmbeddedEngine().run(device, Scenario(flows=flows), options)


@pytest.mark.parametrize("name", ["sata", "sata_deep", "sata_flows"])
def test_every_completion_is_where_mqsim_has_it(name: str) -> None:
    device, scenario = RUNS[name]
    result = run(device, *scenario.flows, options=RunOptions(series_step_ns=1000))
    for number, flow in enumerate(result.flows):
        path = Path(FOLDER / name / f"workload.IO_Flow.No_{number}.log")
        logged = np.loadtxt(path, skiprows=1, dtype=int)[:, 0]
        assert flow.series is not None
        done = np.add(flow.series.serviced_read, flow.series.serviced_write)
        assert np.repeat(np.arange(len(done)), done).tolist() == logged.tolist()


def test_the_host_works_on_one_command_at_a_time_each_way() -> None:
    delay = SATA.sata_processing_delay_ns
    result = run(SATA, READS)
    # doorbell, fetch, entry; command, array (+20 ns), 4 KiB at 3 ns a byte; data, completion
    of_drive = sum((8, 8, 25, 290, 75_020, 12_288, 1_248, 11))
    device, whole = result.flows[0].device_latency.all, result.flows[0].end_to_end_latency.all
    # from the doorbell to the end of the host's work on the completion, without queueing
    assert device.min_ns == device.max_ns == of_drive + delay
    # the third of the three that are asked for at first waits for the two before it
    assert whole.min_ns == of_drive + 2 * delay
    assert whole.max_ns == of_drive + 4 * delay
    # the doorbell of the last completion
    assert result.flows[0].sim_end_ns == 1 + 25 * delay + of_drive + 8


def test_the_depth_is_that_of_the_queue_and_nothing_limits_fetching() -> None:
    deep = SATA.model_copy(update={"sata_processing_delay_ns": 100, "queue_fetch_size": 1})
    flow = READS.model_copy(update={"queue_depth": 40, "total_requests": 40})
    assert (
        run(deep, flow).device
        == run(deep.model_copy(update={"queue_fetch_size": 512}), flow).device
    )
    narrow = run(deep.model_copy(update={"io_queue_depth": 2}), flow)
    wide = run(deep, flow)
    assert narrow.flows[0].drt_ns < wide.flows[0].drt_ns
    assert narrow.flows[0].e2e_ns > wide.flows[0].e2e_ns


def test_one_stream_has_the_whole_drive_whatever_its_flows_list() -> None:
    everywhere = SATA_QUEUE.model_copy(update={"mapping_ideal": True})
    some = READS.model_copy(update={"channel_ids": (1,)})
    listed, whole = run(everywhere, some), run(everywhere, READS)
    assert listed.device == whole.device
    assert any("sata_one_stream" in warning for warning in listed.warnings)
    assert not any("sata_one_stream" in warning for warning in whole.warnings)


def test_what_a_flow_says_in_vain_is_named() -> None:
    other = READS.model_copy(
        update={"caching": CachingMode.TURNED_OFF, "plane_ids": (0,), "priority": "low"}
    )
    found = findings(SATA_QUEUE, (READS, other))
    fields = {each.field for each in found if each.name == "sata_one_stream"}
    assert fields == {f"flows[1].{field}" for field in ("caching", "plane_ids", "priority")}


def test_a_trace_and_more_than_eight_flows_run() -> None:
    trace = FlowConfig(kind=FlowKind.TRACE, trace_path=str(TRACE))
    result = run(SATA_QUEUE, trace, *[READS] * 9)
    assert [flow.serviced for flow in result.flows] == [6] + [24] * 9
    assert result.flows[0].read_transactions is not None
    assert result.flows[1].read_transactions is None, "one stream, told once"


def test_preconditioning_takes_one_flow() -> None:
    worn = SATA.model_copy(
        update={"preconditioning": True, "blocks_per_plane": 256, "pages_per_block": 64}
    )
    half = READS.model_copy(update={"initial_occupancy_percent": 50})
    assert run(worn, half).flows[0].serviced == 24
    with pytest.raises(RefusedError, match="more than one flow"):
        run(worn, half, half)
    native = _core.DeviceConfig()
    native.host_interface = "sata"
    native.gc_preemptible = False
    flow = _core.FlowConfig()
    for name in ("channel_ids", "chip_ids", "die_ids", "plane_ids"):
        setattr(flow, name, [0])
    flow.total_requests = 1
    with pytest.raises(Exception, match="crashes MQSim"):
        _core.simulate(native, [flow, flow], _core.Limits())
