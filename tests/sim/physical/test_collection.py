"""Garbage collection and wear levelling: as much is moved as theory says, and nothing is lost."""

import csv
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from iojoule.sim.errors import ConfigError, ModelError
from iojoule.sim.formats.files import read_drive, read_workload
from iojoule.sim.result import Mode, ScenarioResult
from iojoule.sim.verify import as_mqsim_has_it, read_cases
from tests.errors import having
from tests.reference_data import MQSIM_RUNS
from tests.sim.physical.drives import MS, SECOND, WRITES, drive, merged, run

ONE_PLANE: dict[str, Any] = {
    "channels": 1,
    "chips_per_channel": 1,
    "blocks_per_plane": 320,
    "pages_per_block": 1024,
    "overprovisioning_ratio": 0.3,
    "gc_threshold": 0.0125,
    "gc_preemptible": False,
    "preconditioning": True,
    "physical": {"check_consistency": True},
}
"""One plane of 320 large blocks, 4 of them kept free."""
UNCACHED = {
    **WRITES,
    "caching": "turned_off",
    "initial_occupancy_percent": 100,
    "queue_depth": 4,
}


def utilisation(blocks: int = 320, overprovisioning: float = 0.3, kept_free: int = 4) -> float:
    """Valid pages over pages of the blocks that hold data; one block is being filled."""
    return (1 - overprovisioning) * blocks / (blocks - kept_free - 1)


def greedy_write_amplification(load: float) -> float:
    """Of many large blocks under uniform random writes.

    The block with fewest valid pages is then the one written longest ago, and a share v of it is
    still valid: v = exp(-(1 - v) / load), WA = 1 / (1 - v) (Desnoyers, SYSTOR 2012, eq. 8; the
    limit d -> infinity of Van Houdt's mean field, SIGMETRICS 2013).
    """
    valid = 0.5
    for _ in range(1000):
        valid = math.exp(-(1 - valid) / load)
    return 1 / (1 - valid)


def amplification(result: ScenarioResult) -> float:
    assert result.device.write_amplification is not None
    return result.device.write_amplification


@pytest.mark.parametrize("overprovisioning", [0.15, 0.3])
def test_greedy_collection_writes_what_theory_says(overprovisioning: float) -> None:
    device = drive(**{**ONE_PLANE, "overprovisioning_ratio": overprovisioning})
    device = device.model_copy(
        update={"physical": device.physical.model_copy(update={"warmup_ns": 900 * SECOND})}
    )
    result = run(device, {**UNCACHED, "stop_ns": 1300 * SECOND})
    expected = greedy_write_amplification(utilisation(overprovisioning=overprovisioning))
    assert amplification(result) == pytest.approx(expected, rel=0.01)


def test_random_collection_writes_what_theory_says() -> None:
    """Of a random block as much is valid as on average: WA = 1 / (1 - load)."""
    small = {**ONE_PLANE, "pages_per_block": 128, "gc_policy": "random"}
    result = run(drive(**small), {**UNCACHED, "stop_ns": 1000 * SECOND})
    assert amplification(result) == pytest.approx(1 / (1 - utilisation()), rel=0.02)


def test_policies_rank_as_theory_says() -> None:
    """Greedy moves least; among d random blocks the best is nearly as good; random is worst."""
    small = {**ONE_PLANE, "pages_per_block": 128}
    moved = {
        policy: amplification(
            run(drive(**small, gc_policy=policy), {**UNCACHED, "stop_ns": 120 * SECOND})
        )
        for policy in ("greedy", "rga", "fifo", "random_pp", "random_p", "random")
    }
    assert moved["greedy"] < moved["rga"] < 1.1 * moved["greedy"]
    assert moved["greedy"] < moved["fifo"] < moved["random"]
    assert moved["random_pp"] <= 1.02 * moved["random_p"]
    assert moved["random_p"] == pytest.approx(moved["random"], rel=0.05)


def test_hot_data_are_cheaper_to_collect_than_uniform_data() -> None:
    """With moved data apart from written ones and d choices (Van Houdt, SIGMETRICS 2013).

    Greedy does not profit, as there: it waits until even cold blocks have lost as much.
    """
    small = {**ONE_PLANE, "pages_per_block": 128, "gc_policy": "rga"}
    flow = {**UNCACHED, "stop_ns": 200 * SECOND}
    uniform = run(drive(**small), flow)
    skewed = {**flow, "address_distribution": "random_hotcold", "hot_region_percent": 5}
    hot = run(drive(**small), skewed)
    assert amplification(hot) < 0.85 * amplification(uniform)


