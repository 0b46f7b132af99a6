"""Nothing that is set or varied makes a job read a file or ask for more than it may."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from iojoule.api.http.simulations import EXAMPLE
from iojoule.api.jobs.admission import NAMES_FILE, REQUESTS_MAX
from iojoule.api.jobs.calibration_request import Calibration, checked
from iojoule.api.jobs.simulation import planned
from iojoule.api.jobs.simulation_request import SimulationRequest
from iojoule.datasets.errors import InputError
from iojoule.sim.device import DeviceConfig
from iojoule.sim.workload import FlowConfig


def refused(change: dict[str, Any]) -> InputError:
    with pytest.raises(InputError) as caught:
        planned(SimulationRequest.model_validate(EXAMPLE | change))
    return caught.value


@pytest.mark.parametrize("way", ["set", "vary"])
@pytest.mark.parametrize("flow", ["flows", "flows[0]"])
def test_no_file_is_named_by_what_is_changed(way: str, flow: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("root:$6$hash\n")
    values: dict[str, Any] = {f"{flow}.kind": "trace", f"{flow}.trace_path": str(secret)}
    change = {way: values if way == "set" else {name: [one] for name, one in values.items()}}
    error = refused(change)
    assert error.field == way
    assert "$6$" not in error.message
    assert "secret" not in error.message


@pytest.mark.parametrize("way", ["set", "vary"])
def test_requests_are_counted_as_they_would_be_run(way: str) -> None:
    most: Any = REQUESTS_MAX + 1
    change = {way: {"flows.total_requests": most if way == "set" else [most]}}
    assert refused({"vary": {}} | change).field == "scenario"


def free_texts(section: type) -> set[str]:
    """Fields of a section, and of those within, that hold any text or a path."""
    found: set[str] = set()
    for name, kind in get_type_hints(section).items():
        for one in (kind, *get_args(kind)):
            if one in (str, Path):
                found.add(name)
            elif dataclasses.is_dataclass(one) and isinstance(one, type):
                found |= free_texts(one)
    return found


def test_no_other_field_of_a_drive_or_a_flow_can_name_a_file() -> None:
    assert free_texts(FlowConfig) == NAMES_FILE
    assert free_texts(DeviceConfig) == {"plane_allocation"}  # an order of letters, checked


def test_a_calibration_sets_no_flows() -> None:
    asked = Calibration(
        datasets=["x"], drive=EXAMPLE["drive"], device="x", set={"flows.trace_path": "/etc/shadow"}
    )
    with pytest.raises(InputError) as caught:
        checked(asked)
    assert caught.value.field == "set"
