"""Random drives and flows over what MQSim accepts, by kind: the same seed gives the same inputs.

Each case is small enough for MQSim to end within a second or two.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iojoule.sim.device import PLANE_ALLOCATIONS, DeviceConfig
from iojoule.sim.workload import ID_FIELDS, FlowConfig, Scenario

Fields = dict[str, Any]
WRITE_MODES = ["turned_off", "write_cache"]
ALL_MODES = ["turned_off", "write_cache", "read_cache", "write_read_cache"]
POLICIES = ["greedy", "rga", "random", "random_p", "random_pp", "fifo"]
DISTRIBUTIONS = ["streaming", "random_uniform", "random_hotcold"]


@dataclass(frozen=True)
class Case:
    """What both engines get."""

    kind: str
    seed: int
    device: DeviceConfig
    scenario: Scenario


def _drive(draw: random.Random) -> Fields:
    return {
        "seed": draw.randint(1, 1000),
        "preconditioning": False,
        "gc_preemptible": False,
        "channels": draw.randint(1, 8),
        "chips_per_channel": draw.randint(1, 4),
        "dies_per_chip": draw.choice([1, 1, 2]),
        "planes_per_die": draw.choice([1, 2, 4]),
        "blocks_per_plane": draw.choice([64, 200]),
        "pages_per_block": draw.choice([64, 128]),
        "page_bytes": draw.choice([2048, 4096, 8192, 16384]),
        "flash_technology": draw.choice(["slc", "mlc", "tlc"]),
        "page_read_ns": tuple(draw.randint(5_000, 90_000) for _ in range(3)),
        "page_program_ns": tuple(draw.randint(100_000, 900_000) for _ in range(3)),
        "channel_megatransfers_per_second": draw.choice([200, 333, 500, 800]),
        "mapping_ideal": draw.random() < 0.4,
        "cmt_bytes": draw.choice([64, 512, 4096, 65536]),
        "cmt_sharing": draw.choice(["shared", "equal_partitioning"]),
        "cache_bytes": draw.choice([1 << 17, 1 << 20, 1 << 24]),
        "cache_sharing": draw.choice(["shared", "equal_partitioning"]),
        "dram_megatransfers_per_second": draw.choice([100, 800, 3200]),
        "dram_burst_bytes": draw.choice([1, 4, 8]),
        "plane_allocation": draw.choice(PLANE_ALLOCATIONS),
        "scheduler": draw.choice(["out_of_order", "priority_out_of_order"]),
        "io_queue_depth": draw.choice([4, 64, 1024]),
        "queue_fetch_size": draw.choice([1, 3, 512]),
        "link_lane_gigabytes_per_second": draw.choice([0.1, 0.4, 1.0]),
        "link_lanes": draw.randint(1, 4),
        "overprovisioning_ratio": draw.choice([0.1, 0.3]),
        "gc_policy": draw.choice(POLICIES),
    }


def _flow(draw: random.Random, requests: int = 500) -> Fields:
    return {
        "read_percent": draw.choice([0, 30, 70, 100]),
        "caching": draw.choice(WRITE_MODES),
        "address_distribution": draw.choice(DISTRIBUTIONS),
        "hot_region_percent": draw.choice([5, 20, 30, 60]),
        "working_set_percent": draw.choice([1, 20, 100]),
        "aligned": draw.random() < 0.5,
        "alignment_sectors": draw.choice([1, 8, 16, 64]),
        "size_mean_sectors": draw.choice([1, 7, 8, 16, 33, 128]),
        "queue_depth": draw.choice([1, 2, 8, 32, 70]),
        "seed": draw.randint(1, 5000),
        "total_requests": draw.randint(100, requests),
        "priority": "high",
    }


def _flows(draw: random.Random, least: int, most: int, **fields: Any) -> list[Fields]:
    count = draw.randint(least, most)
    return [{**_flow(draw, 200 + 400 // count), **fields} for _ in range(count)]


def _few(draw: random.Random, _: Path) -> tuple[Fields, list[Fields]]:
    return _drive(draw), _flows(draw, 1, 3)


def _equal_flows(draw: random.Random, _: Path) -> tuple[Fields, list[Fields]]:
    flow = _flow(draw, 250)
    same_seed = draw.random() < 0.5
    flows = [
        {**flow, "seed": flow["seed"] + (0 if same_seed else i)} for i in range(draw.randint(2, 8))
    ]
    return _drive(draw), flows


def _many(draw: random.Random, _: Path) -> tuple[Fields, list[Fields]]:
    return _drive(draw), _flows(draw, 4, 8)


def _priorities(draw: random.Random, _: Path) -> tuple[Fields, list[Fields]]:
    drive = {**_drive(draw), "scheduler": "priority_out_of_order"}
    flows = _flows(draw, 1, 6)
    return drive, [
        {**f, "priority": draw.choice(["urgent", "high", "medium", "low"])} for f in flows
    ]


def _parts(draw: random.Random, _: Path) -> tuple[Fields, list[Fields]]:
    drive = _drive(draw)
    flows = _flows(draw, 2, 5)
    for flow in flows:
        for field, count in ID_FIELDS.items():
            if draw.random() < 0.5:
                every = range(drive[count])
                flow[field] = tuple(sorted(draw.sample(every, draw.randint(1, len(every)))))
    return drive, flows


def _read_cached(draw: random.Random, _: Path) -> tuple[Fields, list[Fields]]:
    caching = draw.choice(["read_cache", "write_read_cache"])
    return _drive(draw), _flows(draw, 1, 1, caching=caching)


def _several_read_cached(draw: random.Random, _: Path) -> tuple[Fields, list[Fields]]:
    caching = draw.choice(["read_cache", "write_read_cache"])
    return _drive(draw), _flows(draw, 2, 4, caching=caching)


def _mixed_caching(draw: random.Random, _: Path) -> tuple[Fields, list[Fields]]:
    return _drive(draw), [{**f, "caching": draw.choice(ALL_MODES)} for f in _flows(draw, 2, 4)]


def _sata(draw: random.Random, _: Path) -> tuple[Fields, list[Fields]]:
    return {**_drive(draw), "host_interface": "sata"}, _flows(draw, 1, 4)


def _rates(draw: random.Random, _: Path) -> tuple[Fields, list[Fields]]:
    flows = _flows(draw, 1, 4, generator="bandwidth")
    for flow in flows:
        rate = draw.choice([1_000, 20_000, 200_000])
        flow["bandwidth_bytes_per_second"] = min(rate * flow["size_mean_sectors"] * 512, 2**31 - 1)
    return _drive(draw), flows


def _traces(draw: random.Random, folder: Path) -> tuple[Fields, list[Fields]]:
    flows = _flows(draw, 0, 2)
    for number in range(draw.randint(1, 2)):
        path = folder / f"random_{draw.getrandbits(40):010x}_{number}.trace"
        now, lines = draw.choice([0, 1, 5_000]), []
        for _ in range(draw.randint(20, 300)):
            lines.append(
                f"{now} 0 {draw.randrange(1 << 22)} {draw.randint(1, 64)} {draw.randint(0, 1)}"
            )
            now += draw.choice([0, 100, 20_000, 300_000])
        path.write_text("\n".join(lines) + "\n")
        flows.append(
            {"kind": "trace", "trace_path": str(path), "caching": draw.choice(WRITE_MODES)}
        )
    draw.shuffle(flows)
    return _drive(draw), flows


def _used(draw: random.Random) -> Fields:
    return {
        **_drive(draw),
        "preconditioning": True,
        "channels": draw.randint(1, 3),
        "chips_per_channel": draw.randint(1, 2),
        "planes_per_die": draw.choice([1, 2]),
        "blocks_per_plane": draw.choice([256, 512, 1024]),
        "pages_per_block": draw.choice([32, 64, 128]),
        "gc_threshold": draw.choice([0.08, 0.1, 0.2]),
    }


def _preconditioned(
    distribution: str,
) -> Callable[[random.Random, Path], tuple[Fields, list[Fields]]]:
    def draws(draw: random.Random, _: Path) -> tuple[Fields, list[Fields]]:
        flows = _flows(
            draw, 1, 2, address_distribution=distribution, working_set_percent=100,
        )  # fmt: skip
        for flow in flows:
            flow["initial_occupancy_percent"] = draw.choice([10, 30, 50, 70])
            flow["hot_region_percent"] = draw.choice([5, 10, 20, 30, 31, 60])
            flow["read_percent"] = draw.choice([100, 100, 70])
        return _used(draw), flows

    return draws


def _collecting(draw: random.Random, _: Path) -> tuple[Fields, list[Fields]]:
    drive = {
        **_drive(draw), "blocks_per_plane": draw.choice([20, 32, 64]), "pages_per_block": 16,
        "gc_policy": draw.choice(POLICIES),
        "gc_threshold": draw.choice([0.05, 0.3]), "channels": draw.randint(1, 2),
        "chips_per_channel": 1, "page_bytes": draw.choice([4096, 8192]),
    }  # fmt: skip
    return drive, _flows(
        draw, 1, 2, total_requests=3000, size_mean_sectors=16, read_percent=draw.choice([0, 0, 30])
    )


KINDS: dict[str, Callable[[random.Random, Path], tuple[Fields, list[Fields]]]] = {
    "one to three flows": _few,
    "equal flows": _equal_flows,
    "four to eight flows": _many,
    "priorities": _priorities,
    "flows on parts": _parts,
    "read caching": _read_cached,
    "read caching in several flows": _several_read_cached,
    "caching by flow": _mixed_caching,
    "SATA": _sata,
    "rates": _rates,
    "traces": _traces,
    "preconditioned, uniform": _preconditioned("random_uniform"),
    "preconditioned, sequential": _preconditioned("streaming"),
    "preconditioned, hot and cold": _preconditioned("random_hotcold"),
    "collection": _collecting,
}


def draw_case(seed: int, folder: Path) -> Case:
    """The case of a seed: kinds take turns. Traces are written to `folder`."""
    kind = list(KINDS)[seed % len(KINDS)]
    draw = random.Random(seed)
    drive, flows = KINDS[kind](draw, folder)
    device = DeviceConfig.model_validate(drive)
    for flow in flows:  # fewer requests than the depth crash MQSim
        if flow.get("total_requests"):
            flow["total_requests"] = max(flow["total_requests"], flow["queue_depth"])
    scenario = Scenario(flows=tuple(FlowConfig.model_validate(flow) for flow in flows)).on(device)
    return Case(kind, seed, device, scenario)
