"""What a drive's joules cost by command and byte, as a file for other programs.

The law of power that a profile holds (`model.evaluate.device_power`), in power state 0, with what
other programs can count: commands, bytes and the share of time with a command in flight
(`node_disk_io_time_seconds_total` of node_exporter, field 10 of /proc/diskstats). It leaves out
what the meter follows besides: sleep, the settle time, caps, and when background work is done.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from iojoule import __version__
from iojoule.datasets.errors import NoProfileError
from iojoule.datasets.profile import DeviceProfile, Parameter
from iojoule.datasets.vocabulary import Evidence
from iojoule.model.evaluate.quantities import NORMAL_90

_FACTORS = {
    "idle_watts": None,
    "awake_watts": "io_time_share",
    "read_command_joules": "reads_per_second",
    "read_byte_joules": "bytes_read_per_second",
    "write_command_joules": "writes_per_second",
    "write_byte_joules": "bytes_written_per_second",
    "background_byte_joules": "bytes_written_per_second",
}
"""What each coefficient is multiplied with."""

_SERIES = {
    "idle_watts": None,
    "awake_watts": "node_disk_io_time_seconds_total",
    "read_command_joules": "node_disk_reads_completed_total",
    "read_byte_joules": "node_disk_read_bytes_total",
    "write_command_joules": "node_disk_writes_completed_total",
    "write_byte_joules": "node_disk_written_bytes_total",
    "background_byte_joules": "node_disk_written_bytes_total",
}
"""The counter of node_exporter whose rate that is."""


@dataclass(frozen=True)
class Coefficient:
    """A number with its 90 % interval, in W or J, and what it rests on."""

    value: float
    low: float
    high: float
    unit: str
    evidence: Evidence
    source: str

    @classmethod
    def of(cls, parameter: Parameter, unit: str, less: float = 0.0) -> Coefficient:
        """A parameter of a profile, less a number; never below 0."""
        value, half = parameter.value - less, NORMAL_90 * parameter.sd
        low, middle, high = (float(max(one, 0.0)) for one in (value - half, value, value + half))
        return cls(middle, low, high, unit, parameter.evidence, parameter.source)


def formula(found: Collection[str]) -> str:
    """Watts by the coefficients of these names."""
    factors = [(name, factor) for name, factor in _FACTORS.items() if name in found]
    terms = [f"{name} * {factor}" if factor else name for name, factor in factors]
    return f"watts = {' + '.join(terms)}"


def coefficients(profile: DeviceProfile) -> dict[str, Coefficient]:
    """The coefficients of `formula` that the profile knows, by name.

    Raises:
        NoProfileError: The profile knows no watts of the drive.
    """
    power = profile.device_power
    if power is None:
        raise NoProfileError(
            f"{profile.device}: this profile knows no watts of the drive; measure it with a power "
            "meter"
        )
    base, read_byte, read_command, write_byte, write_command, _ = power.parameters
    idle = power.idle_watts[0]
    found = {
        "idle_watts": Coefficient.of(idle, "W"),
        "awake_watts": Coefficient.of(base, "W", less=idle.value),
        "read_command_joules": Coefficient.of(read_command, "J"),
        "read_byte_joules": Coefficient.of(read_byte, "J"),
        "write_command_joules": Coefficient.of(write_command, "J"),
        "write_byte_joules": Coefficient.of(write_byte, "J"),
    }
    if profile.write_state is not None:
        background = profile.write_state.background_joules_per_byte
        found["background_byte_joules"] = Coefficient.of(background, "J")
    elif profile.work_after_writes is not None:
        work = profile.work_after_writes.joules_per_byte
        linear = work.model_copy(update={"sd": work.value * work.sd})
        found["background_byte_joules"] = Coefficient.of(linear, "J")
    return found


def coefficients_document(profile: DeviceProfile) -> dict[str, Any]:
    """Them as JSON."""
    found = coefficients(profile)
    return {
        "schema_version": 1,
        "generator": f"iojoule {__version__}",
        "device": profile.device,
        "model": profile.model_name,
        "formula": formula(found),
        "interval": 0.9,
        "coefficients": {
            name: {
                "value": one.value,
                "low": one.low,
                "high": one.high,
                "unit": one.unit,
                "evidence": str(one.evidence),
                "source": one.source,
            }
            for name, one in found.items()
        },
    }


def recording_rules(profile: DeviceProfile, device: str = ".+") -> str:
    """Prometheus' rules that turn node_exporter's counters of a drive into watts, as YAML.

    Args:
        profile: Of the drive.
        device: Its name in node_exporter's label, a regular expression.
    """
    found = coefficients(profile)
    selector = f"{{device=~{json.dumps(device)}}}"  # with the escapes that PromQL takes
    lines = ["groups:", f"  - name: iojoule-{profile.device}", "    rules:"]
    for side in ("", "_low", "_high"):
        key = side.removeprefix("_") or "value"
        terms = [f"{np.format_float_scientific(getattr(found['idle_watts'], key), 6, trim='-')}"]
        for name, series in _SERIES.items():
            if series is not None and name in found:
                number = np.format_float_scientific(getattr(found[name], key), 6, trim="-")
                terms.append(f"{number} * rate({series}{selector}[5m])")
        lines += [
            f"      - record: iojoule:device_power{side}_watts",
            f"        expr: {' + '.join(terms)}",
            "        labels:",
            f"          profile: {profile.device}",
        ]
    return "\n".join(lines) + "\n"
