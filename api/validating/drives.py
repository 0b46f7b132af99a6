"""Simulated drives, drawn at random, with physics that no model of `iojoule.model` has a term for.

A drive is a preset of the simulator (physical mode) with its flash, channels, firmware, energies
and power states drawn anew, beside a host whose power is drawn too. On top come effects that are
hidden from whoever fits a profile:

* leakage that grows with temperature and temperature with mean power, load and rest together;
* a price for splitting requests at the maximum transfer size, the most just at the limit;
* a power cap that engages above one level and then holds the drive at a lower one;
* cores that draw the less each, the more of them are busy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iojoule.sim.device import DeviceConfig
from iojoule.sim.formats.files import read_drive
from iojoule.sim.presets import preset_path

Floats = NDArray[np.float64]

STATES = (0, 1, 2)
"""Operational power states of every drive."""

SMALL: dict[str, Any] = {
    "blocks_per_plane": 48,
    "pages_per_block": 64,
    "gc_threshold": 0.1,
    "cache_bytes": 2 << 20,
    "physical": {
        "slc": {"static_blocks_per_plane": 0, "dynamic_blocks_per_plane": 0},
        "finish_background": False,
    },
}
"""Flash that is filled in milliseconds, and a cache that is soon full: steady state at once."""

KELVIN_PER_WATT = 8.0
"""A bare M.2 card in still air."""
LEAKAGE_KELVIN = 22.0
"""Leakage grows by e over so much, twofold over 15 K."""
MOST_KELVIN = 75.0
"""Above ambient; a controller throttles before it burns."""

SPLIT_SLOWER = {1: 1.20, 2: 1.06, 4: 1.12}
SPLIT_TAIL = {1: 1.4, 2: 1.1, 4: 1.25}
"""Factors on mean and p99 latency by request size over maximum transfer size."""

CAP_QUANTILES = (0.85, 0.6)
"""Of full-speed power over a table's configurations: where the cap engages, and where it holds."""


@dataclass(frozen=True)
class Host:
    """Power of the host's CPU: base + core x (busy cores) ^ exponent, W."""

    base_watts: float
    core_watts: float
    exponent: float = 0.9

    def watts(self, cores: Floats) -> Floats:
        """Mean power while so many cores are busy."""
        return self.base_watts + self.core_watts * cores**self.exponent


@dataclass(frozen=True)
class HiddenDrive:
    """A drive and what nobody is told of it.

    Attributes:
        name: How reports call it.
        states: The simulated drive in each of `STATES`.
        idle_watts: Power at rest in each of them, leakage apart.
        host: Of the CPU.
        leakage_watts: Leakage at ambient temperature; 0 is none.
        split_bytes: Maximum transfer size whose splitting costs extra; None is none.
        capped: Whether the cap with two levels acts.
    """

    name: str
    states: tuple[DeviceConfig, ...]
    idle_watts: tuple[float, ...]
    host: Host
    leakage_watts: float = 0.0
    split_bytes: int | None = None
    capped: bool = False

    @property
    def declared_caps_watts(self) -> tuple[float, ...]:
        """What the drive says of its power states."""
        return tuple(one.physical.power.states[0].max_power_watts for one in self.states)

    def with_leakage(self, watts: Floats) -> Floats:
        """Mean power with the leakage of the temperature that it leads to."""
        total = watts
        for _ in range(60):
            warmer = np.minimum(KELVIN_PER_WATT * total, MOST_KELVIN)
            total = watts + self.leakage_watts * np.expm1(warmer / LEAKAGE_KELVIN)
        return total


KINDS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("consumer, leaking", "samsung-980-pro-1tb", {"leakage_watts": 0.2}),
    ("consumer, splitting", "samsung-980-pro-1tb", {"split_bytes": 32768}),
    ("enterprise, capped", "samsung-pm9a3-960gb", {"capped": True}),
    ("enterprise, leaking", "samsung-pm9a3-960gb", {"leakage_watts": 0.1, "split_bytes": 65536}),
)
"""Name, preset and effects of the drives that are drawn."""


