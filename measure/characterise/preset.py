"""A simulator preset from a characterisation: `iojoule simulate --ssd preset.toml`.

Estimates have the source "measured"; everything else is carried from a named preset and says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from iojoule.datasets.characteristics import Characteristics, Estimate
from iojoule.measure.characterise.report import interval
from iojoule.sim.device import DeviceConfig
from iojoule.sim.formats.files import read_drive
from iojoule.sim.formats.toml import Drive, parse_toml, read_drive_toml, write_drive_toml
from iojoule.sim.physical_options import PowerState
from iojoule.sim.presets import drive_path

DEFAULT_BASE = "samsung-980-pro-1tb"
_LEAST_BLOCKS, _LEAST_PAGES = 64, 48
_BUFFER_SHARE = 32
_CELL_BITS = {"slc": 1, "mlc": 2, "tlc": 3}


class _Builder:
    """Fields of a drive that replace those of the base, each with its source."""

    def __init__(self, base: Drive, base_name: str) -> None:
        self.flat: dict[str, Any] = base.device.model_dump(mode="json")
        self.physical: dict[str, Any] = self.flat["physical"]
        self.sources = {
            name: f"assumed: carried from {base_name} ({source})"
            for name, source in base.sources.items()
        }

    def set_flat(self, name: str, value: Any, source: str) -> None:
        self.flat[name] = value
        self.sources[name] = source

    def set_physical(self, group: str, name: str, value: Any, source: str) -> None:
        self.physical[group][name] = value
        self.sources[f"physical.{group}.{name}"] = source


def preset_text(characteristics: Characteristics, base_name: str = DEFAULT_BASE) -> str:
    """The preset's file. Raises InputError if `base_name` (a preset or a file) is no drive."""
    base = read_drive(drive_path(base_name)).drive
    builder = _Builder(base, base_name)
    for add in _PARTS:
        add(builder, characteristics)
    device = DeviceConfig.model_validate(builder.flat)
    text = write_drive_toml(Drive(device, characteristics.drive.model, builder.sources))
    read_drive_toml(parse_toml(text.encode(), "preset.toml"), "preset.toml", lambda _: None)
    return text


def _measured(experiment: str, estimate: Estimate) -> str:
    return f"measured: question {experiment}, {interval(estimate)}"


