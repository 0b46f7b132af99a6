"""The device profile: everything fitted for one SSD model, as numbers in one JSON file.

A profile holds fitted parameters, knots and published figures with their sources; never raw
rows and never pickled objects. `iojoule.model` evaluates it with numpy alone.
"""

from __future__ import annotations

import json
import os
import tempfile
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from iojoule.datasets.errors import InputError, NoProfileError, SchemaVersionError
from iojoule.datasets.schema import Section, validation_error
from iojoule.datasets.vocabulary import (
    Completion,
    Engine,
    Evidence,
    Operation,
    Pattern,
    Scheduler,
)

PROFILE_SCHEMA_VERSION = 1
"""Version of the profile's JSON layout; a reader refuses anything newer."""

Fraction = Annotated[float, Field(ge=0, le=1)]


class Parameter(Section):
    """One fitted or published number with its standard deviation and where it comes from."""

    name: str
    value: float
    sd: Annotated[float, Field(ge=0)]
    unit: str
    evidence: Evidence
    source: str


class Hull(Section):
    """Convex hull of measured points in log2(queue depth, jobs, request bytes).

    A point x lies inside where `normals @ x <= offsets` for every facet and where each fixed
    coordinate (one that never varied) has its one value.
    """

    normals: list[tuple[float, float, float]]
    offsets: list[float]
    fixed: tuple[float | None, float | None, float | None]


class HostPath(Section):
    """What one way of submitting and completing a request costs on the reference host."""

    engine: Engine
    completion: Completion
    submission_polling: bool
    added_latency_ns: Annotated[float, Field(ge=0)]
    core_time_ns: Annotated[float, Field(gt=0)]
    wakeup_ns: Annotated[float, Field(ge=0)]
    relative_sd: Annotated[float, Field(ge=0)]
    evidence: Evidence
    source: str


class SchedulerCost(Section):
    """What a block-layer scheduler adds to every request on the reference host.

    `serial_ns` is spent under one lock, whatever the number of jobs.
    """

    scheduler: Scheduler
    added_latency_ns: float
    added_core_time_ns: float
    serial_ns: Annotated[float, Field(ge=0)] = 0.0
    relative_sd: Annotated[float, Field(ge=0)]
    evidence: Evidence
    source: str


class HostPerformance(Section):
    """The host as a bottleneck: latency and core time per request."""

    host_id: str
    cpu_cores: Annotated[int, Field(ge=1)]
    sharpness: Annotated[float, Field(gt=0)]
    paths: list[HostPath]
    schedulers: list[SchedulerCost]


class ResidualTable(Section):
    """What the curve misses, learned from measurements, as knots to interpolate linearly.

    Shapes: every list in `values` is flattened from (path, depth, jobs, bytes) in C order.
    `latency` is the residual of log mean latency; `latency_sd` its standard deviation;
    `p50`, `p99`, `p999` are residuals of log(percentile / mean) and `*_sd` their deviations;
    `measured` is 1 at knots that were measured, else 0.
    """

    log2_queue_depth: list[float]
    log2_jobs: list[float]
    log2_request_bytes: list[float]
    paths: list[str]
    values: dict[str, list[float]]


class Tail(Section):
    """A latency percentile as mean + unloaded latency x excess (see `model.tails`)."""

    quantile: Literal["p50", "p99", "p999"]
    intrinsic: float
    collision: list[float]
    exponent: float
    saturation: float
    host_damping: float


class IntervalWidth(Section):
    """Conformal quantile: the 90 % half width in log space is `factor` x the local sd."""

    quantity: Literal["latency", "p50", "p99", "p999"]
    region: Literal["inside", "outside"]
    factor: Annotated[float, Field(gt=0)]
    floor_sd: Annotated[float, Field(ge=0)]
    sd_per_octave: Annotated[float, Field(ge=0)]
    scores: Annotated[int, Field(ge=0)]


class Surface(Section):
    """Closed-loop performance for one operation and pattern (see `model.curve`)."""

    operation: Literal[Operation.READ, Operation.WRITE]
    pattern: Pattern
    evidence: Evidence
    source: str
    log2_request_bytes: list[float]
    unloaded_latency_ns: list[float]
    capacity_operations_per_second: list[float]
    sharpness: list[float]
    transfer_bytes_per_second: float
    access_unit_bytes: int
    relative_sd: float
    tails: list[Tail]
    residual: ResidualTable | None
    hulls: dict[str, Hull]
    widths: list[IntervalWidth]


class PowerStateEffect(Section):
    """What a power state below PS0 does to one direction of I/O.

    A request of s bytes takes `ceiling_seconds_per_operation` + s / `ceiling_bytes_per_second` of
    the drive's time at the cap; absent, the first is 0. The factors have their sd in log units, and
    so has the ceiling in bytes, whose sd is that of the sum.
    """

    power_state: int
    operation: Literal[Operation.READ, Operation.WRITE]
    ceiling_bytes_per_second: Parameter
    ceiling_seconds_per_operation: Parameter | None = None
    latency_factor: Parameter
    tail_factor: Parameter


class DevicePower(Section):
    """Watts of the drive: a linear law in its parameters, with their covariance.

    Parameter order of `parameters` and of both axes of `covariance`: base_watts,
    read_joules_per_byte, read_joules_per_operation, write_joules_per_byte,
    write_joules_per_operation, background_watts.
    """

    parameters: list[Parameter]
    covariance: list[list[float]]
    idle_watts: list[Parameter]
    cap_watts: list[float]
    peak_watts: Parameter
    measured_read_operations_per_second_max: float
    measured_bytes_per_second_max: float
    relative_sd: float
    condition: str


