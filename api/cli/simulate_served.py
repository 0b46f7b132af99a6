"""`iojoule simulate --server`: the same runs as jobs of a service."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iojoule.api.cli.server import service, waited_for
from iojoule.api.http.simulations.schemas import SimulationRequest
from iojoule.sim.formats.files import read_workload
from iojoule.sim.result import ScenarioResult

if TYPE_CHECKING:
    from iojoule.api.client import Client
    from iojoule.api.http.jobs.schemas import JobStatus
    from iojoule.sim.sweep import Axis


def simulate(
    server: str, drives: Sequence[str], workloads: Sequence[Path], axes: Sequence[Axis]
) -> list[ScenarioResult]:
    """Have a service simulate: a job for each scenario of a drive, in which values vary.

    Returns:
        The results in the order of `simulations.plan_runs`.

    Raises:
        IojouleError: The service refuses a job, or one failed.
    """
    vary = {axis.field: list(axis.values) for axis in axes}
    read = [read_workload(path).scenarios for path in workloads]
    with service(server) as client:
        jobs = [
            [
                client.simulate(SimulationRequest(drive=drive, scenario=scenario, vary=vary))
                for scenario in scenarios
            ]
            for drive in drives
            for scenarios in read
        ]
        waited_for(client, [job for group in jobs for job in group], "simulating")
        return [
            result
            for group in jobs
            for varied in zip(*(_results(client, job) for job in group), strict=True)
            for result in varied
        ]


def _results(client: Client, job: JobStatus) -> list[ScenarioResult]:
    """What a job gave for each combination of varied values."""
    labels = ("ssd", "varied")
    told: list[dict[str, Any]] = client.result(job)["scenarios"]
    return [
        ScenarioResult.model_validate({k: v for k, v in one.items() if k not in labels})
        for one in told
    ]
