"""Budget: 10,000 drives in 20 classes planned within 10 s, within 1 % of the best."""

from __future__ import annotations

import time
from typing import Any

import pytest

from iojoule.api.application.profiles import profile_of
from iojoule.recommender.fleet.document import Fleet
from iojoule.recommender.fleet.planner import Planner

DRIVES = 10_000
CLASSES = 20
RACKS = 25
DEVICES = ("samsung-980-pro-1tb", "samsung-pm9a3", "intel-d7-p5510", "samsung-pm1743")
SECONDS = 10.0
GAP = 0.01

OPERATIONS: tuple[dict[str, Any], ...] = (
    {"operation": "read", "useful_request_bytes": 4096},
    {"operation": "read", "useful_request_bytes": 65536},
    {"operation": "write", "useful_request_bytes": 131072, "pattern": "sequential"},
    {"operation": "mixed", "read_fraction": 0.7, "useful_request_bytes": 16384},
)


def fleet() -> Fleet:
    """Racks of one model each below four rows and a hall; half of the classes may be curtailed."""
    domains: list[dict[str, Any]] = [{"name": "hall", "limit_watts": 120_000.0}]
    domains += [
        {"name": f"row-{row}", "parent": "hall", "limit_watts": 40_000.0} for row in range(4)
    ]
    drives = []
    for rack in range(RACKS):
        domains.append(
            {"name": f"rack-{rack}", "parent": f"row-{rack % 4}", "limit_watts": 6_000.0,
             "base_watts": 500.0}
        )  # fmt: skip
        drives += [
            {
                "name": f"r{rack}-{part}", "device": DEVICES[rack % len(DEVICES)],
                "count": DRIVES // (RACKS * 4), "domain": f"rack-{rack}",
                "classes": [f"c{(rack * 4 + part + step) % CLASSES}" for step in (0, 1, 7)],
            }
            for part in range(4)
        ]  # fmt: skip
    classes = []
    for number in range(CLASSES):
        work = OPERATIONS[number % len(OPERATIONS)]
        classes.append(
            {
                "name": f"c{number}", "workload": {"workload": work}, "redirectable": True,
                "segregate": work["operation"] == "mixed",
                "demand_bytes_per_second": 30e9 + 2e9 * number,
            }
            | ({"importance": 1.0 + number / CLASSES} if number % 2 else {})
        )  # fmt: skip
    return Fleet.model_validate({"domains": domains, "drives": drives, "classes": classes})


@pytest.mark.parametrize("aim", ["least_watts", "most_demand"])
def test_ten_thousand_drives(aim: Any) -> None:
    stated = fleet()
    profiles = {device: profile_of(device) for device in DEVICES}
    started, cpu = time.perf_counter(), time.process_time()
    planner = Planner(stated, profiles)
    built = time.perf_counter() - started
    found = planner.plans(aim)[0]
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    served = sum(item.served_bytes_per_second for item in found.classes)
    asked = sum(item.demand_bytes_per_second for item in found.classes)
    against = abs(found.objective - found.relaxed_objective) / found.objective
    print(
        f"\nfleet {aim}: {sum(g.count for g in stated.drives):,} drives, {len(stated.classes)} "
        f"classes, {seconds:.1f} s ({cpu:.1f} s of CPU, {built:.1f} s of them the modes), gap "
        f"{found.optimality_gap:.3%}, {against:.3%} from the bound of divisible drives, served "
        f"{served / asked:.1%}, {found.expected_watts:,.0f} W"
    )
    assert found.optimality_gap <= GAP
    assert seconds <= SECONDS
