"""Measurements beside their simulation."""

from typing import Any

import pytest

from iojoule.datasets.errors import InputError
from iojoule.datasets.schema import (
    Conditions,
    Configuration,
    Measurement,
    Observations,
    Workload,
)
from iojoule.datasets.vocabulary import Engine, Operation
from iojoule.sim.against import (
    Comparison,
    Residual,
    median_errors,
    parse_groups,
    simulate_measurements,
)
from iojoule.sim.formats.files import read_drive
from iojoule.sim.presets import preset_path
from iojoule.sim.workers import open_pool

DRIVE = read_drive(preset_path("samsung-980-pro-1tb")).device


def measurement(
    depth: int, throughput: float, operation: Operation = Operation.READ
) -> Measurement:
    share = {"read_fraction": 0.5} if operation is Operation.MIXED else {}
    return Measurement(
        workload=Workload(operation=operation, **share),
        configuration=Configuration(
            request_bytes=4096, queue_depth=depth, jobs=1, engine=Engine.IO_URING
        ),
        observations=Observations(throughput_bytes_per_second=throughput),
    )


def simulated_throughput(depth: int) -> float:
    (found,) = simulate_measurements(DRIVE, [measurement(depth, 1.0)], simulated_ns=10_000_000)
    return found.residuals[0].simulated


def test_a_drive_that_is_its_own_simulation_has_no_error() -> None:
    rows = [measurement(depth, simulated_throughput(depth)) for depth in (1, 8)]
    with open_pool(2) as pool:
        found = simulate_measurements(DRIVE, rows, simulated_ns=10_000_000, pool=pool)
    assert [each.residuals[0].relative_error for each in found] == [0.0, 0.0]


@pytest.mark.parametrize(
    ("changes", "most"),
    [
        ({"conditions": Conditions(pcie_generation=1, pcie_lanes=2)}, 0.5e9),
        ({"configuration": {"power_state": 2}}, 1.9e9),
    ],
)
def test_the_measured_link_and_power_state_hold_the_drive_back(
    changes: dict[str, Any], most: float
) -> None:
    row = measurement(64, 1.0).model_copy(deep=True)
    chosen = {"request_bytes": 131_072, **changes.get("configuration", {})}
    asked = row.model_copy(update={"configuration": row.configuration.model_copy(update=chosen)})
    held = asked.model_copy(update={"conditions": changes.get("conditions", row.conditions)})
    free = row.model_copy(
        update={"configuration": row.configuration.model_copy(update={"request_bytes": 131_072})}
    )
    found = simulate_measurements(DRIVE, [free, held], simulated_ns=200_000_000)
    fast, slow = (each.residuals[0].simulated for each in found)
    assert slow < most < fast


@pytest.mark.parametrize(
    "chosen", [{"power_state": 3}, {"power_state": 9}, {"power_limit_watts": 4.0}]
)
def test_a_state_in_which_the_drive_does_not_serve_is_refused(chosen: dict[str, Any]) -> None:
    row = measurement(4, 1.0)
    held = row.model_copy(update={"configuration": row.configuration.model_copy(update=chosen)})
    with pytest.raises(InputError, match="leave it out"):
        simulate_measurements(DRIVE, [held])


def test_errors_are_told_by_group() -> None:
    half = [measurement(depth, 2 * simulated_throughput(depth)) for depth in (1, 8)]
    errors = median_errors(
        simulate_measurements(DRIVE, half, simulated_ns=10_000_000), ["queue_depth"]
    )
    assert [(row["queue_depth"], row["rows"], row["median_error_percent"]) for row in errors] == [
        (1, 1, -50.0),
        (8, 1, -50.0),
    ]


def test_groups_stand_in_the_order_of_their_values_and_unknown_ones_last() -> None:
    def comparison(depth: int, state: int | None) -> Comparison:
        row = measurement(depth, 1.0)
        chosen = row.configuration.model_copy(update={"power_state": state})
        told = (Residual("throughput_bytes_per_second", 1.0, 1.0),)
        return Comparison(row.model_copy(update={"configuration": chosen}), told)

    rows = [comparison(64, 0), comparison(8, None), comparison(8, 10), comparison(8, 2)]
    errors = median_errors(rows, ["queue_depth", "power_state"])
    assert [(each["queue_depth"], each["power_state"]) for each in errors] == [
        (8, 2),
        (8, 10),
        (8, None),
        (64, 0),
    ]


def test_mixes_are_refused_by_their_place() -> None:
    rows = [measurement(1, 1e6), measurement(1, 1e6, Operation.MIXED)]
    with pytest.raises(InputError, match="measurement 2"):
        simulate_measurements(DRIVE, rows)


def test_nothing_to_compare_is_refused() -> None:
    with pytest.raises(InputError, match="no measurements"):
        simulate_measurements(DRIVE, [])


@pytest.mark.parametrize(
    "held_back",
    [
        {"demand_operations_per_second": 1000.0},
        {"demand_bytes_per_second": 4e6},
        {"think_time_ns": 1e6},
        {"force_unit_access": True},
        {"request_bytes_mix": "4096/1:8192/1"},
    ],
)
def test_what_does_not_run_at_full_speed_is_refused(held_back: dict[str, object]) -> None:
    row = measurement(1, 1e6)
    slow = row.model_copy(update={"workload": row.workload.model_copy(update=held_back)})
    with pytest.raises(InputError, match="measurement 2"):
        simulate_measurements(DRIVE, [row, slow])


def test_a_host_whose_costs_nobody_published_is_refused() -> None:
    row = measurement(1, 1e6)
    other = row.configuration.model_copy(update={"engine": Engine.IO_URING_CMD})
    with pytest.raises(InputError, match="measurement 1"):
        simulate_measurements(DRIVE, [row.model_copy(update={"configuration": other})])


def test_requests_a_second_are_throughput() -> None:
    rate = simulated_throughput(1)
    row = measurement(1, rate)
    told = row.model_copy(update={"observations": Observations(iops=2 * rate / 4096)})
    (found,) = simulate_measurements(DRIVE, [told], simulated_ns=10_000_000)
    assert [(each.quantity, each.relative_error) for each in found.residuals] == [
        ("throughput_bytes_per_second", -0.5)
    ]


def test_groups_are_fields_of_the_configuration_each_once() -> None:
    assert parse_groups("queue_depth, jobs,queue_depth") == ["queue_depth", "jobs"]
    assert parse_groups("") == []
    with pytest.raises(InputError, match="queue_depth"):
        parse_groups("queue_depht")
