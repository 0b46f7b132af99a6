"""What the meter's estimate of a drive rests on: its profile, and how it sleeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from iojoule.api.application.build_profile import expected_profile
from iojoule.api.application.profiles import profile_in, profile_of
from iojoule.datasets.catalogue import catalogued, load_catalogue
from iojoule.datasets.errors import NoProfileError, UnknownDeviceError
from iojoule.datasets.profile import DeviceProfile, load_shipped_profile, shipped_profiles
from iojoule.measure.drive.nvme import (
    AUTONOMOUS_TRANSITIONS,
    POWER_MANAGEMENT,
    POWER_STATE_MASK,
    NvmeController,
)
from iojoule.measure.drive.power_measurement import POWER_LIMIT, limit_watts
from iojoule.measure.drive.transition_table import Transition, chain_from, decode, linux_chain
from iojoule.meter.drives import MeteredDrive
from iojoule.meter.idle import Chain, Descent, descent
from iojoule.meter.idle_settings import read_settings
from iojoule.meter.idle_watts import State, rest_of
from iojoule.meter.readings import Basis
from iojoule.model.prior.classes import class_profile

PROFILE, CATALOGUE, CLASS = "profile", "catalogue", "class"
"""What an estimate rests on: a fit to measurements, facts of the model, or of its kind alone."""

BASIS_NAMES = {
    PROFILE: "a measured profile ships",
    CATALOGUE: "known by its data sheet",
    CLASS: "its model is not known; what drives of its kind do",
}
"""The same in words."""


IDLE_LEVELS = 2
"""Levels of a drive that does not sleep: awake and idle."""

LINUX_LATENCY_US = 100_000
"""What Linux lets the wake-up of an NVMe drive take, unless told otherwise
(nvme_core.default_ps_max_latency_us)."""


@dataclass(frozen=True)
class DriveState:
    """What a drive said of its power: five commands, which may wake it.

    Attributes:
        states: As it declares them.
        power_state: It is in now, or rests from.
        table: Its autonomous transitions; empty where they are switched off.
        power_limited: Whether somebody limits its power; None where it takes no limit.
    """

    states: Sequence[State]
    power_state: int
    table: tuple[Transition, ...]
    power_limited: bool | None = None


def ask(nvme: NvmeController) -> DriveState:
    """Ask a drive; raises DriveError where it does not answer."""
    controller = nvme.identify()
    enabled = controller.has_apst and bool(nvme.feature(AUTONOMOUS_TRANSITIONS) & 1)
    said = DriveState(
        states=controller.power_states,
        power_state=0,
        table=decode(nvme.transitions()) if enabled else (),
        power_limited=False if controller.limits_power else None,
    )
    return ask_again(nvme, said)


def ask_again(nvme: NvmeController, said: DriveState) -> DriveState:
    """With state and limit that the host has set by now: one or two commands, which may wake it.

    Raises DriveError where it does not answer.
    """
    limits = said.power_limited is not None
    return replace(
        said,
        power_state=nvme.feature(POWER_MANAGEMENT) & POWER_STATE_MASK,
        power_limited=limit_watts(nvme.feature(POWER_LIMIT)) is not None if limits else None,
    )


def basis_of(
    drive: MeteredDrive,
    stated: Mapping[str, str],
    sysfs: Path,
    said: DriveState | None = None,
) -> Basis:
    """What the estimate of a drive rests on: what is stated, else its model, else its kind.

    Args:
        drive: Which.
        stated: Profiles by name of the drive.
        sysfs: Where it is mounted.
        said: What the drive said of itself; None where it was not asked. It is taken to be in
            power state 0 then, and to have the table of transitions that Linux sets.

    Raises:
        InputError: A stated profile cannot be read, or knows no watts.
    """
    profile, source = _profile_for(drive, stated)
    settings: tuple[tuple[str, Any], ...] = ()
    if drive.sleeps_by_itself and profile.idle is not None:
        settings = (("apst_enabled", True),)
    basis = Basis(profile, source, settings=settings)
    return _asleep(basis, drive, sysfs, said)


def in_state(basis: Basis, drive: MeteredDrive, sysfs: Path, said: DriveState) -> Basis:
    """The same where the drive is in another power state, or limited."""
    return _asleep(basis, drive, sysfs, said)


def sleep_saving_watts(basis: Basis, drive: MeteredDrive, sysfs: Path) -> float | None:
    """Watts that a drive which stays awake would save at rest by the table that Linux sets.

    None for one that sleeps already, and where its sleep states are not known.
    """
    if basis.sleep is not None and len(basis.sleep.watts) > IDLE_LEVELS:
        return None
    settings = read_settings(drive.name, sysfs=sysfs)
    model = catalogued(drive.model) if drive.model else None
    states = model.power_states if model else ()
    rest = rest_of(states, basis.profile, model, settings.link.sleeps)
    if rest is None or settings.supports_transitions is not True:
        return None
    known = [sleep.latency for sleep in rest.sleeps]
    chain = linux_chain(known, LINUX_LATENCY_US, settings.rule)
    if not chain:
        return None
    levels = descent(rest, chain).watts
    return max(rest.idle_watts.value - levels[-1].value, 0.0)


def _asleep(basis: Basis, drive: MeteredDrive, sysfs: Path, said: DriveState | None) -> Basis:
    """With its power state and what it falls through at rest, as far as they are known."""
    settings = read_settings(drive.name, sysfs=sysfs)
    model = catalogued(drive.model) if drive.model else None
    states = said.states if said else (model.power_states if model else ())
    rest = rest_of(states, basis.profile, model, settings.link.sleeps)
    state = said.power_state if said else 0
    operational = _operational(basis.profile)
    # a state that the profile knows nothing of: what it draws at full power is the best there is
    basis = replace(
        basis,
        power_state=state if state < operational else 0,
        power_limited=bool(said and said.power_limited),
    )
    if rest is None or (said is None and not drive.sleeps_by_itself):
        return basis
    known = [sleep.latency for sleep in rest.sleeps]
    asleep = [latency.state for latency in known]
    if state in asleep:  # the host put it there: it goes back as soon as it has served
        chain: Chain = ((state, 0),)
    elif said is not None:
        chain = chain_from(said.table, state, asleep)
    else:
        chain = linux_chain(known, settings.latency_tolerance_us or 0, settings.rule)
    sleep: Descent | None = descent(rest, chain) if chain or said else None
    return replace(basis, sleep=sleep)


def _operational(profile: DeviceProfile) -> int:
    """How many power states a profile knows in which the drive serves."""
    power = profile.device_power
    return len(power.cap_watts) if power is not None else 1


def _profile_for(drive: MeteredDrive, stated: Mapping[str, str]) -> tuple[DeviceProfile, str]:
    named = drive.stated(stated)
    if named is not None:
        profile = profile_in(Path(named)) if named.endswith(".json") else profile_of(named)
        if profile.device_power is None:
            raise NoProfileError(
                f"--profile {drive.name}={named}: it knows no watts of the drive; measure it with "
                "a power meter, or name another"
            )
        return profile, CATALOGUE if profile.device_power.is_expected else PROFILE
    known = _of_model(drive.model) if drive.model else None
    if known is not None:
        return known
    link = drive.link
    return (
        _of_class(
            drive.rotates,
            drive.transport == "nvme",
            drive.capacity_bytes,
            link.generation,
            link.lanes,
        ),
        CLASS,
    )


@cache
def _of_model(model: str) -> tuple[DeviceProfile, str] | None:
    """A shipped profile with watts, else what the catalogue lets expect; None for neither."""
    try:
        device = load_catalogue().get(model).id
    except UnknownDeviceError:
        return None
    if device in shipped_profiles():
        shipped = load_shipped_profile(device)
        if shipped.device_power is not None:
            return shipped, CATALOGUE if shipped.device_power.is_expected else PROFILE
    try:
        return expected_profile(device), CATALOGUE
    except NoProfileError:
        return None


@cache
def _of_class(
    rotates: bool, nvme: bool, capacity: int | None, generation: int | None, lanes: int | None
) -> DeviceProfile:
    """One profile for all drives of a kind, so that they are evaluated together."""
    return class_profile(
        rotates=rotates,
        nvme=nvme,
        capacity_bytes=capacity,
        pcie_generation=generation,
        pcie_lanes=lanes,
    )
