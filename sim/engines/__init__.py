"""The programs that can run a scenario, behind one protocol, by name.

embedded: the core that ships with iojoule; fast: the same with fewer events, for long traces;
mqsim: the user's own MQSim. Importing this package
imports neither.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from iojoule.sim.errors import EngineError as EngineError
from iojoule.sim.errors import EngineMissingError as EngineMissingError
from iojoule.sim.result import EngineName, ScenarioResult

if TYPE_CHECKING:
    from iojoule.sim.device import DeviceConfig
    from iojoule.sim.workload import Scenario


@dataclass(frozen=True)
class Limits:
    """What a run may use before it is stopped with a `LimitError`; None and 0 s: no limit."""

    memory_bytes: int = 8 << 30
    wall_seconds: float = 0.0
    simulated_ns: int | None = None
    events: int | None = None


def _never() -> bool:
    return False


@dataclass(frozen=True)
class RunOptions:
    """How to run, as opposed to what.

    Attributes:
        limits: What the run may use.
        scenario_number: The scenario's place in its file, from 0: MQSim adds 2 to the drive's
            seed from one scenario of a file to the next, so scenario k runs with seed + 2 k.
        series_step_ns: Step of the time series; None asks for none.
        queues: Whether to measure the queues of transactions that MQSim's result layout has; the
            embedded engine does so in compat mode, at a few per cent of run time.
        progress: Called now and then with the share done, 0 to 1.
        cancelled: Asked now and then; True ends the run with a `CancelledError`.
    """

    limits: Limits = field(default_factory=Limits)
    scenario_number: int = 0
    series_step_ns: int | None = None
    queues: bool = False
    progress: Callable[[float], None] | None = None
    cancelled: Callable[[], bool] = _never


SEED_STEP = 2
"""What MQSim adds to the drive's seed from one scenario of a file to the next."""


class Engine(Protocol):
    """Runs one scenario on one drive. Any number of threads may call one engine at once."""

    def run(
        self, device: DeviceConfig, scenario: Scenario, options: RunOptions = ...
    ) -> ScenarioResult:
        """Simulate until nothing is left to do.

        Raises:
            RefusedError: The inputs cannot be run; see `iojoule.sim.known_defects`.
            TraceError: A trace file cannot be replayed.
            LimitError: The run went past `options.limits`.
            CancelledError: `options.cancelled()` said so.
            IojouleError: The engine's own failures.
        """
        ...


_WHERE = {
    EngineName.EMBEDDED: ("iojoule.sim.engines.embedded", "EmbeddedEngine"),
    EngineName.FAST: ("iojoule.sim.engines.fast", "FastEngine"),
    EngineName.MQSIM: ("iojoule.sim.engines.mqsim", "MqsimEngine"),
}


def engine(name: EngineName) -> Engine:
    """The engine of that name, ready to run.

    Raises:
        EngineMissingError: Its program is not there.
    """
    module, kind = _WHERE[name]
    made: Engine = getattr(import_module(module), kind)()
    return made