class WriteState(Section):
    """How the drive's state follows from the bytes written since it was purged."""

    cached_bytes: Parameter
    transition_bytes: Parameter
    collecting_bytes_per_second: Parameter
    recovery_bytes_per_second_per_byte: Parameter
    background_joules_per_byte: Parameter
    background_seconds_after_write: dict[int, Parameter]


class HostPower(Section):
    """Watts of the CPU packages and DRAM (see `model.host_power` for the law)."""

    host_id: str
    scope: str
    parameters: list[Parameter]
    covariance: list[list[float]]
    engine_factors: dict[str, Parameter]
    scheduler_factors: dict[str, Parameter]
    cpu_cores: int


class SystemPower(Section):
    """Watts at the wall: floor + slope x (CPU + DRAM + drive)."""

    host_id: str
    floor_watts: Parameter
    slope: Parameter
    relative_sd: float


class MixedEffect(Section):
    """How interleaved reads and writes differ from taking turns."""

    pattern: Pattern
    latency_factor: Parameter
    tail_factor: Parameter


class ValidFor(Section):
    """Outside these conditions an answer widens or says stale."""

    firmware: list[str]
    pcie_generation: list[int]
    aspm_policy: str | None = None
    temperature_celsius: tuple[float, float] | None = None
    power_loss_protection: bool | None = None
    notes: list[str]


class SourceRecord(Section):
    """One source of the fit: a file or a publication."""

    name: str
    citation: str
    licence: str
    rows_used: int
    rows_excluded: int
    sha256: str | None
    notes: list[str]


class DeviceProfile(Section):
    """Everything fitted for one SSD model; the JSON file is this, field by field."""

    schema_version: int
    device: str
    model_name: str
    profile_version: str
    generator: str
    recipe: str
    sources: list[SourceRecord]
    valid_for: ValidFor
    defaults: dict[str, str | int | float | bool]
    default_sources: dict[str, str]
    max_transfer_bytes: int
    link_bytes_per_second: Parameter | None = None
    capacity_bytes: int | None
    endurance_bytes_written: Parameter | None
    between_drives_relative_sd: Parameter
    surfaces: list[Surface]
    host: HostPerformance
    power_state_effects: list[PowerStateEffect]
    mixed: list[MixedEffect]
    device_power: DevicePower | None
    write_state: WriteState | None
    host_power: HostPower | None
    system_power: SystemPower | None
    gaps: list[str]

    def surface(self, operation: Operation | str, pattern: Pattern | str) -> Surface | None:
        """Return the surface of one operation and pattern, or None where nothing is known."""
        for surface in self.surfaces:
            if surface.operation == operation and surface.pattern == pattern:
                return surface
        return None


def path_key(engine: str, completion: str, submission_polling: bool, scheduler: str) -> str:
    """Name a host path in tables, for example `io_uring/interrupt/kyber`."""
    polling = "/sqpoll" if submission_polling else ""
    return f"{engine}/{completion}{polling}/{scheduler}"


def write_profile(profile: DeviceProfile, path: Path) -> None:
    """Write a profile atomically as indented JSON.

    Raises:
        InputError: The folder does not exist or cannot be written.
    """
    text = json.dumps(profile.model_dump(mode="json"), indent=1, sort_keys=True) + "\n"
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None
    part = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        part.chmod(0o644)
        part.replace(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None
    finally:
        part.unlink(missing_ok=True)


def parse_profile(text: bytes, where: str) -> DeviceProfile:
    """Read a profile from JSON bytes.

    Raises:
        SchemaVersionError: Written by a newer version of iojoule.
        InputError: Not JSON, truncated, or not a profile; the message names file and field.
    """
    try:
        data = json.loads(text)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InputError(
            f"{where}: not a complete JSON file ({error}); fit it again or restore a copy"
        ) from None
    version = data.get("schema_version") if isinstance(data, dict) else None
    if not isinstance(version, int) or isinstance(version, bool):
        raise InputError(f"{where}: not a device profile: no schema_version")
    if version > PROFILE_SCHEMA_VERSION:
        raise SchemaVersionError(
            f"{where}: profile schema {version} is newer than {PROFILE_SCHEMA_VERSION}, the newest "
            "this iojoule reads; upgrade iojoule or fit the profile again"
        )
    if version < 1:
        raise SchemaVersionError(f"{where}: profile schema {version} never existed")
    try:
        return DeviceProfile.model_validate_json(text)
    except ValidationError as error:
        raise validation_error(error, where) from None


def read_profile(path: Path) -> DeviceProfile:
    """Read a profile file; raises as `parse_profile`, and InputError where it is unreadable."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    return parse_profile(text, str(path))


def shipped_profiles() -> tuple[str, ...]:
    """Return the ids of the SSD models whose profile ships with iojoule, sorted."""
    folder = resources.files("iojoule.datasets").joinpath("profiles")
    if not folder.is_dir():
        return ()
    return tuple(
        sorted(entry.name[:-5] for entry in folder.iterdir() if entry.name.endswith(".json"))
    )


@cache
def load_shipped_profile(device: str) -> DeviceProfile:
    """Load the shipped profile of a catalogue id.

    Raises:
        NoProfileError: No profile ships for it.
    """
    if device not in shipped_profiles():
        raise NoProfileError(
            f"{device}: no profile ships for this model; profiles ship for "
            f"{', '.join(shipped_profiles())}. Measure it (random and sequential, read and write, "
            "4 KiB to 1 MiB, depth 1 to 256, with device power), import the results and run "
            "`iojoule fit DATASET -o PROFILE.json`, then use --profile PROFILE.json"
        )
    entry = resources.files("iojoule.datasets").joinpath("profiles", f"{device}.json")
    return parse_profile(entry.read_bytes(), entry.name)
