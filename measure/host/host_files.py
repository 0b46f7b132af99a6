"""Files of the host: how they are read, and which may be written, each kind declared once.

Code finds its files by their declaration, a plan may name only declared files, and no journal or
undo file with an undeclared one is written or obeyed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path


def file_text(path: Path) -> str | None:
    """The text of a small file, without blanks at its ends; None where there is none."""
    try:
        return path.read_text("utf-8", "replace").strip() or None
    except OSError:
        return None


def value_in_force(text: str) -> str:
    """The value of a file; of a choice such as `[none] mq-deadline` the one in brackets."""
    chosen = re.search(r"\[([^\]]+)\]", text)
    return chosen[1] if chosen else text


SYSFS, PROC, _ETC = Path("/sys"), Path("/proc"), Path("/etc")


def boot_id() -> str | None:
    """Of this boot of the host; None = unknown."""
    return file_text(PROC / "sys" / "kernel" / "random" / "boot_id")


def process_fields(pid: int) -> list[str] | None:
    """Fields of a process from the third on (proc(5), stat), behind its name; None = it ended."""
    text = file_text(PROC / str(pid) / "stat")
    return text.rpartition(")")[2].split() if text else None


START_FIELD = 19
"""Of `process_fields`: start in clock ticks since boot."""


def process_start(pid: int) -> int | None:
    """Start of a process in clock ticks since boot; None = it no longer runs.

    With its number this identifies a process for good: numbers are reused. A zombie counts as
    ended.
    """
    fields = process_fields(pid)
    return None if fields is None or fields[0] in ("Z", "X") else int(fields[START_FIELD])


@dataclass(frozen=True)
class HostFiles:
    """Files of one kind; in the pattern `below`, `*` and `[0-9]` never match beyond one name."""

    root: Path
    below: str

    def __str__(self) -> str:
        return str(self.root / self.below)

    def find(self, root: Path) -> list[Path]:
        """Those there are below another root."""
        return sorted(root.glob(self.below))

    def path(self, root: Path, *names: str) -> Path:
        """The one below another root that has these names in place of the stars."""
        first, *rest = self.below.split("*")
        pairs = zip(names, rest, strict=True)
        return root / (first + "".join(name + piece for name, piece in pairs))

    def hold(self, path: Path) -> bool:
        """Whether a path is one of them and no link on its way leads out of their tree."""
        wanted = Path(str(self)).parts
        return (
            len(path.parts) == len(wanted)
            and ".." not in path.parts
            and all(map(fnmatchcase, path.parts, wanted))
            and path.resolve().is_relative_to(self.root)
        )


QUEUE = HostFiles(SYSFS, "class/block/*/queue/*")
SCHEDULER_OWN = HostFiles(SYSFS, "class/block/*/queue/iosched/*")
LINK_POLICY = HostFiles(SYSFS, "class/scsi_host/*/link_power_management_policy")
GOVERNOR = HostFiles(SYSFS, "devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor")
FREQUENCY_MAX = HostFiles(SYSFS, "devices/system/cpu/cpu[0-9]*/cpufreq/scaling_max_freq")
SLEEP_DISABLE = HostFiles(SYSFS, "devices/system/cpu/cpu[0-9]*/cpuidle/state[0-9]*/disable")

OF_KNOBS = (QUEUE, SCHEDULER_OWN, LINK_POLICY, GOVERNOR, FREQUENCY_MAX, SLEEP_DISABLE)
"""What knobs and recommendations set, and what that disturbs."""

_MODULES = (
    *("ahci", "cpufreq", "cpuidle", "haltpoll", "intel_idle", "libata", "nvme", "nvme_core"),
    *("pcie_aspm", "processor", "scsi_mod", "sd_mod", "workqueue"),
)

OF_PLANS = (
    *(HostFiles(SYSFS, f"module/{name}/parameters/*") for name in _MODULES),
    HostFiles(SYSFS, "block/*/queue/*"),
    HostFiles(SYSFS, "bus/pci/devices/*/link/*"),
    HostFiles(SYSFS, "bus/pci/devices/*/power/*"),
    HostFiles(SYSFS, "bus/pci/devices/*/d3cold_allowed"),
    HostFiles(SYSFS, "class/nvme/*/power/*"),
    HostFiles(SYSFS, "class/scsi_disk/*/*"),
    HostFiles(SYSFS, "devices/system/cpu/cpu[0-9]*/cpufreq/*"),
    HostFiles(SYSFS, "devices/system/cpu/cpu[0-9]*/online"),
    HostFiles(SYSFS, "devices/system/cpu/cpu[0-9]*/power/*"),
    HostFiles(SYSFS, "devices/system/cpu/cpufreq/boost"),
    HostFiles(SYSFS, "devices/system/cpu/cpufreq/policy[0-9]*/*"),
    HostFiles(SYSFS, "devices/system/cpu/amd_pstate/*"),
    HostFiles(SYSFS, "devices/system/cpu/intel_pstate/*"),
    HostFiles(SYSFS, "devices/system/cpu/cpuidle/*"),
    HostFiles(SYSFS, "devices/system/cpu/smt/control"),
    HostFiles(PROC, "irq/*/smp_affinity"),
    HostFiles(PROC, "irq/*/smp_affinity_list"),
    HostFiles(PROC, "irq/default_smp_affinity"),
    HostFiles(PROC, "sys/fs/aio-max-nr"),
    HostFiles(PROC, "sys/kernel/nmi_watchdog"),
    HostFiles(PROC, "sys/kernel/numa_balancing"),
    HostFiles(PROC, "sys/kernel/timer_migration"),
    HostFiles(PROC, "sys/vm/dirty_*"),
    HostFiles(PROC, "sys/vm/laptop_mode"),
    HostFiles(PROC, "sys/vm/swappiness"),
)
"""What a plan may name besides (`HostPlan.files`): what drives, their links and processors draw,
and when writes reach a drive. Nothing by which the kernel starts a program or finds one."""


@dataclass(frozen=True)
class GroupFiles(HostFiles):
    """Files of one name in every control group; these lie at any depth."""

    def hold(self, path: Path) -> bool:
        """Whether a path is one of them and no link on its way leads out of their tree."""
        below = path.resolve().is_relative_to(self.root) and path.is_relative_to(self.root)
        return below and path.name == self.below and ".." not in path.parts


_GROUPS = Path("/sys/fs/cgroup")

OF_GROUPS = (
    GroupFiles(_GROUPS, "io.max"),
    GroupFiles(_GROUPS, "blkio.throttle.read_bps_device"),
    GroupFiles(_GROUPS, "blkio.throttle.write_bps_device"),
)
"""Limits of best-effort control groups, by which a governor makes room."""

SETTABLE = (*OF_KNOBS, *OF_PLANS)

UDEV_RULE = HostFiles(_ETC, "udev/rules.d/71-iojoule-*.rules")
TMPFILE = HostFiles(_ETC, "tmpfiles.d/iojoule-*.conf")

OWN = (UDEV_RULE, TMPFILE)
"""Files of iojoule's own, by which settings outlast a restart: they are there whole or not."""
