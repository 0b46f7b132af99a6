"""IPMI: system power from a server's management controller over DCMI.

`ipmitool dcmi power reading`; controllers update once a second or more slowly. Source: DCMI 1.5,
6.6.1 (Get Power Reading), and ipmitool 1.8.19.
"""

from __future__ import annotations

import os
import re

from iojoule.measure.errors import SensorError
from iojoule.measure.sensors import Options
from iojoule.measure.sensors.polled import PolledSensor, program_output
from iojoule.measure.sensors.protocol import Kind, Probe, Rail, Scope

INTERVAL_SECONDS = 1.0
TIMEOUT_SECONDS = 10.0
_READING = re.compile(r"Instantaneous power reading\s*:\s*(\d+)\s*Watts", re.IGNORECASE)
_STATE = re.compile(r"Power reading state is\s*:\s*(\w+)", re.IGNORECASE)


def from_options(options: Options) -> Ipmi:
    """`ipmi[:HOST][,every=SECONDS]`; without a host, the controller of this machine."""
    options.known("every")
    every = options.get("every", float) or INTERVAL_SECONDS
    return Ipmi(options.address or None, interval_seconds=every)


class Ipmi(PolledSensor):
    """One management controller; None = this machine's, which needs root.

    Over the network: user IOJOULE_IPMI_USER; ipmitool itself reads the password from IPMI_PASSWORD.
    """

    def __init__(self, host: str | None, *, interval_seconds: float = INTERVAL_SECONDS) -> None:
        name = "ipmi" if host is None else f"ipmi:{host}"
        super().__init__(name, interval_seconds, repeats_are_stale=True, patience=2)
        self._host = host

    def probe(self) -> Probe:
        """Reads once.

        Raises SensorError if ipmitool is missing, or the controller measures no power.
        """
        self.poll()
        rail = Rail("system", "watts", Kind.POWER, Scope.SYSTEM, 1.0)
        return Probe((rail,), 1 / self._interval, {})

    def poll(self) -> list[float]:
        """Watts."""
        output = program_output(
            self._command(), timeout_seconds=TIMEOUT_SECONDS, package="ipmitool"
        )
        text = output.decode(errors="replace")
        reading, state = _READING.search(text), _STATE.search(text)
        if not reading or (state and state[1].lower() != "activated"):
            raise SensorError(
                f"{self.name}: the controller measures no power over DCMI "
                f"({text.strip().splitlines()[-1:] or 'it printed nothing'}): use redfish or a PDU"
            )
        return [float(reading[1])]

    def _command(self) -> list[str]:
        remote: list[str] = []
        if self._host is not None:
            user = os.environ.get("IOJOULE_IPMI_USER", "")
            # -E: the password from IPMI_PASSWORD, so that no list of processes shows it
            remote = ["-I", "lanplus", "-H", self._host, "-U", user, "-E"]
        return ["ipmitool", *remote, "dcmi", "power", "reading"]
