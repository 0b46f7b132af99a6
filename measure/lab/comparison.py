"""A campaign beside the lab's own record: what was measured, and what really happened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from iojoule.datasets.vocabulary import Operation
from iojoule.measure.campaign.folder import RunRecord
from iojoule.measure.lab.client import LabClient

QUANTITIES = (
    "device_power_watts",
    "throughput_bytes_per_second",
    "latency_mean_ns",
    "cpu_power_watts",
)


@dataclass(frozen=True)
class ComparedRun:
    """One run: measured over true, minus 1, by quantity; what one side lacks is left out.

    Latency is compared where the kernel does not split requests: the record is of commands.
    """

    number: int
    name: str
    errors: Mapping[str, float]


def compare(records: Sequence[RunRecord], lab: LabClient) -> list[ComparedRun]:
    """Compare the runs that count with the lab's record. Raises LabError if the lab is not up."""
    largest = int(lab.state["max_transfer_bytes"])
    return [
        ComparedRun(one.number, _name(one), _errors(one, lab, largest))
        for one in records
        if one.measurement is not None
    ]


def median_errors(runs: Sequence[ComparedRun]) -> dict[str, float]:
    """Median distance from the truth by quantity, as a fraction."""
    found = {}
    for quantity in QUANTITIES:
        errors = [abs(one.errors[quantity]) for one in runs if quantity in one.errors]
        if errors:
            found[quantity] = float(np.median(errors))
    return found


def _errors(one: RunRecord, lab: LabClient, largest: int) -> dict[str, float]:
    assert one.measurement is not None
    assert one.begin_monotonic_ns is not None
    assert one.end_monotonic_ns is not None
    truth = lab.record(one.begin_monotonic_ns, one.end_monotonic_ns)
    seconds = (one.end_monotonic_ns - one.begin_monotonic_ns) / 1e9
    host = truth["host_energy_joules"]
    true = {
        "device_power_watts": truth["device_power_watts"],
        "cpu_power_watts": host["package-0"] / seconds if "package-0" in host else None,
    }
    operation = one.measurement.workload.operation
    if operation is not Operation.MIXED:
        direction = truth[operation.value]
        true["throughput_bytes_per_second"] = direction.get("throughput_bytes_per_second")
        if one.measurement.configuration.request_bytes <= largest:
            true["latency_mean_ns"] = direction.get("latency_mean_ns")
    seen = one.measurement.observations
    return {
        quantity: getattr(seen, quantity) / true[quantity] - 1
        for quantity in QUANTITIES
        if true.get(quantity) and getattr(seen, quantity) is not None
    }


def _name(one: RunRecord) -> str:
    assert one.measurement is not None
    configuration = one.measurement.configuration
    state = configuration.power_state
    return (
        f"{one.measurement.workload.operation.value} {configuration.request_bytes} B, depth "
        f"{configuration.queue_depth}" + (f", PS{state}" if state is not None else "")
    )
