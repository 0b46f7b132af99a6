"""A campaign compared with the lab's own record."""

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
        ComparedRun(record.number, _name(record), _errors(record, lab, largest))
        for record in records
        if record.measurement is not None
    ]


def median_errors(runs: Sequence[ComparedRun]) -> dict[str, float]:
    """Median distance from the truth by quantity, as a fraction."""
    medians = {}
    for quantity in QUANTITIES:
        errors = [abs(run.errors[quantity]) for run in runs if quantity in run.errors]
        if errors:
            medians[quantity] = float(np.median(errors))
    return medians


def _errors(record: RunRecord, lab: LabClient, largest: int) -> dict[str, float]:
    assert record.measurement is not None
    assert record.begin_monotonic_ns is not None
    assert record.end_monotonic_ns is not None
    truth = lab.record(record.begin_monotonic_ns, record.end_monotonic_ns)
    seconds = (record.end_monotonic_ns - record.begin_monotonic_ns) / 1e9
    host = truth["host_energy_joules"]
    true = {
        "device_power_watts": truth["device_power_watts"],
        "cpu_power_watts": host["package-0"] / seconds if "package-0" in host else None,
    }
    operation = record.measurement.workload.operation
    if operation is not Operation.MIXED:
        direction = truth[operation.value]
        true["throughput_bytes_per_second"] = direction.get("throughput_bytes_per_second")
        if record.measurement.configuration.request_bytes <= largest:
            true["latency_mean_ns"] = direction.get("latency_mean_ns")
    seen = record.measurement.observations
    return {
        quantity: getattr(seen, quantity) / true[quantity] - 1
        for quantity in QUANTITIES
        if true.get(quantity) and getattr(seen, quantity) is not None
    }


def _name(record: RunRecord) -> str:
    assert record.measurement is not None
    configuration = record.measurement.configuration
    state = configuration.power_state
    return (
        f"{record.measurement.workload.operation.value} {configuration.request_bytes} B, depth "
        f"{configuration.queue_depth}" + (f", PS{state}" if state is not None else "")
    )
