"""Jobs that simulate: a drive that iojoule knows, changed as asked, under flows of requests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson

from iojoule import __version__
from iojoule.api.application.simulate import Plan, document, doubts, that_ran, without
from iojoule.api.jobs.admission import (
    admitted,
    drive_of,
    naming,
    refuse_files,
    refuse_names_of_files,
)
from iojoule.api.jobs.running import Outcome, Running
from iojoule.api.jobs.simulation_request import RUNS_MAX, SimulationRequest
from iojoule.datasets.errors import InputError
from iojoule.sim.engines import Limits, RunOptions, engine
from iojoule.sim.findings import refuse_errors
from iojoule.sim.known_defects import findings
from iojoule.sim.result import EngineName, ScenarioResult
from iojoule.sim.sweep import (
    Axis,
    Job,
    LeftOut,
    combinations,
    run_designs,
    with_values,
)

LIMITS = Limits(memory_bytes=4 << 30, wall_seconds=600.0, events=2_000_000_000)
"""Of one run: nobody's question may take all of a machine that others ask too."""


def planned(request: SimulationRequest) -> Plan:
    """The runs that a request asks for.

    Raises:
        InputError: It names no drive, or asks for what cannot be simulated; names the field.
    """
    count = 1
    for listed in request.vary.values():
        count *= len(listed)
        if not 1 <= count <= RUNS_MAX:
            raise InputError(f"{count} runs are asked for; ask for 1 to {RUNS_MAX}", field="vary")
    device = drive_of(request.drive)
    refuse_files(request.scenario)
    for place, names in (("set", request.set), ("vary", request.vary)):
        refuse_names_of_files(names, place)
    with naming("set"):
        device, scenario = with_values(device, request.scenario, request.set)
    refuse_files(scenario, "set")
    axes = [Axis(name, tuple(listed)) for name, listed in request.vary.items()]
    plan = Plan([], [], not axes, axes=axes)
    lost: list[tuple[Job, InputError]] = []
    for values in combinations(axes):
        labels: dict[str, Any] = {"ssd": request.drive} | ({"varied": values} if values else {})
        job = Job(device, scenario, 0, labels)
        try:
            if values:
                own, flows = with_values(device, scenario, values)
                job = replace(job, device=own, scenario=flows)
                refuse_errors(findings(own, flows.flows))
        except InputError as error:
            lost.append((job, error))
        else:
            plan.jobs.append(job)
    plan.findings.extend(admitted([(job.device, job.scenario, "vary") for job in plan.jobs]))
    with naming("vary"):
        return without(plan, lost)


def run(running: Running) -> Outcome:
    """Run them one after the other; raises what a run raises."""
    plan = planned(SimulationRequest.model_validate(running.request))
    options = RunOptions(limits=LIMITS, cancelled=running.watched.stop.is_set)
    told: list[ScenarioResult | LeftOut] = []

    def watch(_: int, share: float) -> None:
        running.watched.say((len(told) + share) / len(plan.jobs), "simulating")

    for job in plan.jobs:  # not as one sweep: this way progress and cancelling reach into each
        told += run_designs([job], engine(EngineName.EMBEDDED), options=options, watch=watch)
    plan, results = that_ran(plan, told)
    answer = {
        "iojoule_version": __version__,
        "evidence": "simulated",
        "drive": running.request["drive"],
        "notes": [str(finding) for finding in plan.findings] + list(doubts(results, plan.findings)),
        **document(plan, results),
    }
    return Outcome(orjson.dumps(answer))