def test_sequential_overwrites_move_nothing() -> None:
    flow = {**UNCACHED, "address_distribution": "streaming", "stop_ns": 100 * SECOND}
    result = run(drive(**{**ONE_PLANE, "pages_per_block": 64}), flow)
    assert result.device.blocks_erased > 1000
    assert amplification(result) == pytest.approx(1.0, abs=0.01)


def test_trimmed_data_are_not_moved() -> None:
    small = {**ONE_PLANE, "pages_per_block": 128, "overprovisioning_ratio": 0.15}
    flow = {**UNCACHED, "stop_ns": 300 * SECOND}
    kept = run(drive(**small), flow)
    trimmed = run(drive(**small), {**flow, "host": {"trim_percent": 20}})
    assert trimmed.flows[0].serviced_trim is not None
    assert trimmed.flows[0].serviced_trim > 0.18 * trimmed.flows[0].serviced
    assert amplification(trimmed) < 0.7 * amplification(kept)


def test_initial_occupancy_is_exact() -> None:
    """Every written unit is read from flash, every other one is answered with zeros."""
    for percent in (0, 37, 100):
        device = drive(preconditioning=True, physical={"nand": {"unwritten_reads": "zeros"}})
        flow = {
            **WRITES,
            "read_percent": 100,
            "initial_occupancy_percent": percent,
            "address_distribution": "streaming",
            "total_requests": 0,
            "queue_depth": 64,
        }
        units = 4 * 64 * 64 * 3 // 4
        result = run(device, {**flow, "stop_ns": 0, "total_requests": units})
        assert result.device.pages_read == pytest.approx(units * percent // 100, abs=2)


def test_wear_levelling_keeps_erase_counts_together() -> None:
    """A tenth of the data takes nearly all writes; without levelling the rest never moves."""
    spread = {}
    for static in (False, True):
        device = drive(
            **{**ONE_PLANE, "pages_per_block": 16, "blocks_per_plane": 128},
            wear_levelling_static=static,
            wear_levelling_threshold=5,
            page_program_ns=(20_000,) * 3,
            block_erase_ns=100_000,
        )
        flow = {
            **UNCACHED,
            "address_distribution": "random_hotcold",
            "hot_region_percent": 2,
            "stop_ns": 20 * SECOND,
        }
        result = run(device, flow)
        assert result.device.physical is not None
        counts = result.device.physical
        spread[static] = counts.erase_count_max - counts.erase_count_min
        assert (result.device.wl_exec > 0) is static
    assert spread[True] <= 12
    assert spread[True] < spread[False] / 4


def test_worn_blocks_are_retired_until_no_room_is_left() -> None:
    device = drive(**{**ONE_PLANE, "pages_per_block": 16}, pe_cycles_limit=2)
    result = run(device, {**UNCACHED, "stop_ns": 4 * SECOND})
    assert result.device.physical is not None
    assert result.device.physical.blocks_retired > 0
    assert result.device.physical.erase_count_max == 2
    with pytest.raises(ModelError, match="worn out"):
        run(device, {**UNCACHED, "stop_ns": 60 * SECOND})


def test_a_drive_without_room_for_collection_is_refused() -> None:
    with pytest.raises(ConfigError, check=having(field="overprovisioning_ratio")) as caught:
        run(drive(**{**ONE_PLANE, "overprovisioning_ratio": 0.001}), UNCACHED)
    assert caught.value.field == "overprovisioning_ratio"


def test_copyback_keeps_moves_off_the_channel() -> None:
    small = {**ONE_PLANE, "pages_per_block": 64, "channel_megatransfers_per_second": 50}
    flow = {**UNCACHED, "stop_ns": 60 * SECOND}
    through = run(drive(**small), flow).device
    inside = run(drive(**small, gc_copyback=True), flow).device
    assert through.channel_busy_ns is not None
    assert inside.channel_busy_ns is not None
    assert inside.gc_page_moves > 0
    # a page moved through the controller crosses the channel twice
    page_ns = (8192 + 448) / 0.05 * 1000
    moved_ns = through.channel_busy_ns[0] - 2 * through.gc_page_moves * page_ns / 1000
    per_write = moved_ns / through.pages_programmed_by_origin.user
    assert inside.channel_busy_ns[0] == pytest.approx(
        per_write * inside.pages_programmed_by_origin.user, rel=0.02
    )


geometries = st.fixed_dictionaries(
    {
        "channels": st.integers(1, 3),
        "chips_per_channel": st.integers(1, 2),
        "dies_per_chip": st.integers(1, 2),
        "planes_per_die": st.integers(1, 3),
        "blocks_per_plane": st.integers(24, 60),
        "pages_per_block": st.integers(8, 40),
        "overprovisioning_ratio": st.floats(0.4, 0.6),
        "gc_threshold": st.floats(0.0, 0.15),
        "gc_policy": st.sampled_from(["greedy", "rga", "random", "random_p", "random_pp", "fifo"]),
        "gc_preemptible": st.booleans(),
        "mapping_ideal": st.booleans(),
        "cmt_bytes": st.integers(64, 16384),
        "suspension": st.sampled_from(["none", "erase", "program", "program_erase"]),
        "flash_technology": st.sampled_from(["mlc", "tlc"]),
        "wear_levelling_threshold": st.integers(1, 20),
        "physical": st.fixed_dictionaries(
            {
                "check_consistency": st.just(True),
                "nand": st.fixed_dictionaries(
                    {
                        "mapping_unit_bytes": st.sampled_from([0, 2048, 4096]),
                        "write_allocation": st.sampled_from(["striped", "round_robin"]),
                        "multi_plane": st.sampled_from(["none", "same_page", "any_page"]),
                        "cache_register": st.booleans(),
                    }
                ),
                "slc": st.fixed_dictionaries(
                    {
                        "static_blocks_per_plane": st.integers(0, 2),
                        "dynamic_blocks_per_plane": st.integers(0, 6),
                        "when_full": st.sampled_from(["direct", "fold"]),
                        "fold_idle_ns": st.just(MS),
                    }
                ),
            }
        ),
    }
)
loads = st.fixed_dictionaries(
    {
        "read_percent": st.sampled_from([0, 30, 70]),
        "address_distribution": st.sampled_from(["streaming", "random_uniform"]),
        "size_mean_sectors": st.integers(1, 60),
        "alignment_sectors": st.integers(1, 16),
        "caching": st.sampled_from(["turned_off", "write_cache", "read_cache", "write_read_cache"]),
        "initial_occupancy_percent": st.integers(0, 100),
        "working_set_percent": st.integers(20, 100),
        "queue_depth": st.integers(1, 40),
        "host": st.fixed_dictionaries(
            {
                "trim_percent": st.sampled_from([0, 15]),
                "flush_every_writes": st.sampled_from([0, 7]),
                "force_unit_access": st.booleans(),
            }
        ),
    }
)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(geometry=geometries, load=loads, policy_seed=st.integers(0, 1000))
def test_no_request_and_no_data_is_lost(
    geometry: dict[str, Any], load: dict[str, Any], policy_seed: int
) -> None:
    """The drive checks its own tables at the end; `run` that every request was serviced."""
    device = drive(**merged({"preconditioning": True, "seed": policy_seed}, geometry))
    result = run(device, {**load, "stop_ns": 60 * MS})
    flow = result.flows[0]
    assert flow.serviced_read is not None
    assert flow.serviced_write is not None
    assert flow.serviced_trim is not None
    assert flow.generated == flow.serviced_read + flow.serviced_write + flow.serviced_trim


def corrected_cases() -> list[str]:
    """Names of the cases; without the reference runs a single one, which is skipped."""
    if not MQSIM_RUNS.is_dir():
        return ["none"]
    with (MQSIM_RUNS / "golden_gcfix.csv").open(encoding="utf-8", newline="") as file:
        return [row["case"] for row in csv.DictReader(file)]


@pytest.mark.parametrize("name", corrected_cases())
def test_mqsim_with_its_collector_corrected_is_met_within_a_tenth(
    name: str, reference: Path
) -> None:
    """Throughput and mean latency, with what MQSim does switched on (see `as_mqsim_has_it`)."""
    case = next(case for case in read_cases(reference, Mode.PHYSICAL) if case.name == name)
    row = case.rows[0]
    iops, latency_ns = float(row["iops_over_last_completion"]), float(row["drt_ns"])
    device, scenario = as_mqsim_has_it(
        case,
        read_drive(reference / "cases_gcfix" / f"{name}.ssd.xml").device.model_copy(
            update={"mode": Mode.PHYSICAL}
        ),
        read_workload(reference / "cases_gcfix" / f"{name}.wl.xml").scenarios[0],
    )
    result = run(device, scenario.flows[0].model_dump()).flows[0]
    assert result.iops == pytest.approx(iops, rel=0.10)
    assert result.drt_ns == pytest.approx(latency_ns, rel=0.10)
