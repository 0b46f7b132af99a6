"""What this host has for iojoule: installed, allowed or missing, and the command that mends it."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from iojoule import __version__
from iojoule.datasets.errors import IojouleError
from iojoule.datasets.programs import optional_program

if TYPE_CHECKING:
    from iojoule.meter.drives import Inventory

State = Literal["ok", "missing", "not allowed", "limited"]


@dataclass(frozen=True)
class Check:
    """One thing that iojoule can use.

    Attributes:
        what: Its name.
        state: `ok`; `missing`: not there; `not allowed`: there, but not for this user; `limited`:
            iojoule works without it, and the detail says with which limits.
        detail: What was found, or what does not work without it.
        command: What to type; empty where nothing is to be done.
    """

    what: str
    state: State
    detail: str
    command: str = ""


EXTRAS = {
    "fit": ("pyarrow", "fit, import and measure; plots"),
    "service": ("fastapi", "serve: HTTP and the web page"),
    "dask": ("distributed", "--dask"),
    "otel": ("opentelemetry.sdk", "traces of the service"),
    "postgresql": ("psycopg", "--database postgresql://..."),
}
"""Extra -> a package that it installs, and what needs it."""

PROGRAMS = {
    "nvme": ("nvme-cli", "power states of NVMe drives (measure, apply, idle)"),
    "blktrace": ("blktrace", "workload observe --blktrace"),
    "smartctl": ("smartmontools", "facts of SATA drives"),
}
"""Program -> Debian's package, and what needs it."""


def checks(root: Path = Path("/"), machine: str | None = None) -> Iterator[Check]:
    """Everything, from the installation to the drives; nothing is changed and no drive is asked.

    Args:
        root: Where /proc and /sys are; another folder for tests.
        machine: Architecture; None: this machine's.
    """
    yield Check("iojoule", "ok", f"{__version__}, Python {platform.python_version()}")
    core = find_spec("iojoule.sim._core") is not None
    use = "compiled" if core else "simulate does not work without it"
    yield Check("simulator core", "ok" if core else "missing", use, "" if core else "make core")
    for extra, (package, use) in EXTRAS.items():
        there = _installed(package)
        yield Check(
            f"extra {extra}", "ok" if there else "missing", use,
            "" if there else f"pip install 'iojoule[{extra}]'",
        )  # fmt: skip
    yield _fio()
    for program, (package, use) in PROGRAMS.items():
        path = optional_program(program)
        yield Check(
            program, "missing" if path is None else "ok", use if path is None else path,
            f"sudo apt-get install {package}" if path is None else "",
        )  # fmt: skip
    yield _cpu_power(root, machine or platform.machine())
    yield _tracefs(root)
    yield _cgroups(root)
    yield from _drives(root)


def _installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # of the package around it
        return False


def _fio() -> Check:
    from iojoule.measure.fio import find_fio

    try:
        fio = find_fio()
    except IojouleError as error:
        return Check("fio", "missing", error.message, "sudo apt-get install fio")
    return Check("fio", "ok", f"{fio.path} {'.'.join(map(str, fio.version))}")


def _cpu_power(root: Path, machine: str) -> Check:
    """Whether the CPU's energy counters are there and readable."""
    what = "CPU energy (RAPL)"
    zones = sorted((root / "sys/class/powercap").glob("*/energy_uj"))
    readable = [zone for zone in zones if os.access(zone, os.R_OK)]
    answers = (
        "recommendations still answer, with the CPU watts of the reference host; a wall meter and "
        "`iojoule measure host` give this host's"
    )
    if readable:
        return Check(what, "ok", f"{len(readable)} counters below /sys/class/powercap")
    if zones:
        command = "sudo chmod a+r /sys/class/powercap/*/energy_uj"
        reason = "only root reads the counters, for they tell of other programs (CVE-2020-8694)"
        return Check(what, "not allowed", f"{reason}; {answers}", command)
    if machine in ("aarch64", "arm64"):
        return Check(what, "limited", f"{machine} has no such counters: {answers}")
    cpu = _text(root / "proc/cpuinfo")
    if "hypervisor" in cpu:
        return Check(what, "limited", f"a hypervisor hides the counters: {answers}")
    if "AuthenticAMD" in cpu:
        reason = "AMD: package counters need family 17h and Linux 5.8"
        return Check(what, "limited", f"{reason}; {answers}", "sudo modprobe intel_rapl_msr")
    return Check(what, "missing", f"no counters: {answers}", "sudo modprobe intel_rapl_msr")


def _tracefs(root: Path) -> Check:
    if "tracefs" not in _text(root / "proc/filesystems").split():
        return Check("tracefs", "limited", "this kernel has none: no block events, no blktrace")
    if any(line.split()[2:3] == ["tracefs"] for line in _text(root / "proc/mounts").splitlines()):
        return Check("tracefs", "ok", "mounted")
    return Check(
        "tracefs", "missing", "not mounted: no block events",
        "sudo mount -t tracefs tracefs /sys/kernel/tracing",
    )  # fmt: skip


def _cgroups(root: Path) -> Check:
    controllers = _text(root / "sys/fs/cgroup/cgroup.controllers").split()
    if "io" in controllers:
        return Check("cgroups", "ok", "version 2 with io: energy by unit and container")
    reason = "version 2, without io" if controllers else "no version 2"
    return Check(
        "cgroups",
        "limited",
        f"{reason}: the meter does not tell who causes requests; the kernel's command line can "
        "say systemd.unified_cgroup_hierarchy=1",
    )


def _drives(root: Path) -> Iterator[Check]:
    """Each drive, and what its answers rest on."""
    from iojoule.api.application.meter_basis import BASIS_NAMES, CLASS, basis_of
    from iojoule.meter.drives import find_drives

    sysfs = root / "sys"
    inventory = find_drives(sysfs)
    for drive in inventory.drives:
        basis = basis_of(drive, {}, sysfs)
        known = basis.source != CLASS
        yield Check(
            f"drive {drive.name}", "ok" if known else "limited",
            f"{drive.model or 'unnamed'}: {BASIS_NAMES[basis.source]}",
            "" if known else f"iojoule measure run --drive /dev/{drive.name} --plan quick",
        )  # fmt: skip
    if not inventory.drives:
        yield Check(
            "drives", "limited", why_no_drive(inventory),
            "iojoule recommend --device samsung-980-pro-1tb --workload ycsb-b",
        )  # fmt: skip


def why_no_drive(inventory: Inventory) -> str:
    """Why no block device of a host is a drive of its own."""
    from iojoule.meter.drives import LEFT_OUT

    names: dict[str, list[str]] = {}
    for name, code in inventory.left_out.items():
        names.setdefault(code, []).append(name)
    reasons = [
        f"{', '.join(some[:3])}{' ...' if some[3:] else ''}: {LEFT_OUT[code]}"
        for code, some in names.items()
    ]
    return f"no drive of this host's own ({'; '.join(reasons) or 'it has no block devices'})"


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