def _capacity(builder: _Builder, characteristics: Characteristics) -> None:
    """Blocks enough for the capacity; a base of another size is scaled, smallest parts last."""
    flat = builder.flat
    unit = characteristics.estimate("alignment", "read_unit_bytes")
    if unit is not None and unit.low == unit.high and unit.value is not None:
        builder.set_flat("page_bytes", int(unit.value), _measured("alignment", unit))
    wanted = characteristics.drive.capacity_bytes / (1 - flat["overprovisioning_ratio"])

    def blocks() -> int:
        planes = (
            flat["channels"]
            * flat["chips_per_channel"]
            * flat["dies_per_chip"]
            * flat["planes_per_die"]
        )
        return round(float(wanted / planes / flat["pages_per_block"] / flat["page_bytes"]))

    scaled = "assumed: scaled with the capacity"
    for name, least in (
        ("pages_per_block", _LEAST_PAGES),
        ("chips_per_channel", 1),
        ("planes_per_die", 1),
        ("channels", 1),
    ):
        while blocks() < _LEAST_BLOCKS and flat[name] // 2 >= least:
            builder.set_flat(name, flat[name] // 2, scaled)
    source = f"measured: the drive says it has {characteristics.drive.capacity_bytes} bytes"
    builder.set_flat("blocks_per_plane", max(blocks(), 8), source)


def _units(builder: _Builder, characteristics: Characteristics) -> None:
    unit = characteristics.estimate("alignment", "mapping_unit_bytes")
    page = builder.flat["page_bytes"]
    if unit is not None and unit.value is not None and page % int(unit.value) == 0:
        source = _measured("alignment", unit)
        builder.set_physical("nand", "mapping_unit_bytes", int(unit.value), source)
    elif page % (builder.physical["nand"]["mapping_unit_bytes"] or page):
        builder.set_physical("nand", "mapping_unit_bytes", 0, "assumed: a page")
    if characteristics.drive.max_transfer_bytes is not None:
        builder.set_physical(
            "controller",
            "max_transfer_bytes",
            characteristics.drive.max_transfer_bytes,
            "measured: MDTS of Identify Controller",
        )


def _cache(builder: _Builder, characteristics: Characteristics) -> None:
    flat = builder.flat
    bits = _CELL_BITS.get(str(flat["flash_technology"]), 3)
    # by power it is the flash alone; by rate it holds what the write buffer still takes
    size = characteristics.estimate(
        "slc-cache", "cache_bytes_by_power"
    ) or characteristics.estimate("slc-cache", "cache_bytes")
    block = flat["pages_per_block"] // bits * flat["page_bytes"]
    planes = (
        flat["channels"]
        * flat["chips_per_channel"]
        * flat["dies_per_chip"]
        * flat["planes_per_die"]
    )
    if size is not None and size.value is not None:
        blocks = min(max(1, round(size.value / planes / block)), flat["blocks_per_plane"] // 2)
        source = f"{_measured('slc-cache', size)}; the write buffer is in it"
        builder.set_physical("slc", "static_blocks_per_plane", blocks, source)
        buffer = min(flat["cache_bytes"], max(1 << 20, round(size.value / _BUFFER_SHARE)))
        reason = "assumed: small, since what it holds is contained in the write cache's size"
        builder.set_flat("cache_bytes", buffer, reason)
        builder.set_physical("slc", "dynamic_blocks_per_plane", 0, source)
    else:
        missing = "assumed: none, since no fall of the write rate was found"
        builder.set_physical("slc", "static_blocks_per_plane", 0, missing)
        builder.set_physical("slc", "dynamic_blocks_per_plane", 0, missing)
    delay = characteristics.estimate("slc-cache", "fold_delay_seconds")
    if delay is not None and delay.value is not None:
        source = _measured("slc-cache", delay)
        builder.set_physical("slc", "fold_idle_ns", round(delay.value * 1e9), source)


def _power(builder: _Builder, characteristics: Characteristics) -> None:
    idle = characteristics.estimate("idle", "idle_watts_ps0")
    if idle is not None and idle.value is not None:
        source = _measured("idle", idle)
        # the base's DRAM and link draw their part of what was measured of the whole drive
        energy = builder.physical["energy"]
        parts = (energy["dram_refresh_watts"] or 0.0) + (energy["link_idle_watts"] or 0.0)
        rest = f"{source}; less dram_refresh_watts and link_idle_watts"
        builder.set_physical("energy", "controller_idle_watts", max(0.0, idle.value - parts), rest)
    if not characteristics.drive.power_states:
        return
    states, sources = [], []
    for declared in characteristics.drive.power_states:
        watts = characteristics.estimate("idle", f"idle_watts_ps{declared.index}")
        wake = characteristics.estimate("idle", f"wake_seconds_ps{declared.index}")
        exit_ns = declared.exit_latency_us * 1000
        if wake is not None and wake.value is not None:
            exit_ns = round(wake.value * 1e9)
            sources.append(f"PS{declared.index} exit {interval(wake)}")
        if watts is not None:
            sources.append(f"PS{declared.index} idle {interval(watts)}")
        state = PowerState(
            max_power_watts=declared.max_power_watts,
            operational=declared.operational,
            entry_latency_ns=declared.entry_latency_us * 1000,
            exit_latency_ns=exit_ns,
            idle_power_watts=(watts.value or 0.0) if watts is not None else 0.0,
        )
        states.append(state.model_dump(mode="json"))
    measured = f"measured: question idle, {'; '.join(sources)}" if sources else "measured: caps"
    source = f"{measured}; caps and other latencies as the drive declares them"
    builder.set_physical("power", "states", states, source)
    first = next(state.index for state in characteristics.drive.power_states if state.operational)
    builder.set_physical("power", "initial_state", first, "assumed: the first that serves I/O")
    unknown = "assumed: none; the drive's table of transitions was not asked"
    builder.set_physical("power", "autonomous_transitions", [], unknown)


_PARTS: tuple[Callable[[_Builder, Characteristics], None], ...] = (
    _capacity,
    _units,
    _cache,
    _power,
)
