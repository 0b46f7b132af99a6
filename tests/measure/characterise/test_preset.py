import pytest

from iojoule.measure.characterise.preset import preset_text
from iojoule.sim.engines import RunOptions, engine
from iojoule.sim.formats.toml import Drive, parse_toml, read_drive_toml
from iojoule.sim.presets import preset_names
from iojoule.sim.workload import FlowConfig, Generator, Scenario
from tests.measure.characterise.found import MEBIBYTE, characteristics


def read(text: str) -> Drive:
    return read_drive_toml(parse_toml(text.encode(), "preset.toml"), "preset.toml", print)


def test_what_was_found_is_measured_and_the_rest_is_assumed() -> None:
    drive = read(preset_text(characteristics()))
    physical = drive.device.physical
    assert drive.title == "made-up drive"
    assert physical.nand.mapping_unit_bytes == 4096
    assert physical.controller.max_transfer_bytes == 131072
    assert physical.slc.fold_idle_ns == 10**9
    assert [state.idle_power_watts for state in physical.power.states] == [1.6, 1.45, 0.4]
    assert physical.power.states[2].exit_latency_ns == 30_000_000
    assert physical.power.states[1].exit_latency_ns == 1_000_000  # declared: no wake was seen
    for name in ("physical.nand.mapping_unit_bytes", "physical.slc.fold_idle_ns"):
        assert drive.sources[name].startswith("measured")
    assert drive.sources["channel_megatransfers_per_second"].startswith(
        "assumed: carried from samsung-980-pro-1tb"
    )
    assert all(said.startswith(("measured", "assumed")) for said in drive.sources.values())


@pytest.mark.parametrize("base", preset_names())
@pytest.mark.parametrize("capacity", [576 * MEBIBYTE, 10**12])
def test_the_drive_has_the_capacity_and_the_cache(base: str, capacity: int) -> None:
    device = read(preset_text(characteristics(capacity), base)).device
    planes = (
        device.channels * device.chips_per_channel * device.dies_per_chip * device.planes_per_die
    )
    raw = planes * device.blocks_per_plane * device.pages_per_block * device.page_bytes
    assert raw * (1 - device.overprovisioning_ratio) == pytest.approx(capacity, rel=0.02)
    assert device.physical.slc.static_blocks_per_plane >= 1


def test_the_simulator_runs_it_and_it_draws_its_idle_power() -> None:
    device = read(preset_text(characteristics())).device
    flow = FlowConfig(
        read_percent=100,
        generator=Generator.QUEUE_DEPTH,
        size_mean_sectors=8,
        alignment_sectors=8,
        queue_depth=1,
        stop_ns=10**6,
    )
    tail = device.physical.model_copy(update={"idle_tail_ns": 10**10})
    result = engine("embedded").run(
        device.model_copy(update={"physical": tail}), Scenario(flows=(flow,)), RunOptions()
    )
    assert result.device.energy_joules_total == pytest.approx(16.0, rel=0.01)
