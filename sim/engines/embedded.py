"""The simulator that ships with iojoule: the native core behind the engines' protocol."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from enum import StrEnum
from typing import Any

from pydantic import BaseModel

from iojoule.sim import _core
from iojoule.sim.device import DeviceConfig
from iojoule.sim.engines import SEED_STEP, Limits, RunOptions
from iojoule.sim.engines.embedded_gaps import near_but_not_equal
from iojoule.sim.engines.embedded_result import device_result, flow_result
from iojoule.sim.errors import CancelledError
from iojoule.sim.findings import Severity, refuse_errors
from iojoule.sim.result import EngineName, Mode, ScenarioResult
from iojoule.sim.trap_conditions import is_sata
from iojoule.sim.traps import findings as known_traps
from iojoule.sim.workload import Scenario


class EmbeddedEngine:
    """Runs scenarios in this process; the core holds no state and lets other threads go on."""

    def run(
        self, device: DeviceConfig, scenario: Scenario, options: RunOptions | None = None
    ) -> ScenarioResult:
        """Run one scenario; see `Engine.run`.

        Raises:
            ConfigError, TraceError, LimitError, ModelError: From the core.
            RefusedError: The inputs are known to be impossible.
            CancelledError: `options.cancelled()` said so.
        """
        options = options or RunOptions()
        scenario = scenario.on(device)
        found = refuse_errors(known_traps(device, scenario.flows))
        seeded = device.model_copy(
            update={"seed": device.seed + SEED_STEP * options.scenario_number}
        )
        flows = [native(flow) for flow in scenario.flows]
        user, wall = _user_seconds(), time.perf_counter()
        told = _core.simulate(
            native(seeded),
            flows,
            _native_limits(options.limits),
            progress=_watch(options),
            series_step_ns=options.series_step_ns or 0,
            with_queues=options.queues,
        )
        user, wall = _user_seconds() - user, time.perf_counter() - wall
        one_stream = is_sata(device) and device.mode is Mode.COMPAT
        made = tuple(
            flow_result(
                number,
                asked,
                flow,
                told,
                options.series_step_ns,
                has_stream=number == 0 or not one_stream,
            )
            for number, (asked, flow) in enumerate(zip(scenario.flows, told.flows, strict=True))
        )
        result = ScenarioResult(
            engine=EngineName.EMBEDDED,
            mode=device.mode,
            device=device_result(told.device, device.mode),
            flows=made,
            series_step_ns=options.series_step_ns,
            run_user_seconds=user,
            run_wall_seconds=wall,
            peak_bytes=told.device.memory_bytes,
            events=told.device.events,
            unavailable=UNAVAILABLE[device.mode],
        )
        doubts = (str(each) for each in found if each.severity is Severity.WARNING)
        said = (*doubts, *near_but_not_equal(device, scenario, told), *_lost(result))
        return result.model_copy(update={"warnings": said})


UNAVAILABLE: dict[Mode, dict[str, str]] = {
    Mode.COMPAT: {"device.energy_joules": "compat mode, like MQSim, has no energy"},
    Mode.PHYSICAL: {},
}


def _user_seconds() -> float:
    """Of this thread, which is the one that the core runs in."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_utime


def native(model: BaseModel) -> Any:
    """The core's struct of the same name with the same values, field by field."""
    made = getattr(_core, type(model).__name__)()
    for name in type(model).model_fields:
        setattr(made, name, _value(getattr(model, name)))
    return made


def _value(value: Any) -> Any:
    match value:
        case BaseModel():
            return native(value)
        case tuple():
            return [_value(each) for each in value]
        case StrEnum():
            return value.value
        case _:
            return value


def _native_limits(limits: Limits) -> _core.Limits:
    made = _core.Limits()
    made.memory_bytes = limits.memory_bytes
    made.wall_seconds = limits.wall_seconds
    if limits.simulated_ns is not None:
        made.simulated_ns = limits.simulated_ns
    if limits.events is not None:
        made.events = limits.events
    return made


def _watch(options: RunOptions) -> Any:
    """What the core calls some ten times a second; an error here ends the run."""

    def watch(done: float) -> None:
        if options.cancelled():
            raise CancelledError("the run was called off")
        if options.progress is not None:
            options.progress(done)

    return watch


def _lost(result: ScenarioResult) -> Iterator[str]:
    for number, lost in result.lost():
        flow = result.flows[number]
        yield (
            f"flows[{number}]: {lost} of {flow.generated} requests were generated but not serviced"
            + (", as in MQSim" if result.mode is Mode.COMPAT else "")
            + " [requests_lost]"
        )
