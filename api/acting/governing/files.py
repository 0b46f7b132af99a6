"""What a governor is started with: the SLA file, and each drive with its profile."""

from __future__ import annotations

import fcntl
import os
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from iojoule.api.acting.governing.loop import Governed
from iojoule.api.application.meter import assigned, kernel_name
from iojoule.api.application.profiles import profile_in, profile_of
from iojoule.datasets.errors import InputError
from iojoule.datasets.input_file import toml_of
from iojoule.datasets.profile import DeviceProfile
from iojoule.datasets.schema import validation_error
from iojoule.measure.campaign.session import inspect_drive
from iojoule.measure.errors import HostStateError, UnsafeDriveError
from iojoule.measure.host.journal import journals_folder
from iojoule.recommender.request import parse_workload, read_text
from iojoule.recommender.sla import Sla, parse_sla

CONCURRENCY = 32
"""Requests in flight at the most where nothing is stated: assumed."""


@dataclass(frozen=True)
class Service:
    """What must be kept, and how the requests come."""

    sla: Sla
    pattern: str = "random"
    concurrency: int = CONCURRENCY


def read_service(path: Path) -> Service:
    """Read a TOML file with `sla`, a text or a table, or a workload profile.

    Raises:
        InputError: It cannot be read, or says something impossible; names the field.
    """
    try:
        data = toml_of(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: not a complete TOML file: {error}") from None
    if "workload" in data:
        asked = parse_workload(data, str(path))
        most = asked.concurrency_max
        return Service(
            asked.sla,
            str(asked.workload.pattern or Service.pattern),
            most if isinstance(most, int) else CONCURRENCY,
        )
    unknown = sorted(data.keys() - {"sla"})
    if unknown or "sla" not in data:
        raise InputError(
            f"{path}: {f'unknown field {unknown[0]}' if unknown else 'states no sla'}; write "
            'sla = "p99 < 2 ms" or a table [sla], or name a workload profile'
        )
    stated = data["sla"]
    try:
        sla = parse_sla(stated) if isinstance(stated, str) else Sla.model_validate(stated)
    except ValidationError as error:
        raise validation_error(error, str(path)) from None
    return Service(sla)


def governed(
    drives: Sequence[Path],
    profiles: Sequence[str],
    *,
    controllers: Sequence[str] = (),
    instruments: Sequence[str] = (),
    power_states: tuple[int, ...] = (),
    schedulers: tuple[str, ...] = (),
    best_effort: tuple[Path, ...] = (),
) -> list[Governed]:
    """The drives with what was measured of each; changes nothing.

    Args:
        drives: Their nodes.
        profiles: `DRIVE=PROFILE`, or `PROFILE` for all others: a file or a device model.
        controllers: `DRIVE=/dev/Y`; likewise instruments, `DRIVE=SENSOR`.
        power_states: That may be used.
        schedulers: Likewise.
        best_effort: Control groups that may be limited.

    Raises:
        InputError: A drive has no profile, or an option names none of the drives.
        DriveError, UnsafeDriveError, HostStateError: As `inspect_drive`.
    """
    names = [kernel_name(str(path)) for path in drives]
    if twice := sorted(name for name in set(names) if names.count(name) > 1):
        raise InputError(f"--drive: {twice[0]} is named twice; keep one")
    own = assigned([text for text in profiles if "=" in text], "--profile")
    common = [text for text in profiles if "=" not in text]
    if len(common) > 1:
        raise InputError("--profile: write DRIVE=PROFILE where drives differ")
    nodes, sensors = assigned(controllers, "--controller"), assigned(instruments, "--power")
    for option, values in (("--profile", own), ("--controller", nodes), ("--power", sensors)):
        stray = sorted(values.keys() - set(names))
        if stray:
            raise InputError(f"{option} {stray[0]}: is none of the drives {', '.join(names)}")
    result = []
    for path, name in zip(drives, names, strict=True):
        named = own.get(name) or (common[0] if common else None)
        if named is None:
            raise InputError(f"{path}: no profile is named for it: --profile {name}=FILE")
        node = nodes.get(name)
        facts, controller = inspect_drive(path, Path(node) if node else None)
        result.append(
            Governed(
                facts,
                controller,
                _profile(named),
                power_states=power_states,
                schedulers=schedulers,
                instrument=sensors.get(name),
                best_effort=best_effort,
            )
        )
    return result


@contextmanager
def only_governor(drives: Sequence[Governed]) -> Iterator[None]:
    """Hold each drive against other governors: two would restore each other's settings.

    Raises:
        UnsafeDriveError: Another one governs a drive.
        HostStateError: The folder of the journals cannot be written.
    """
    folder = journals_folder()
    with ExitStack() as stack:
        for governed_drive in drives:
            path = folder / f"govern-{governed_drive.name}.lock"
            try:
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            except OSError as error:
                raise HostStateError(f"{path}: cannot be written ({error.strerror})") from None
            stack.callback(os.close, handle)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UnsafeDriveError(
                    f"{governed_drive.drive.device.path}: another `iojoule govern` governs it "
                    f"({path} is locked); end that one first"
                ) from None
        yield


def _profile(name: str) -> DeviceProfile:
    return profile_in(Path(name)) if name.endswith(".json") else profile_of(name)
