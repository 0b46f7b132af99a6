"""Jobs that simulate: a drive that iojoule knows, changed as asked, under flows of requests."""

from __future__ import annotations

from typing import Any

import orjson

from iojoule import __version__
from iojoule.api.jobs.running import Outcome, Running
from iojoule.api.jobs.simulation_request import RUNS_MAX, SimulationRequest
from iojoule.api.simulations import Plan, document, doubts
from iojoule.datasets.errors import InputError, IojouleError
from iojoule.sim.engines import Limits, RunOptions, engine
from iojoule.sim.findings import refuse_errors
from iojoule.sim.formats.files import read_drive
from iojoule.sim.presets import preset_path
from iojoule.sim.result import EngineName, ScenarioResult
from iojoule.sim.sweep import Axis, Job, combinations, run_jobs, with_values
from iojoule.sim.traps import findings
from iojoule.sim.workload import FlowKind

REQUESTS_MAX = 2_000_000_000
"""Of all runs together, where flows say how many; the limits of a run hold for all."""

LIMITS = Limits(memory_bytes=4 << 30, wall_seconds=600.0, events=2_000_000_000)
"""Of one run: nobody's question may take all of a machine that others ask too."""


def planned(request: SimulationRequest) -> Plan:
    """The runs that a request asks for.

    Raises:
        InputError: It names no drive, or asks for what cannot be simulated; names the field.
    """
    for index, flow in enumerate(request.scenario.flows):
        if flow.kind is FlowKind.TRACE:
            raise InputError(
                "traces are files of the machine that simulates, which the service does not read; "
                "use `iojoule simulate` there",
                field=f"scenario.flows.{index}.kind",
            )
    count = 1
    for listed in request.vary.values():
        count *= len(listed)
        if not 1 <= count <= RUNS_MAX:
            raise InputError(f"{count} runs are asked for; ask for 1 to {RUNS_MAX}", field="vary")
    try:
        device = read_drive(preset_path(request.drive)).device
    except InputError as error:
        raise InputError(error.message, field="drive") from None
    asked = count * sum(flow.total_requests for flow in request.scenario.flows)
    if asked > REQUESTS_MAX:
        raise InputError(
            f"{asked} requests in {count} runs are asked for; ask for {REQUESTS_MAX} at most",
            field="scenario",
        )
    with _naming("set"):
        device, scenario = with_values(device, request.scenario, request.set)
    axes = [Axis(name, tuple(listed)) for name, listed in request.vary.items()]
    plan = Plan([], [], not axes)
    for values in combinations(axes):
        with _naming("vary"):
            own, flows = with_values(device, scenario, values) if values else (device, scenario)
        with _naming("scenario"):
            plan.findings.extend(refuse_errors(findings(own, flows.flows)))
        labels: dict[str, Any] = {"ssd": request.drive}
        plan.jobs.append(Job(own, flows, 0, labels | ({"varied": values} if values else {})))
    plan.findings[:] = dict.fromkeys(plan.findings)
    return plan


class _naming:  # noqa: N801 - used like a function
    """Puts an error of the simulator at a place of the request."""

    def __init__(self, place: str) -> None:
        self._place = place

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, IojouleError):
            raise InputError(error.message, field=self._place) from None


def run(running: Running) -> Outcome:
    """Run them one after the other; raises what a run raises."""
    plan = planned(SimulationRequest.model_validate(running.request))
    options = RunOptions(limits=LIMITS, cancelled=running.watched.stop.is_set)
    results: list[ScenarioResult] = []

    def watch(_: int, share: float) -> None:
        running.watched.say((len(results) + share) / len(plan.jobs), "simulating")

    for job in plan.jobs:  # not as one sweep: this way progress and cancelling reach into each
        results += run_jobs([job], engine(EngineName.EMBEDDED), options=options, watch=watch)
    told = {
        "iojoule_version": __version__,
        "evidence": "simulated",
        "drive": running.request["drive"],
        "notes": [str(finding) for finding in plan.findings] + list(doubts(results, plan.findings)),
        **document(plan, results),
    }
    return Outcome(orjson.dumps(told))
