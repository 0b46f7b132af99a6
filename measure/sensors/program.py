"""Any instrument through a program of the user's that prints one number and ends.

Watts are a reading, joules a counter that never falls. The first word of standard output counts.
"""

from __future__ import annotations

import math
import shlex

from iojoule.datasets.programs import find_program
from iojoule.measure.errors import SensorError
from iojoule.measure.sensors import Options
from iojoule.measure.sensors.polled import PolledSensor, program_output
from iojoule.measure.sensors.protocol import Kind, Probe, Rail, Scope

INTERVAL_SECONDS = 1.0
TIMEOUT_SECONDS = 5.0
KINDS = {"watts": Kind.POWER, "joules": Kind.ENERGY}


def from_options(options: Options) -> Program:
    """`program:COMMAND[,unit=watts|joules][,scope=device][,every=1]`; without a shell."""
    options.known("unit", "scope", "every")
    unit = options.get("unit", str) or "watts"
    if unit not in KINDS:
        raise SensorError(f"{options.text}: unit is one of {', '.join(KINDS)}")
    return Program(
        options.needed_address("program:/usr/local/bin/read-meter"),
        unit=unit,
        scope=options.scope(),
        interval_seconds=options.get("every", float) or INTERVAL_SECONDS,
    )


class Program(PolledSensor):
    """One program, run for each reading."""

    def __init__(
        self,
        command: str,
        *,
        unit: str = "watts",
        scope: Scope = Scope.DEVICE,
        interval_seconds: float = INTERVAL_SECONDS,
    ) -> None:
        super().__init__(f"program:{command}", interval_seconds, repeats_are_stale=False)
        try:
            self._command = shlex.split(command)
        except ValueError as error:
            raise SensorError(f"{command!r} is not a command ({error})") from error
        if not self._command:
            raise SensorError("program: names no command")
        self._rail = Rail("program", unit, KINDS[unit], scope)
        self._probe: Probe | None = None

    def probe(self) -> Probe:
        """Runs the program once. Raises SensorError if it fails or prints no number."""
        if self._probe is None:
            find_program(self._command[0], "state the path of your program", SensorError)
            self._value()
            self._probe = Probe((self._rail,), 1 / self._interval, {})
        return self._probe

    def poll(self) -> list[float]:
        """Watts or joules."""
        return [self._value()]

    def _value(self) -> float:
        output = program_output(
            self._command, timeout_seconds=TIMEOUT_SECONDS, package=self._command[0]
        )
        words = output.decode("utf-8", "replace").split()
        try:
            value = float(words[0]) if words else math.nan
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or value < 0:
            raise SensorError(
                f"{self.name}: must print a number of {self._rail.unit} first, not "
                f"{' '.join(words)[:40] or 'nothing'!r}"
            )
        return value
