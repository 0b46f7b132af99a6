"""Random drives and workloads on both engines: `python -m tests.sim.engines.fast_cases CSV`.

The drives have one to four channels of up to four chips, every allocation and way to share a
command, with and without a cache register, suspension, a mapping table cache, pseudo-SLC blocks and
collection; the loads are closed loops up to depth 64 and open loops.
"""

from __future__ import annotations

import csv
import random
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from iojoule.sim.device import DeviceConfig
from iojoule.sim.engines import Limits, RunOptions
from iojoule.sim.engines.embedded import EmbeddedEngine
from iojoule.sim.engines.fast import FastEngine
from iojoule.sim.errors import IojouleError
from iojoule.sim.result import ScenarioResult
from iojoule.sim.workload import FlowConfig, Scenario
from tests.sim.physical.drives import MS, drive

CASES = 1000
REQUESTS = 20_000
QUANTITIES = ("mean", "p50", "p99", "p999", "joules", "write_amplification")


def case(seed: int) -> tuple[DeviceConfig, FlowConfig]:
    """A drive and a workload that nobody chose."""
    draw = random.Random(seed)
    one_of = draw.choice
    planes = one_of([1, 1, 2, 4])
    writes = draw.random() < 0.7
    collects = writes and draw.random() < 0.5
    device = drive(
        channels=one_of([1, 2, 4]),
        chips_per_channel=one_of([1, 2, 4]),
        planes_per_die=planes,
        channel_megatransfers_per_second=one_of([400, 800, 1200, 2400]),
        flash_technology=(technology := one_of(["slc", "mlc", "tlc"])),
        page_read_ns=[draw.randrange(10_000, 90_000)] * 3,
        page_program_ns=[draw.randrange(100_000, 900_000)] * 3,
        page_bytes=one_of([4096, 8192, 16384]),
        mapping_ideal=draw.random() < 0.7,
        cmt_bytes=1 << draw.randrange(12, 20),
        cache_bytes=1 << draw.randrange(18, 24),
        suspension=one_of(["none", "erase", "program_erase"]),
        preconditioning=collects,
        gc_preemptible=draw.random() < 0.7,
        physical={
            "nand": {
                "write_allocation": one_of(["striped", "round_robin"]),
                "multi_plane": one_of(["none", "same_page", "any_page"]),
                "cache_register": draw.random() < 0.5,
                "mapping_unit_bytes": 4096,
                "ecc_decode_ns": one_of([0, 2000]),
            },
            "link": {"latency_ns": 250},
            "controller": {"command_latency_ns": 3000, "command_occupancy_ns": one_of([0, 500])},
            "slc": {} if technology == "slc" else {"static_blocks_per_plane": one_of([0, 4])},
            "energy": {
                "page_read_joules": [5e-6] * 3,
                "page_program_joules": [5e-5] * 3,
                "block_erase_joules": 3e-4,
                "channel_joules_per_byte": 1e-11,
                "controller_idle_watts": 0.5,
                "controller_active_watts": 1.5,
                "controller_joules_per_command": 2e-6,
                "link_joules_per_byte": 1e-11,
            },
        },
    )
    sectors = one_of([8, 8, 32, 128])
    flow = {
        "read_percent": one_of([0, 30, 70, 95]) if writes else 100,
        "address_distribution": one_of(["random_uniform", "random_hotcold", "streaming"]),
        "hot_region_percent": 20,
        "working_set_percent": 80 if collects else one_of([20, 80]),
        "initial_occupancy_percent": 70 if collects else 0,
        "size_mean_sectors": sectors,
        "alignment_sectors": one_of([8, sectors]),
        "queue_depth": one_of([1, 2, 4, 8, 16, 32, 64]),
        "total_requests": REQUESTS,
        "seed": seed + 1,
    }
    if draw.random() < 0.4:
        flow["host"] = {"arrivals_per_second": one_of([500.0, 2000.0, 8000.0])}
        flow["stop_ns"] = 4000 * MS
    return device, FlowConfig.model_validate(flow)


def quantities(result: ScenarioResult) -> dict[str, float]:
    """What the two are compared in."""
    flow = result.flows[0]
    latency = flow.device_latency.all
    return {
        "mean": latency.mean_ns,
        "p50": latency.p50_ns,
        "p99": latency.p99_ns,
        "p999": latency.p999_ns,
        "joules": result.device.energy_joules_total or 0.0,
        "write_amplification": result.device.write_amplification or 1.0,
    }


def row(seed: int) -> dict[str, Any] | None:
    """Relative errors of the fast engine; None if the drive cannot be run."""
    device, flow = case(seed)
    scenario, options = Scenario(flows=(flow,)), RunOptions(limits=Limits(events=20_000_000))
    try:
        exact = EmbeddedEngine().run(device, scenario, options)
        near = FastEngine().run(device, scenario, options)
    except IojouleError:
        return None
    expected, found = quantities(exact), quantities(near)
    errors = {name: round(found[name] / expected[name] - 1, 6) for name in QUANTITIES}
    return {
        "seed": seed,
        "read_percent": flow.read_percent,
        "loop": "open" if flow.host.arrivals_per_second else "closed",
        "queue_depth": flow.queue_depth,
        **errors,
        "outside": re.findall(r"\[(fast_\w+)\]", " ".join(near.warnings)),
        "mean_us": round(expected["mean"] / 1000, 1),
    }


def rows(count: int) -> Iterator[dict[str, Any]]:
    """The first so many that run."""
    seed = made = 0
    while made < count:
        if (line := row(seed)) is not None:
            made += 1
            yield line
        seed += 1


GROUPS: dict[str, Callable[[Mapping[str, Any]], bool]] = {
    "without a warning": lambda line: not line["outside"],
    "data are moved": lambda line: line["outside"] == ["fast_collection"],
    "closed loop of several": lambda line: "fast_closed_loop" in line["outside"],
    "all": lambda line: True,
}
IN_ALL = ("p50", "p99", "joules")
"""What has to be within 2 %."""


def table(lines: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """By group and quantity: median and largest relative error, and the share within 2 %."""
    for group, belongs in GROUPS.items():
        chosen = [line for line in lines if belongs(line)]
        for name in QUANTITIES:
            errors = sorted(abs(float(line[name])) for line in chosen)
            yield {
                "runs": group,
                "number": len(chosen),
                "quantity": name,
                "within 2 %": round(sum(error <= 0.02 for error in errors) / len(errors), 3),
                "median error": round(errors[len(errors) // 2], 5),
                "95 % of errors": round(errors[len(errors) * 95 // 100], 3),
                "largest error": round(errors[-1], 3),
            }
        yield {
            "runs": group,
            "number": len(chosen),
            "quantity": "all of " + " ".join(IN_ALL),
            "within 2 %": round(within(chosen), 3),
        }


def within(lines: Sequence[Mapping[str, Any]], *names: str) -> float:
    """Share of the runs that have all of these within 2 %; by default `IN_ALL`."""
    asked = names or IN_ALL
    return sum(all(abs(line[name]) <= 0.02 for name in asked) for line in lines) / len(lines)


if __name__ == "__main__":
    with open(sys.argv[1], "w", newline="") as file:  # noqa: PTH123
        told = list(table(list(rows(int(sys.argv[2]) if len(sys.argv) > 2 else CASES))))
        writer = csv.DictWriter(file, told[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(told)
