"""What the host is: the conditions of a run that its settings do not say."""

from __future__ import annotations

import hashlib
import os
import platform
from dataclasses import dataclass
from pathlib import Path

SYSFS = Path("/sys")
PROC = Path("/proc")


@dataclass(frozen=True)
class HostFacts:
    """Facts of the host; None = it does not say.

    Attributes:
        host_id: A hash of the machine's identity: tells hosts apart without naming them.
        cpu_model: As /proc/cpuinfo names it.
        cpu_cores: Processors this process may use.
        kernel_version: Release of the kernel.
        turbo_enabled: Whether the CPU may exceed its base frequency.
        smt_enabled: Whether cores run several threads.
        aspm_policy: PCIe link power management.
    """

    host_id: str
    cpu_model: str | None
    cpu_cores: int
    kernel_version: str
    turbo_enabled: bool | None
    smt_enabled: bool | None
    aspm_policy: str | None


def host_facts(*, sysfs: Path = SYSFS, proc: Path = PROC) -> HostFacts:
    """Read the facts of this host."""
    return HostFacts(
        host_id=_host_id(),
        cpu_model=_cpu_model(proc),
        cpu_cores=len(os.sched_getaffinity(0)),
        kernel_version=platform.release(),
        turbo_enabled=_turbo(sysfs),
        smt_enabled=_flag(_text(sysfs / "devices/system/cpu/smt/active")),
        aspm_policy=_chosen(_text(sysfs / "module/pcie_aspm/parameters/policy")),
    )


def _host_id() -> str:
    identity = _text(Path("/etc/machine-id")) or platform.node()
    return "host-" + hashlib.sha256(f"iojoule {identity}".encode()).hexdigest()[:12]


def _cpu_model(proc: Path) -> str | None:
    for line in (_text(proc / "cpuinfo") or "").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return None


def _turbo(sysfs: Path) -> bool | None:
    """intel_pstate says it negated, cpufreq's boost directly."""
    negated = _flag(_text(sysfs / "devices/system/cpu/intel_pstate/no_turbo"))
    if negated is not None:
        return not negated
    return _flag(_text(sysfs / "devices/system/cpu/cpufreq/boost"))


def _text(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None


def _flag(text: str | None) -> bool | None:
    return {"0": False, "1": True}.get(text or "")


def _chosen(text: str | None) -> str | None:
    if text is None or "[" not in text:
        return text
    return text.partition("[")[2].partition("]")[0]
