"""Facts of the host, and controls of its frequencies and sleep states."""

from __future__ import annotations

import hashlib
import math
import os
import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from iojoule.measure.host.changes import Setting, SysfsValue
from iojoule.measure.host.host_files import (
    FREQUENCY_MAX,
    GOVERNOR,
    PROC,
    SLEEP_DISABLE,
    SYSFS,
    file_text,
    value_in_force,
)


@dataclass(frozen=True)
class HostFacts:
    """Facts of the host; None = unknown. `host_id` is a hash of the machine's identity."""

    host_id: str
    cpu_model: str | None
    cpu_cores: int
    kernel_version: str
    turbo_enabled: bool | None
    smt_enabled: bool | None
    aspm_policy: str | None


def host_facts() -> HostFacts:
    """Read the facts of this host."""
    policy = file_text(SYSFS / "module/pcie_aspm/parameters/policy")
    return HostFacts(
        host_id=_host_id(),
        cpu_model=_cpu_model(),
        cpu_cores=len(os.sched_getaffinity(0)),
        kernel_version=platform.release(),
        turbo_enabled=_turbo(),
        smt_enabled=_flag(file_text(SYSFS / "devices/system/cpu/smt/active")),
        aspm_policy=value_in_force(policy) if policy else None,
    )


def _host_id() -> str:
    identity = file_text(Path("/etc/machine-id")) or platform.node()
    return "host-" + hashlib.sha256(f"iojoule {identity}".encode()).hexdigest()[:12]


def _cpu_model() -> str | None:
    for line in (file_text(PROC / "cpuinfo") or "").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return None


def _turbo() -> bool | None:
    """intel_pstate says it negated, cpufreq's boost directly."""
    negated = _flag(file_text(SYSFS / "devices/system/cpu/intel_pstate/no_turbo"))
    if negated is not None:
        return not negated
    return _flag(file_text(SYSFS / "devices/system/cpu/cpufreq/boost"))


def _flag(text: str | None) -> bool | None:
    return {"0": False, "1": True}.get(text or "")


@dataclass(frozen=True)
class SleepState:
    """A state of cpuidle as the kernel describes it."""

    name: str
    exit_latency_ns: float
    residency_ns: float


@dataclass(frozen=True)
class HostControls:
    """The files below `sysfs` (`/sys` or a tree like it) that set the processors."""

    sysfs: Path = SYSFS

    @property
    def _cpus(self) -> Path:
        return self.sysfs / "devices/system/cpu"

    def frequency_range_hertz(self) -> tuple[float, float] | None:
        """Lowest and highest frequency; None without cpufreq."""
        low, high = (
            _number(self._cpus / f"cpu0/cpufreq/cpuinfo_{end}_freq") for end in ("min", "max")
        )
        return None if low is None or high is None else (low * 1e3, high * 1e3)

    def base_hertz(self) -> float | None:
        """The highest frequency without turbo, where the driver tells."""
        base = _number(self._cpus / "cpu0/cpufreq/base_frequency")
        return None if base is None else base * 1e3

    def driver(self) -> str | None:
        """Name of the cpufreq driver."""
        return file_text(self._cpus / "cpu0/cpufreq/scaling_driver")

    def may_set_frequency(self) -> bool:
        """Whether frequencies can be set by this user."""
        return _writable(FREQUENCY_MAX.find(self.sysfs))

    def may_set_sleep(self) -> bool:
        """Whether sleep states can be switched off by this user."""
        return _writable(SLEEP_DISABLE.find(self.sysfs))

    def governor(self, name: str) -> Iterator[Setting]:
        """Every CPU under a governor that it offers, where this user may set it."""
        if not self.may_set_frequency():
            return
        for file in GOVERNOR.find(self.sysfs):
            offered = file_text(file.with_name("scaling_available_governors")) or ""
            if name in offered.split():
                yield SysfsValue(str(file)), name

    def frequency(self, hertz: float) -> Iterator[Setting]:
        """Every CPU held at or below a frequency, within its own range and at a step of its table.

        Linux takes the same one (cpufreq_set_policy), and the value read back has to be it.
        """
        for file in FREQUENCY_MAX.find(self.sysfs):
            low, high = (_number(file.with_name(f"cpuinfo_{end}_freq")) for end in ("min", "max"))
            steps = [
                int(text)
                for kind in ("available", "boost")
                for text in (file_text(file.with_name(f"scaling_{kind}_frequencies")) or "").split()
                if text.isdigit()
            ]
            limit = round(min(max(hertz / 1e3, low or 0.0), high or math.inf))
            below = [step for step in steps if step <= limit]
            yield SysfsValue(str(file)), str(max(below, default=min(steps, default=limit)))

    def sleep_states(self) -> list[SleepState]:
        """Sleep states, shallowest first; empty without cpuidle."""
        folders = self._cpus.glob("cpu0/cpuidle/state[0-9]*")
        return [
            SleepState(
                file_text(folder / "name") or folder.name,
                (_number(folder / "latency") or 0.0) * 1e3,
                (_number(folder / "residency") or 0.0) * 1e3,
            )
            for folder in sorted(folders, key=_place)
        ]

    def deepest_sleep(self) -> int | None:
        """Number of the deepest state that every CPU may use; None without cpuidle."""
        allowed: dict[int, bool] = {}
        for file in SLEEP_DISABLE.find(self.sysfs):
            place = _place(file.parent)
            allowed[place] = allowed.get(place, True) and file_text(file) == "0"
        return max((place for place, each in allowed.items() if each), default=None)

    def sleep_limit(self, limit: int) -> Iterator[Setting]:
        """Every CPU kept from states deeper than a limit."""
        for file in SLEEP_DISABLE.find(self.sysfs):
            if _place(file.parent) > limit:
                yield SysfsValue(str(file)), "1"

    def sleep_states_up_to(self, limit: int) -> Iterator[Setting]:
        """Every CPU allowed the states up to a limit and kept from deeper ones."""
        for file in SLEEP_DISABLE.find(self.sysfs):
            yield SysfsValue(str(file)), str(int(_place(file.parent) > limit))


def _place(folder: Path) -> int:
    return int(folder.name.removeprefix("state"))


def _writable(files: Sequence[Path]) -> bool:
    return bool(files) and all(os.access(file, os.W_OK) for file in files)


def _number(path: Path) -> float | None:
    text = file_text(path)
    try:
        return float(text) if text else None
    except ValueError:
        return None
