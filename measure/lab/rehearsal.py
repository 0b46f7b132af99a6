"""A drive for the lab that behaves as a fitted profile says, so many times slower.

Nothing is made up silently: what the profile does not say is either refused or listed as a
stand-in, which `lab.json` and `iojoule lab status` show.
"""

from __future__ import annotations

import math
import os
from pathlib import Path

from iojoule.datasets.catalogue import load_catalogue
from iojoule.datasets.catalogue.drive import Drive
from iojoule.datasets.errors import UnknownDeviceError
from iojoule.datasets.profile import (
    DevicePower,
    DeviceProfile,
    load_shipped_profile,
    read_profile,
    shipped_profiles,
)
from iojoule.datasets.vocabulary import Operation, Pattern
from iojoule.measure.errors import LabError
from iojoule.measure.lab.profile_table import SECTOR_BYTES, SURFACES, make_table, table_text
from iojoule.measure.lab.served import ServedDrive
from iojoule.model.frame import operational_states
from iojoule.sim.physical_options import PowerOptions, PowerState

LEAST_LATENCY_NS = 4e6
"""What a small machine keeps to a few per cent, although its kernel and the daemon add some 0.1 ms
to every request."""
SLOW_DOWN_MAX = 1e5
UNLIMITED_BYTES = 1 << 20
"""Largest command where the profile knows no limit: that of FUSE."""
STAND_IN_CAPACITY_BYTES = 1 << 30
KEPT_SHARE = 1 / 8
"""Of the machine's memory, for what is written."""
_SUFFIX = " (rehearsal)"
_MODEL_CHARACTERS = 40  # of an NVMe model number


def find_profile(name: str) -> DeviceProfile:
    """A profile by its file, or a shipped one by its drive's id.

    Raises:
        InputError: It cannot be read.
        SchemaVersionError: It is of a newer iojoule.
    """
    if name in shipped_profiles() and not Path(name).exists():
        return load_shipped_profile(name)
    return read_profile(Path(name))


