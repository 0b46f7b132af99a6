"""What rules the rest of a drive now, read from sysfs alone: no command goes to the drive.

Files: Documentation/ABI/testing/sysfs-bus-pci (link/*_aspm, d3cold_allowed), sysfs-devices-power
(control, runtime_*, pm_qos_latency_tolerance_us), Documentation/scsi/link_power_management_policy.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from iojoule.measure.drive.block_device import BlockDevice
from iojoule.measure.drive.transition_table import LinuxRule
from iojoule.measure.host.host_files import file_text, value_in_force
from iojoule.meter.drives import find_drives


@dataclass(frozen=True)
class RuntimePower:
    """Runtime power management of one device on the way to the drive; None: no such file.

    Attributes:
        device: Its name in sysfs, such as a PCI address.
        control: "on": never suspended, "auto": when idle.
        status: "active", "suspended" or "unsupported".
        active_seconds, suspended_seconds: Since it was added.
        autosuspend_delay_seconds: Idle time before.
        power_state: Of a PCI device, such as D0.
        d3cold_allowed: Of a PCI device.
    """

    device: str
    control: str | None
    status: str | None
    active_seconds: float | None
    suspended_seconds: float | None
    autosuspend_delay_seconds: float | None
    power_state: str | None
    d3cold_allowed: bool | None


@dataclass(frozen=True)
class LinkSleep:
    """Active state power management of the PCIe link; None: no such file.

    Attributes:
        policy: Of all links of the host.
        states: Name, such as l1_2_aspm -> whether it is enabled; what the link has not is absent.
    """

    policy: str | None
    states: dict[str, bool]

    @property
    def sleeps(self) -> bool | None:
        """Whether the link may enter a substate of L1; None where the host does not say."""
        substates = [
            self.states[name] for name in ("l1_1_aspm", "l1_2_aspm") if name in self.states
        ]
        if substates:
            return any(substates)
        if self.policy == "performance" or "l1_aspm" in self.states:
            return False  # sysfs has a file for each state of which the link is capable
        return True if self.policy == "powersupersave" else None


@dataclass(frozen=True)
class RestSettings:
    """What rules the rest of a drive; None: no such file, or not such a drive.

    Attributes:
        name, model, serial, firmware: As the kernel knows them.
        interface: "nvme", "scsi" (SATA and SAS), or "other".
        controller: Name of the NVMe controller.
        rotates: Whether it is a disk.
        latency_tolerance_us: Of an NVMe controller: Linux builds the table of transitions from it.
        supports_transitions: Whether the drive has APST: such a controller has that file.
        rule: Parameters of nvme_core.
        default_latency_us: What new controllers get as tolerance.
        force_apst: Whether quirks are ignored.
        link: Of the PCIe link.
        link_policy: Of a SATA port.
        runtime: Devices from the drive to the bus.
        manages_runtime_stop: Whether the kernel stops the disk when it is suspended.
    """

    name: str
    model: str | None
    serial: str | None
    firmware: str | None
    interface: str
    controller: str | None
    rotates: bool
    latency_tolerance_us: int | None
    supports_transitions: bool | None
    rule: LinuxRule
    default_latency_us: int | None
    force_apst: bool | None
    link: LinkSleep
    link_policy: str | None
    runtime: tuple[RuntimePower, ...]
    manages_runtime_stop: bool | None


def drive_names(sysfs: Path) -> list[str]:
    """Kernel names of the drives of a host, of each the first."""
    return [drive.name for drive in find_drives(sysfs).drives]


def block_device(name: str, sysfs: Path) -> BlockDevice:
    """The drive of a kernel name, from sysfs alone: the node is not opened."""
    folder = sysfs / "class" / "block" / name
    sectors = _number(folder / "size") or 0
    block = _number(folder / "queue" / "logical_block_size") or 512
    number = file_text(folder / "dev") or ""
    return BlockDevice(Path("/dev") / name, name, number, 512 * sectors, block, sysfs)


def read_settings(name: str, *, sysfs: Path) -> RestSettings:
    """What rules the rest of the drive of this kernel name, below a root such as /sys."""
    drive = block_device(name, sysfs)
    controller = _controller(drive)
    device = (controller if controller is not None else drive.folder) / "device"
    tolerance = _tolerance(controller) if controller is not None else None
    policy = drive.link_policy()
    parameters = sysfs / "module" / "nvme_core" / "parameters"
    scsi = (drive.folder / "device" / "scsi_disk").is_dir()
    return RestSettings(
        name=name,
        model=drive.attribute("device/model") or _text_below(controller, "model"),
        serial=drive.attribute("device/serial") or _text_below(controller, "serial"),
        firmware=_text_below(controller, "firmware_rev") or drive.attribute("device/rev"),
        interface="nvme" if controller is not None else "scsi" if scsi else "other",
        controller=controller.resolve().name if controller is not None else None,
        rotates=drive.rotates,
        latency_tolerance_us=tolerance,
        supports_transitions=tolerance is not None if controller is not None else None,
        rule=_rule(parameters),
        default_latency_us=_number(parameters / "default_ps_max_latency_us"),
        force_apst=_flag(parameters / "force_apst"),
        link=_link(device, sysfs),
        link_policy=file_text(policy) if policy is not None else None,
        runtime=tuple(_runtime(device, sysfs)),
        manages_runtime_stop=_flag_of(drive, "manage_runtime_start_stop"),
    )


ANY_LATENCY_US = 2**31 - 1
"""Tolerance of a controller whose file says `any` or `auto` (PM_QOS_LATENCY_ANY)."""


def _tolerance(controller: Path) -> int | None:
    file = controller / "power" / "pm_qos_latency_tolerance_us"
    return ANY_LATENCY_US if file_text(file) in ("any", "auto") else _number(file)


def _controller(drive: BlockDevice) -> Path | None:
    node = drive.controller_node()
    if node is None:
        return None
    below = drive.folder / "device"
    return below if (below / "transport").exists() else drive.sysfs / "class" / "nvme" / node.name


def _rule(parameters: Path) -> LinuxRule:
    names = {
        "primary_timeout_ms": "apst_primary_timeout_ms",
        "secondary_timeout_ms": "apst_secondary_timeout_ms",
        "primary_latency_us": "apst_primary_latency_tol_us",
        "secondary_latency_us": "apst_secondary_latency_tol_us",
    }
    values = {name: _number(parameters / file) for name, file in names.items()}
    return LinuxRule(**{name: value for name, value in values.items() if value is not None})


def _link(device: Path, sysfs: Path) -> LinkSleep:
    policy = file_text(sysfs / "module" / "pcie_aspm" / "parameters" / "policy")
    files = sorted((device / "link").glob("*"))
    states = {file.name: value for file in files if (value := _flag(file)) is not None}
    return LinkSleep(value_in_force(policy) if policy else None, states)


def _runtime(device: Path, sysfs: Path) -> Iterator[RuntimePower]:
    """The device and those above it up to the first on the PCI bus."""
    root = sysfs.resolve()
    folder = device.resolve()
    while folder != root and folder.is_relative_to(root):
        power = folder / "power"
        if (power / "control").exists():
            delay = _number(power / "autosuspend_delay_ms")
            yield RuntimePower(
                device=folder.name,
                control=file_text(power / "control"),
                status=file_text(power / "runtime_status"),
                active_seconds=_seconds(power / "runtime_active_time"),
                suspended_seconds=_seconds(power / "runtime_suspended_time"),
                autosuspend_delay_seconds=None if delay is None else delay / 1e3,
                power_state=file_text(folder / "power_state"),
                d3cold_allowed=_flag(folder / "d3cold_allowed"),
            )
        if (folder / "vendor").exists() and (folder / "class").exists():
            return
        folder = folder.parent


def _flag_of(drive: BlockDevice, name: str) -> bool | None:
    files = sorted((drive.folder / "device" / "scsi_disk").glob(f"*/{name}"))
    return _flag(files[0]) if files else None


def _text_below(folder: Path | None, name: str) -> str | None:
    return file_text(folder / name) if folder is not None else None


def _number(path: Path) -> int | None:
    text = file_text(path) or ""
    return int(text) if re.fullmatch(r"-?\d+", text) else None


def _seconds(path: Path) -> float | None:
    milliseconds = _number(path)
    return None if milliseconds is None else milliseconds / 1e3


def _flag(path: Path) -> bool | None:
    return {"1": True, "Y": True, "0": False, "N": False}.get(file_text(path) or "")
