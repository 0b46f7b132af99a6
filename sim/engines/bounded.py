"""An engine whose every run keeps limits and can be called off, whatever asks for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from iojoule.sim.device import DeviceConfig
from iojoule.sim.engines import Engine, Limits, RunOptions
from iojoule.sim.result import ScenarioResult
from iojoule.sim.workload import Scenario


@dataclass(frozen=True)
class BoundedEngine:
    """Runs on another engine; equal to all that run on it, for limits change no result.

    Attributes:
        engine: What runs.
        limits: Of each run.
        cancelled: Asked now and then; True ends a run with a `CancelledError`.
    """

    engine: Engine
    limits: Limits = field(compare=False)
    cancelled: Callable[[], bool] = field(compare=False)

    def run(
        self, device: DeviceConfig, scenario: Scenario, options: RunOptions | None = None
    ) -> ScenarioResult:
        """See `Engine.run`."""
        bounded = replace(options or RunOptions(), limits=self.limits, cancelled=self.cancelled)
        return self.engine.run(device, scenario, bounded)
