"""Energy is counts times joules plus time times watts, and its parts add up."""

import json
import math
from typing import Any

import pytest

from iojoule.sim.errors import ConfigError
from iojoule.sim.result import ScenarioResult
from tests.sim.physical.drives import MS, READS, SECOND, WRITES, drive, run

ENERGY: dict[str, Any] = {
    "page_read_joules": (10e-6, 12e-6, 14e-6),
    "page_program_joules": (40e-6, 50e-6, 60e-6),
    "block_erase_joules": 150e-6,
    "array_read_watts": 0.04,
    "array_program_watts": 0.05,
    "array_erase_watts": 0.03,
    "channel_joules_per_byte": 50e-12,
    "dram_joules_per_byte": 80e-12,
    "dram_refresh_watts": 0.06,
    "controller_idle_watts": 0.7,
    "controller_active_watts": 1.9,
    "controller_joules_per_command": 2e-6,
    "controller_joules_per_byte": 100e-12,
    "link_idle_watts": 0.1,
    "link_active_watts": 0.4,
    "link_joules_per_byte": 60e-12,
}


def energies(result: ScenarioResult) -> dict[str, float]:
    """Joules by component, without the unit in the name."""
    assert result.device.energy_joules is not None
    return {name.removesuffix("_joules"): j for name, j in result.device.energy_joules.items()}


def test_reads_cost_counts_times_joules_plus_time_times_watts() -> None:
    result = run(drive(physical={"energy": ENERGY}), {**READS, "queue_depth": 3})
    joules, flow = energies(result), result.flows[0]
    seconds = flow.sim_end_ns / 1e9
    count = flow.serviced
    moved = count * (8192 + 448)
    up = count * (8192 + 64 * 28 + 16 + 28)
    down = count * (64 + 28)
    # the drive is never idle: three requests are under way until the last
    assert joules["array_read"] == pytest.approx(count * (10e-6 + 0.04 * 75e-6), rel=1e-9)
    assert joules["channel"] == pytest.approx(moved * 50e-12, rel=1e-9)
    assert joules["link"] == pytest.approx((up + down) * 60e-12 + 0.4 * seconds, rel=1e-4)
    assert joules["dram"] == pytest.approx(0.06 * seconds, rel=1e-9)
    assert joules["controller"] == pytest.approx(
        count * (2e-6 + 8192 * 100e-12) + 1.9 * seconds, rel=1e-4
    )
    assert joules["array_program"] == joules["array_erase"] == 0


def test_writes_and_collection_cost_counts_times_joules() -> None:
    device = drive(
        flash_technology="tlc",
        preconditioning=True,
        suspension="program_erase",
        page_program_ns=(300_000, 500_000, 700_000),
        pages_per_block=48,
        physical={
            "energy": {**ENERGY, "array_program_watts": 0.0},
            "nand": {"cache_register": True},
        },
    )
    flow = {**WRITES, "read_percent": 30, "queue_depth": 16, "initial_occupancy_percent": 100}
    result = run(device, {**flow, "stop_ns": SECOND})
    joules, counts = energies(result), result.device
    assert counts.blocks_erased > 50
    assert counts.physical is not None
    assert counts.physical.program_suspends > 10
    erase_seconds = counts.blocks_erased * 3.8e-3
    assert joules["array_erase"] == pytest.approx(
        counts.blocks_erased * 150e-6 + 0.03 * erase_seconds, rel=1e-6
    )
    # a third of the pages is of each kind
    assert joules["array_program"] == pytest.approx(counts.pages_programmed * 50e-6, rel=0.01)
    assert joules["array_read"] == pytest.approx(
        counts.pages_read * (12e-6 + 0.04 * 75e-6), rel=0.02
    )


def test_parts_add_up_to_the_total_and_to_the_series() -> None:
    device = drive(physical={"energy": {**ENERGY, "power_step_ns": 100_000}})
    flow = {**WRITES, "read_percent": 50, "queue_depth": 8, "stop_ns": 50 * MS}
    result = run(device, flow)
    total = sum(energies(result).values())
    assert result.device.energy_joules_total == pytest.approx(total, rel=1e-12)
    seconds = result.flows[0].sim_end_ns / 1e9
    assert result.device.power_watts_mean == pytest.approx(total / seconds, rel=1e-9)
    physical = result.device.physical
    assert physical is not None
    assert physical.power_watts is not None
    steps = len(physical.power_watts)
    last_ns = result.flows[0].sim_end_ns - (steps - 1) * 100_000
    lengths = [100_000] * (steps - 1) + [last_ns]
    series = sum(w * ns for w, ns in zip(physical.power_watts, lengths, strict=True)) / 1e9
    assert series == pytest.approx(total, rel=1e-6)


