"""Trace files that travel to workers, which need not see the files of this machine."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

from iojoule.sim.device import DeviceConfig
from iojoule.sim.engines import Engine, RunOptions
from iojoule.sim.errors import TraceError
from iojoule.sim.result import ScenarioResult
from iojoule.sim.workload import Scenario


class TraceFiles:
    """Files by their path; a copy in another process has copies of the files.

    Args:
        paths: Of this machine; what is missing is left to whoever replays it.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self._here = {path: path for path in sorted(set(paths)) if Path(path).is_file()}

    def __getstate__(self) -> dict[str, bytes]:
        return {path: Path(here).read_bytes() for path, here in self._here.items()}

    def __setstate__(self, content: dict[str, bytes]) -> None:
        folder = Path(mkdtemp(prefix="iojoule-traces-"))
        weakref.finalize(self, rmtree, folder, ignore_errors=True)
        self._here = {}
        for number, (path, told) in enumerate(content.items()):
            here = folder / f"{number}{Path(path).suffix}"
            here.write_bytes(told)
            self._here[path] = str(here)

    def run(
        self, engine: Engine, device: DeviceConfig, scenario: Scenario, options: RunOptions
    ) -> ScenarioResult:
        """`engine.run`, whose result and errors name the files as the scenario does."""
        used = {f.trace_path for f in scenario.flows if f.trace_path in self._here}
        if not used:
            return engine.run(device, scenario, options)
        flows = tuple(
            flow.model_copy(update={"trace_path": self._here.get(flow.trace_path, flow.trace_path)})
            for flow in scenario.flows
        )
        try:
            result = engine.run(device, Scenario(flows=flows), options)
        except TraceError as error:
            raise self._named(error) from None
        return result.model_copy(
            update={
                "flows": tuple(
                    flow.model_copy(update={"name": self._there(flow.name)})
                    for flow in result.flows
                ),
                "warnings": tuple(map(self._there, result.warnings)),
            }
        )

    def _there(self, text: str) -> str:
        for path, here in self._here.items():
            text = text.replace(here, path)
        return text

    def _named(self, error: TraceError) -> TraceError:
        named = TraceError(self._there(error.message), field=error.field)
        named.path, named.line = self._there(error.path), error.line
        return named