def draw_drives(seed: int, count: int = len(KINDS)) -> list[HiddenDrive]:
    """The first drives of this seed; the same seed gives the same drives."""
    return [_draw(np.random.default_rng([seed, 1, place]), place) for place in range(count)]


def _draw(source: np.random.Generator, place: int) -> HiddenDrive:
    name, preset, effects = KINDS[place]
    base = _varied(merged(read_drive(preset_path(preset)).device.model_dump(), SMALL), source)
    headroom = float(source.uniform(0.8, 4.0))
    slower = float(source.uniform(0.7, 0.9))
    states = tuple(_in_state(base, slower**state, headroom) for state in STATES)
    host = Host(float(source.uniform(2, 12)), float(source.uniform(1.5, 6)))
    return HiddenDrive(name, states, tuple(map(_idle_watts, states)), host, **effects)


def _varied(base: dict[str, Any], source: np.random.Generator) -> dict[str, Any]:
    """Another drive of the kind: geometry, times and energies drawn around the preset's."""

    def times(low: float, high: float) -> float:
        return float(np.exp(source.uniform(np.log(low), np.log(high))))

    energy, controller = base["physical"]["energy"], base["physical"]["controller"]
    drawn = {
        name: times(0.6, 1.6)
        for name, value in energy.items()
        if name.endswith(("_watts", "_joules", "_joules_per_byte")) and not name.startswith("page_")
    }
    energies = {name: energy[name] * by for name, by in drawn.items() if energy[name] is not None}
    # at rest a drive draws less than at work
    energies["controller_idle_watts"] = energies["controller_active_watts"] * times(0.4, 1.0)
    read, program = times(0.6, 1.8), times(0.6, 1.8)
    change = {
        "channels": int(source.choice([4, 8])),
        "chips_per_channel": int(source.choice([2, 4])),
        "page_read_ns": [int(each * read) for each in base["page_read_ns"]],
        "page_program_ns": [int(each * program) for each in base["page_program_ns"]],
        "channel_megatransfers_per_second": int(
            base["channel_megatransfers_per_second"] * times(0.7, 1.5)
        ),
        "physical": {
            "controller": {
                "command_latency_ns": int(controller["command_latency_ns"] * times(0.6, 2.0)),
                "command_occupancy_ns": int(controller["command_occupancy_ns"] * times(0.7, 2.0)),
            },
            "energy": energies,
        },
    }
    return merged(base, change)


def _in_state(base: dict[str, Any], factor: float, headroom: float) -> DeviceConfig:
    """The drive in a power state: slower, at less power, and capped."""
    energy, controller = base["physical"]["energy"], base["physical"]["controller"]
    floor = energy["controller_active_watts"] * factor + sum(
        energy[name] or 0.0
        for name in ("controller_busy_watts", "dram_refresh_watts", "link_active_watts")
    )
    change = {
        "channel_megatransfers_per_second": int(base["channel_megatransfers_per_second"] * factor),
        "physical": {
            "controller": {
                name: int(controller[name] / factor)
                for name in ("command_latency_ns", "command_occupancy_ns")
            },
            "energy": {
                name: energy[name] * factor
                for name in ("controller_idle_watts", "controller_active_watts")
            },
            # windows of seconds would not act on runs of milliseconds
            "power": {
                "states": [{"max_power_watts": round((floor + headroom * factor) / 0.8, 2)}],
                "initial_state": 0,
                "autonomous_transitions": [],
                "commands": [],
                "cap_window_ns": 2_000_000,
                "cap_burst_ns": 200_000,
                "cap_reopen_ns": 0,
            },
        },
    }
    return DeviceConfig.model_validate(merged(base, change))


def _idle_watts(drive: DeviceConfig) -> float:
    return drive.physical.energy.idle_watts


def merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """`base` with `changes`, nested tables merged."""
    result = dict(base)
    for name, value in changes.items():
        nested = isinstance(value, dict) and isinstance(result.get(name), dict)
        result[name] = merged(result[name], value) if nested else value
    return result
