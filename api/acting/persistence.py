"""Files that set the same again after a restart: a udev rule for the drive, tmpfiles for the CPUs.

Formats: udev(7) and tmpfiles.d(5). Neither is read by anything but systemd's own programs, which
every restart runs; taking a file away ends it, so that undoing needs no further command.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from iojoule import __version__
from iojoule.api.acting.proposal import Left, Proposal, Step
from iojoule.datasets.programs import optional_program
from iojoule.measure.campaign.rig import DriveFacts
from iojoule.measure.host.changes import NvmeFeature, SysfsValue, TextFile
from iojoule.measure.host.host_files import TMPFILE, UDEV_RULE

ETC = Path("/etc")

_HEADING = f"# Set by iojoule {__version__}; `iojoule undo` takes this file away.\n"
_NVME = "/usr/sbin/nvme"

_PLAIN = re.compile(r"[\w +./:#-]+", re.ASCII)
"""What a rule compares as it is: no pattern, and no end of the text, behind which a drive that
somebody made up could name a program."""


@dataclass(frozen=True)
class BootLines:
    """Lines of the two files, and what neither can hold.

    Attributes:
        name: Part of the files' names, from the drive's serial number.
        rules: Lines of the udev rule.
        values: Lines of the tmpfiles.d file.
        left: What cannot be made to last, with the reason.
    """

    name: str
    rules: tuple[str, ...]
    values: tuple[str, ...]
    left: tuple[Left, ...]

    def rule_path(self, etc: Path = ETC) -> Path:
        """Where udev looks for the rule."""
        return UDEV_RULE.path(etc, self.name)

    def values_path(self, etc: Path = ETC) -> Path:
        """Where systemd-tmpfiles looks for the values."""
        return TMPFILE.path(etc, self.name)


def boot_lines(drive: DriveFacts, steps: Sequence[Step]) -> BootLines:
    """Sort settings into lines of the udev rule, lines of the tmpfiles.d file, and the rest."""
    left: list[Left] = []
    rules: list[str] = []
    values: list[str] = []
    for step in steps:
        rule = _rule(step, drive)
        if rule is not None:
            rules.append(rule)
        elif isinstance(step.change, SysfsValue) and "/devices/system/cpu/" in step.change.path:
            values.append(f"w {step.change.path} - - - - {step.then}")
        else:
            left.append(Left(f"{step.what} after a restart", step.then, _why_not(step)))
    name = re.sub(r"[^A-Za-z0-9]+", "-", drive.serial).strip("-")
    return BootLines(name, tuple(rules), tuple(values), tuple(left))


def persistent(proposal: Proposal, etc: Path = ETC) -> tuple[tuple[Step, ...], tuple[Left, ...]]:
    """The files that make the steps of a proposal outlast a restart, as steps themselves.

    Returns:
        The steps, and what cannot be made to last, with the reason.

    Raises:
        HostStateError: A file that is there already cannot be read.
    """
    found = boot_lines(proposal.drive, proposal.steps)
    files = {
        found.rule_path(etc): found.rules,
        found.values_path(etc): found.values,
    }
    steps = []
    for path, lines in files.items():
        if lines:
            file = TextFile(str(path))
            text = _HEADING + "".join(f"{line}\n" for line in lines)
            steps.append(Step("after a restart", file, file.get(), text))
    return tuple(one for one in steps if one.now != one.then), found.left


def _rule(step: Step, drive: DriveFacts) -> str | None:
    """A udev rule that finds the drive by its serial number and not by its name."""
    device = drive.device
    serial = device.attribute("device/serial")
    if serial is None or _PLAIN.fullmatch(serial) is None:
        return None
    change = step.change
    if isinstance(change, NvmeFeature) and device.name.startswith("nvme"):
        program = optional_program("nvme") or _NVME
        return (
            # Linux adds a controller before it takes commands, and tells by a change that it does
            f'ACTION=="add|change", SUBSYSTEM=="nvme", KERNEL=="nvme[0-9]*", '
            f'ATTR{{serial}}=="{serial}", '
            f'RUN+="{program} set-feature /dev/%k --feature-id={change.identifier:#x} '
            f'--value={step.then}"'
        )
    if isinstance(change, SysfsValue) and Path(change.path).parent == device.queue("x").parent:
        attribute = Path(change.path).name
        return (
            f'ACTION=="add|change", SUBSYSTEM=="block", ENV{{DEVTYPE}}=="disk", '
            f'ATTRS{{serial}}=="{serial}", ATTR{{queue/{attribute}}}="{step.then}"'
        )
    return None


def _why_not(step: Step) -> str:
    if step.what.startswith("mount option"):
        return "put it into the line of /etc/fstab"
    if step.what == "apst_enabled":
        return "set nvme_core.default_ps_max_latency_us on the kernel's command line"
    if step.what == "standby_timer_seconds":
        return "put `spindown_time` for the drive into /etc/hdparm.conf"
    if step.what == "link_power_policy":
        return "set ahci.mobile_lpm_policy on the kernel's command line, which holds for all ports"
    return "the kernel knows no plain serial number of this drive, by which a rule could find it"