def rehearsal(profile: DeviceProfile, name: str, slow_down: float | None = None) -> ServedDrive:
    """The drive of a profile.

    Args:
        profile: What it behaves like.
        name: What the profile is called in `lab.json`.
        slow_down: Latencies are so many times those of the profile; None: as many as it takes for
            the fastest to last LEAST_LATENCY_NS.

    Raises:
        LabError: The profile lacks something that cannot be stood in for; the message says what.
    """
    power = _power_of(profile)
    _check(slow_down)
    known = _catalogue(profile)
    stand_ins = _stand_ins(profile)
    limit = profile.max_transfer_bytes
    limited = limit <= 1 << 27  # what measures nothing writes down a terabyte
    if not limited:
        stand_ins.append(f"largest command: not known; {UNLIMITED_BYTES} bytes")
    capacity = _capacity(profile, known, stand_ins)
    operational = _operational(profile, power, known, stand_ins)
    table = make_table(
        profile,
        limit if limited else UNLIMITED_BYTES,
        [state for state, works in enumerate(operational) if works],
    )
    factor = slow_down or _enough(table.fastest_latency_ns)
    states = _states(power, known, operational, factor)
    kept = int(KEPT_SHARE * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    if kept < capacity:
        stand_ins.append(f"data: {kept >> 20} MiB of them are kept, the rest reads as zeros")
    model = profile.model_name[: _MODEL_CHARACTERS - len(_SUFFIX)] + _SUFFIX
    return ServedDrive(
        text=table_text(
            table, profile, states,
            slow_down=factor, capacity_bytes=capacity, kept_bytes=kept,
        ),
        power=PowerOptions(states=states),
        model=model,
        max_transfer_bytes=limit if limited else 0,
        facts={
            "rehearsal": {
                "profile": name,
                "device": profile.device,
                "slow_down": factor,
                "fastest_latency_ns": table.fastest_latency_ns * factor,
                "evaluated_for": {
                    field: profile.defaults[field]
                    for field in ("engine", "completion", "scheduler", "jobs")
                    if field in profile.defaults
                },
                "stand_ins": stand_ins,
            }
        },
    )  # fmt: skip


def _power_of(profile: DeviceProfile) -> DevicePower:
    missing = []
    if profile.device_power is None:
        missing.append("watts of the drive (device_power)")
    if not any(profile.surface(*surface) for surface in SURFACES):
        missing.append("performance (surfaces)")
    if missing or profile.device_power is None:
        raise LabError(
            f"{profile.device}: the profile has no {' and no '.join(missing)}, without which there "
            "is nothing to rehearse; measure the drive with a power sensor and fit again"
        )
    return profile.device_power


def _check(slow_down: float | None) -> None:
    if slow_down is not None and not 1 <= slow_down <= SLOW_DOWN_MAX:
        raise LabError(f"a slow-down of {slow_down:g} lies outside 1 to {SLOW_DOWN_MAX:g}")


def _enough(fastest_ns: float) -> float:
    """How many times slower, rounded up to two digits."""
    exact = max(LEAST_LATENCY_NS / fastest_ns, 1.0)
    unit = 10.0 ** max(math.floor(math.log10(exact)) - 1, -1)
    return round(math.ceil(exact / unit - 1e-9) * unit, 1)


def _stand_ins(profile: DeviceProfile) -> list[str]:
    """Where something else is taken for what the profile does not say."""
    said = []
    for operation, pattern in SURFACES:
        if profile.surface(operation, pattern) is not None:
            continue
        other = Pattern.RANDOM if pattern is Pattern.SEQUENTIAL else Pattern.SEQUENTIAL
        reverse = Operation.READ if operation is Operation.WRITE else Operation.WRITE
        for one, way in ((operation, other), (reverse, pattern), (reverse, other)):
            if profile.surface(one, way) is not None:
                said.append(f"{pattern} {operation}s: not measured; as {way} {one}s")
                break
    known = {(each.power_state, each.operation) for each in profile.power_state_effects}
    for state in operational_states(profile)[1:]:
        said += [
            f"{operation}s in PS{state}: not measured; as in PS0 below the state's cap"
            for operation in (Operation.READ, Operation.WRITE)
            if (state, operation) not in known
        ]
    said.append("flush and trim: not measured; as long as the fastest write")
    if profile.write_state is not None:
        said.append("writes: as the purged drive takes them; no collecting, no work afterwards")
    return said


def _catalogue(profile: DeviceProfile) -> Drive | None:
    try:
        return load_catalogue().get(profile.device)
    except UnknownDeviceError:
        return None


def _capacity(profile: DeviceProfile, known: Drive | None, stand_ins: list[str]) -> int:
    found = profile.capacity_bytes
    for fact in known.facts if known is not None and found is None else ():
        if fact.metric == "capacity" and fact.unit == "bytes":
            found = int(fact.value)
    if found is None:
        found = STAND_IN_CAPACITY_BYTES
        stand_ins.append(f"capacity: not known; {found} bytes")
    return found // (8 * SECTOR_BYTES) * (8 * SECTOR_BYTES)


def _operational(
    profile: DeviceProfile, power: DevicePower, known: Drive | None, stand_ins: list[str]
) -> list[bool]:
    """Which of the power states serve requests."""
    count = min(len(power.cap_watts), len(power.idle_watts))
    declared = {state.index: state.operational for state in known.power_states} if known else {}
    fitted = operational_states(profile)
    found = []
    for state in range(count):
        works = state in fitted or declared.get(state, False)
        if works and state not in fitted:
            stand_ins.append(f"PS{state}: not measured; as PS0 below the state's cap")
        found.append(works)
    return found


def _states(
    power: DevicePower, known: Drive | None, operational: list[bool], slow_down: float
) -> tuple[PowerState, ...]:
    """The table that the controller shows; entering and leaving are slowed down too."""
    declared = {state.index: state for state in known.power_states} if known else {}
    made = []
    for number, works in enumerate(operational):
        state = declared.get(number)
        entry_us = (state.entry_latency_us or 0) if state else 0
        exit_us = (state.exit_latency_us or 0) if state else 0
        made.append(
            PowerState(
                max_power_watts=power.cap_watts[number],
                operational=works,
                entry_latency_ns=round(entry_us * 1000 * slow_down),
                exit_latency_ns=round(exit_us * 1000 * slow_down),
                idle_power_watts=power.idle_watts[number].value,
            )
        )
    return tuple(made)