def test_what_outlasts_the_run_counts_in_the_last_step_of_the_series() -> None:
    """Programmed pages that a slow memory still hands over when all else is done."""
    step_ns = 1000
    device = drive(
        dram_megatransfers_per_second=50,
        physical={"energy": {**ENERGY, "dram_joules_per_byte": 1e-9, "power_step_ns": step_ns}},
    )
    result = run(device, {**WRITES, "stop_ns": 0, "total_requests": 20, "queue_depth": 4})
    physical, end_ns = result.device.physical, result.flows[0].sim_end_ns
    assert physical is not None
    assert physical.power_watts is not None
    assert len(physical.power_watts) == math.ceil(end_ns / step_ns)
    lengths = [min(step_ns, end_ns - at) for at in range(0, end_ns, step_ns)]
    series = sum(w * ns for w, ns in zip(physical.power_watts, lengths, strict=True)) / 1e9
    assert series == pytest.approx(sum(energies(result).values()), rel=1e-9)


def test_a_burst_of_a_millisecond_shows_in_the_series() -> None:
    device = drive(physical={"energy": {**ENERGY, "power_step_ns": 1 * MS}})
    burst = {"burst_requests": 40, "burst_gap_ns": 20 * MS}
    result = run(device, {**READS, "queue_depth": 8, "host": burst})
    assert result.device.physical is not None
    watts = result.device.physical.power_watts
    assert watts is not None
    idle = 0.06 + 0.7 + 0.1
    assert min(watts) == pytest.approx(idle, rel=1e-6)
    assert max(watts) > 2.5 * idle
    quiet = sum(1 for each in watts if each < 1.01 * idle)
    assert quiet > 0.85 * len(watts)


def test_energy_of_a_request_does_not_depend_on_how_long_the_run_is() -> None:
    """Net of idle: what one more read costs."""
    device = drive(physical={"energy": {**ENERGY, "controller_active_watts": 0.7}})
    each = []
    for stop_ns in (50 * MS, 400 * MS):
        result = run(device, {**READS, "stop_ns": stop_ns})
        assert result.device.energy_joules_total is not None
        idle = (0.06 + 0.7 + 0.4) * result.flows[0].sim_end_ns / 1e9
        each.append((result.device.energy_joules_total - idle) / result.flows[0].serviced)
    assert each[0] == pytest.approx(each[1], rel=1e-3)


def test_statistics_and_energy_begin_after_the_warm_up() -> None:
    flow = {**READS, "queue_depth": 4, "stop_ns": 200 * MS}
    whole = run(drive(physical={"energy": ENERGY}), flow)
    half = run(drive(physical={"energy": ENERGY, "warmup_ns": 100 * MS}), flow)
    assert half.flows[0].measured_from_ns == 100 * MS
    assert half.flows[0].serviced == pytest.approx(whole.flows[0].serviced / 2, rel=0.01)
    assert half.flows[0].iops == pytest.approx(whole.flows[0].iops, rel=0.01)
    assert half.device.energy_joules_total == pytest.approx(
        sum(energies(whole).values()) / 2, rel=0.01
    )
    assert half.device.power_watts_mean == pytest.approx(whole.device.power_watts_mean, rel=0.01)


def test_a_run_that_ends_before_its_warm_up_is_refused() -> None:
    with pytest.raises(ConfigError) as refused:
        run(drive(physical={"warmup_ns": SECOND}), READS)
    assert refused.value.field == "physical.warmup_ns"


def test_a_drive_is_active_until_its_last_program_is_done() -> None:
    """Also where a part of a page is programmed because nothing else will come."""
    options = {"nand": {"mapping_unit_bytes": 4096}, "energy": {"link_active_watts": 1.0}}
    write = {**WRITES, "size_mean_sectors": 8, "alignment_sectors": 8, "stop_ns": 0}
    done = run(drive(physical=options), {**write, "total_requests": 1})
    busy_ns = max(done.device.die_busy_ns)
    assert busy_ns > 700_000
    assert energies(done)["link"] >= 1e-9 * busy_ns


def test_metered_joules_do_not_change_what_the_drive_does() -> None:
    flow = {**WRITES, "read_percent": 50, "queue_depth": 8}
    with_energy = run(drive(physical={"energy": ENERGY}), flow)
    without = run(drive(), flow)
    assert with_energy.flows[0].device_latency == without.flows[0].device_latency


def work(result: ScenarioResult) -> dict[tuple[str, str, str], tuple[int, float | None]]:
    """Count and joules of what the arrays did, by operation, page and origin."""
    assert result.device.physical is not None
    return {
        (each.operation, each.page, each.origin): (each.count, each.joules)
        for each in result.device.physical.flash_work
    }


COLLECTING: dict[str, Any] = {
    "flash_technology": "tlc",
    "preconditioning": True,
    "page_program_ns": (300_000, 500_000, 700_000),
    "pages_per_block": 48,
}
"""A drive of the tests that has to collect garbage."""


