"""Settings of drive and host for a campaign and its runs, as restorable changes."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from iojoule.datasets.schema import Configuration
from iojoule.datasets.vocabulary import BYPASSING_ENGINES
from iojoule.measure.campaign.plan import Plan
from iojoule.measure.campaign.rig import DriveFacts
from iojoule.measure.drive.block_device import BlockDevice
from iojoule.measure.drive.nvme import POWER_MANAGEMENT, VOLATILE_WRITE_CACHE, NvmeController
from iojoule.measure.drive.power_measurement import (
    NO_LIMIT,
    POWER_LIMIT,
    limit_watts,
    power_word,
)
from iojoule.measure.errors import DriveError, HostStateError
from iojoule.measure.host.changes import (
    NvmeFeature,
    NvmeTransitions,
    PowerLevel,
    Setting,
    StandbyTimer,
    SysfsValue,
)
from iojoule.measure.host.facts import HostControls
from iojoule.measure.host.host_files import GOVERNOR
from iojoule.measure.point import Point


def power_state(controller: NvmeController) -> NvmeFeature:
    """The power state of a controller as a change."""
    return NvmeFeature(str(controller.node), controller.namespace, POWER_MANAGEMENT)


def power_limit(controller: NvmeController) -> NvmeFeature:
    """The power limit of a controller as a change."""
    return NvmeFeature(str(controller.node), controller.namespace, POWER_LIMIT)


def require_no_limit(drive: DriveFacts, controller: NvmeController | None) -> None:
    """Refuse a drive under a power limit; raises DriveError with the command to lift it."""
    if controller is None or drive.controller is None or not drive.controller.limits_power:
        return
    change = power_limit(controller)
    present = limit_watts(int(change.get()))
    if present is not None:
        raise DriveError(
            f"{controller.node}: its power is limited to {present:g} W, where what is measured "
            f"without a limit does not hold; lift it: {change.command(str(NO_LIMIT))}"
        )


def of_power(
    state: int | None, limit: float | None, controller: NvmeController
) -> Iterator[Setting]:
    """Power state and limit in watts, the limit first: states above it are not available.

    Raises DriveError if no power limit holds so many watts.
    """
    if limit is not None:
        yield power_limit(controller), str(power_word(limit) if limit else NO_LIMIT)
    if state is not None:
        yield power_state(controller), str(state)


def sweeps_limit(points: Iterable[Point]) -> bool:
    """Whether a plan says for its points which power limit is in force."""
    return any(point.configuration.power_limit_watts is not None for point in points)


def resting_powers(points: Iterable[Point]) -> list[tuple[int | None, float | None]]:
    """Power states and limits of the points, in which idle power is measured.

    None is left as it is; it counts only where no point states a power state.
    """
    powers = {
        (point.configuration.power_state, point.configuration.power_limit_watts) for point in points
    }
    stated = {each for each in powers if each[0] is not None}
    return sorted(stated or powers, key=lambda each: (each[0] or 0, each[1] or 0.0))


def wake(device: BlockDevice) -> None:
    """Read a block, so that a sleeping drive returns to its operational state.

    Only then its power state is the one to restore. Raises DriveError if it cannot be read.
    """
    try:
        # direct, or the page cache answers for the drive
        handle = os.open(device.path, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC)
        try:
            with mmap.mmap(-1, max(device.block_bytes, mmap.PAGESIZE)) as buffer:
                os.preadv(handle, [buffer], 0)
        finally:
            os.close(handle)
    except OSError as error:
        raise DriveError(f"{device.path}: cannot be read ({error.strerror})") from None


def transitions(controller: NvmeController) -> NvmeTransitions:
    """The autonomous transitions of a controller as a change."""
    return NvmeTransitions(str(controller.node), controller.namespace)


def of_campaign(
    plan: Plan,
    points: Sequence[Point],
    device: BlockDevice,
    controller: NvmeController | None,
    has_apst: bool,
) -> Iterator[Setting]:
    """Settings of the whole campaign.

    Autonomous transitions are switched off where power states are swept, unless the plan sweeps
    them too: they would leave the state of the run.
    """
    for name, value in plan.host.queue.items():
        yield SysfsValue(str(device.queue(name))), str(value)
    for path, value in plan.host.files.items():
        yield SysfsValue(path), str(value)
    if plan.host.apm_level is not None:
        yield PowerLevel(str(device.path)), str(plan.host.apm_level)
    if controller is None:
        return
    if plan.host.volatile_write_cache is not None:
        feature = NvmeFeature(str(controller.node), controller.namespace, VOLATILE_WRITE_CACHE)
        yield feature, str(int(plan.host.volatile_write_cache))
    swept = any(point.configuration.power_state is not None for point in points)
    own = any(point.configuration.apst_enabled is not None for point in points)
    if has_apst and swept and not own:
        change = transitions(controller)
        yield change, change.switched(False)


def of_run(
    configuration: Configuration, device: BlockDevice, controller: NvmeController | None
) -> Iterator[Setting]:
    """Settings of one run. Raises HostStateError if the host offers no such setting."""
    if configuration.scheduler is not None and configuration.engine not in BYPASSING_ENGINES:
        yield SysfsValue(str(device.queue("scheduler"))), configuration.scheduler.value
    if configuration.cpu_governor is not None:
        files = GOVERNOR.find(device.sysfs)
        yield from _every_cpu(
            device, ((SysfsValue(str(file)), configuration.cpu_governor) for file in files)
        )
    if configuration.cpu_frequency_max_hertz is not None:
        limits = HostControls(device.sysfs).frequency(configuration.cpu_frequency_max_hertz)
        yield from _every_cpu(device, limits)
    if configuration.cstate_limit is not None:
        states = list(HostControls(device.sysfs).sleep_states_up_to(configuration.cstate_limit))
        if not states:
            raise HostStateError(
                "this host has no cpuidle, so cstate_limit cannot be set; leave the knob out of "
                "the plan"
            )
        yield from states
    yield from _resting(configuration, device)
    if controller is None:
        return
    if configuration.apst_enabled is not None:
        change = transitions(controller)
        yield change, change.switched(configuration.apst_enabled)
    yield from of_power(configuration.power_state, configuration.power_limit_watts, controller)


def _resting(configuration: Configuration, device: BlockDevice) -> Iterator[Setting]:
    """How a SATA drive may rest between requests."""
    if configuration.link_power_policy is not None:
        file = device.link_policy()
        if file is None:
            raise HostStateError(
                f"{device.path}: its port has no link power policy (no SATA port, or one behind a "
                "RAID controller); leave link_power_policy out of the plan"
            )
        yield SysfsValue(str(file)), configuration.link_power_policy.value
    if configuration.standby_timer_seconds is not None:
        if not device.rotates:
            raise DriveError(
                f"{device.path}: has no platters that could stop; leave standby_timer_seconds out "
                "of the plan"
            )
        yield StandbyTimer(str(device.path)), f"{configuration.standby_timer_seconds:g}"


def _every_cpu(device: BlockDevice, settings: Iterable[Setting]) -> list[Setting]:
    listed = list(settings)
    if not listed:
        raise HostStateError(
            f"{Path(device.sysfs) / 'devices/system/cpu'}: this host has no cpufreq (a virtual "
            "machine?), so cpu_governor and cpu_frequency_max_hertz cannot be set; leave them out "
            "of the plan"
        )
    return listed