def test_flash_work_is_counts_times_joules_by_page_and_origin() -> None:
    energy = {**ENERGY, "array_read_watts": 0.0, "array_program_watts": 0.0}
    energy["array_erase_watts"] = 0.0
    device = drive(**COLLECTING, physical={"energy": energy})
    flow = {**WRITES, "read_percent": 30, "queue_depth": 16, "initial_occupancy_percent": 100}
    result = run(device, {**flow, "stop_ns": SECOND})
    told, counts = work(result), result.device
    pages = ("lsb", "csb", "msb")
    for page, read, program in zip(
        pages, energy["page_read_joules"], energy["page_program_joules"], strict=True
    ):
        for origin in ("user", "gc"):
            for operation, each in (("read", read), ("program", program)):
                count, joules = told[operation, page, origin]
                assert count > 100
                assert joules == pytest.approx(count * each, rel=1e-9)
    assert told["erase", "lsb", "gc"][0] == counts.blocks_erased
    for operation, by_origin in (
        ("read", counts.pages_read_by_origin),
        ("program", counts.pages_programmed_by_origin),
    ):
        for origin in ("user", "gc"):
            count = sum(told[operation, page, origin][0] for page in pages)
            assert count == getattr(by_origin, origin)
    for operation in ("read", "program", "erase"):
        own = [joules for (name, _, _), (_, joules) in told.items() if name == operation]
        assert sum(each or 0.0 for each in own) == pytest.approx(
            energies(result)[f"array_{operation}"], rel=1e-6
        )


def test_pages_of_the_pseudo_slc_cache_have_their_own_joules() -> None:
    slc = {"slc_page_program_joules": 20e-6, "array_program_watts": 0.0}
    device = drive(
        flash_technology="tlc",
        pages_per_block=48,
        physical={"energy": {**ENERGY, **slc}, "slc": {"static_blocks_per_plane": 8}},
    )
    count, joules = work(run(device, WRITES))["program", "slc", "user"]
    assert count > 100
    assert joules == pytest.approx(count * 20e-6, rel=1e-9)


def test_what_time_alone_takes_is_watts_times_seconds() -> None:
    result = run(drive(physical={"energy": ENERGY}), {**READS, "queue_depth": 3})
    assert result.device.physical is not None
    seconds = result.flows[0].sim_end_ns / 1e9
    assert result.device.physical.static_joules == {
        "controller": pytest.approx(1.9 * seconds, rel=1e-4),
        "dram": pytest.approx(0.06 * seconds, rel=1e-9),
        "link": pytest.approx(0.4 * seconds, rel=1e-4),
    }


COMPONENTS = {
    "array_read": ("page_read_joules", "array_read_watts"),
    "array_program": ("page_program_joules", "array_program_watts"),
    "array_erase": ("block_erase_joules", "array_erase_watts"),
    "channel": ("channel_joules_per_byte",),
    "dram": ("dram_joules_per_byte", "dram_refresh_watts"),
    "controller": (
        "controller_idle_watts",
        "controller_active_watts",
        "controller_joules_per_command",
        "controller_joules_per_byte",
    ),
    "link": ("link_idle_watts", "link_active_watts", "link_joules_per_byte"),
}


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_component_nobody_knows_is_left_out_and_named(component: str) -> None:
    energy = {name: each for name, each in ENERGY.items() if name not in COMPONENTS[component]}
    whole = run(drive(physical={"energy": ENERGY}), {**WRITES, "read_percent": 50})
    result = run(drive(physical={"energy": energy}), {**WRITES, "read_percent": 50})
    assert component not in energies(result)
    assert result.device.energy_unknown is not None
    assert set(result.device.energy_unknown) == {component}
    assert COMPONENTS[component][0] in result.device.energy_unknown[component]
    rest = {name: each for name, each in energies(whole).items() if name != component}
    assert energies(result) == pytest.approx(rest)
    assert result.device.energy_joules_total == pytest.approx(sum(rest.values()))


def test_a_drive_without_energy_says_unknown_and_never_0_joules() -> None:
    result = run(drive(physical={"energy": {"power_step_ns": MS}}), {**WRITES, "read_percent": 50})
    device = result.device
    assert device.energy_joules is None
    assert device.energy_joules_total is None
    assert device.power_watts_mean is None
    assert device.energy_unknown is not None
    assert set(device.energy_unknown) == set(COMPONENTS)
    assert device.physical is not None
    assert device.physical.power_watts is None
    assert device.physical.static_joules is None
    assert [each.joules for each in device.physical.flash_work if each.joules is not None] == []
    told = json.loads(result.model_dump_json())["device"]
    assert "energy_joules" not in told
    assert "power_watts_mean" not in told


def test_pages_of_an_unknown_kind_make_their_component_unknown() -> None:
    """Joules of native pages alone would be too few where the pseudo-SLC cache is programmed."""
    energy = {name: each for name, each in ENERGY.items() if name != "array_program_watts"}
    device = drive(
        flash_technology="tlc",
        pages_per_block=48,
        physical={"energy": energy, "slc": {"static_blocks_per_plane": 8}},
    )
    result = run(device, WRITES)
    assert result.device.energy_unknown is not None
    assert "slc_page_program_joules" in result.device.energy_unknown["array_program"]


def test_nothing_is_known_to_cost_nothing_where_that_is_said() -> None:
    result = run(drive(physical={"energy": {**ENERGY, "channel_joules_per_byte": 0.0}}), READS)
    assert energies(result)["channel"] == 0.0
    assert result.device.energy_unknown is None
