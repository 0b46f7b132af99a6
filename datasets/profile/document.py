"""The device profile document: fields, assessment, validity; reading, writing, shipped profiles.

The assessment is filled when a profile is fitted, because a profile keeps no measurement. Errors
and intervals come from whole depths and request sizes left out in turn; fitted points are the log
ratio of what was observed to what the profile predicts there.

A host profile stands beside a device profile that was fitted on another host: paths, CPU power and
wall power are then those of the user's own machine.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, TypeAdapter, ValidationError, field_validator, model_validator

from iojoule import __version__
from iojoule.datasets.atomic import output_file, write_text_atomically
from iojoule.datasets.errors import InputError, NoProfileError, SchemaVersionError
from iojoule.datasets.input_file import json_of, read_input
from iojoule.datasets.links import SATA_BYTES_PER_SECOND, Interface, Medium
from iojoule.datasets.profile.drive import (
    DevicePower,
    FlushCost,
    IdleBehaviour,
    Ladder,
    MixedEffect,
    Parameter,
    PowerLimit,
    PowerStateEffect,
    Rebuilt,
    Simulated,
    StateResidual,
    Surface,
    WorkAfterWrites,
    WriteState,
    refuse_unequal,
)
from iojoule.datasets.profile.host import (
    HostOperation,
    HostPerformance,
    HostPower,
    SystemPower,
    carried_over,
)
from iojoule.datasets.provenance import keep_other_documents
from iojoule.datasets.schema import COLUMNS, SECTIONS, Section, validation_error
from iojoule.datasets.vocabulary import Operation, Pattern

Count = Annotated[int, Field(ge=0)]
NonNegative = Annotated[float, Field(ge=0)]

Quantity = Literal["throughput_bytes_per_second", "latency_mean_ns", "latency_p99_ns"]


class HeldOut(Section):
    """Predictions of rows of one surface whose depth or size was left out of the fit.

    `left_out` is the axis and `value` the depth or size; None: all of them. `region` says
    whether the row lies between the others of its own series, or one step below or beyond them;
    None: any. Errors are relative, scores are mean interval scores in log units (Gneiting and
    Raftery 2007) of the `interval_rows` rows whose nominal 90 % interval could be judged, with
    widths from the other folds. The baseline is interpolation (else extrapolation) in log-log
    of the row's own series.
    """

    operation: Literal[Operation.READ, Operation.WRITE]
    pattern: Pattern
    quantity: Quantity
    left_out: Literal["queue_depth", "request_bytes"] | None
    value: float | None
    region: Literal["inside", "below", "beyond"] | None
    rows: Annotated[int, Field(ge=1)]
    median_error: NonNegative
    p90_error: NonNegative
    baseline_median_error: NonNegative
    interval_rows: Count
    covered: Count
    interval_score: NonNegative | None
    baseline_interval_score: NonNegative | None


class PerformancePoints(Section):
    """Fitted points of one surface, column by column; one entry a point.

    `latency` and `p99` are log(observed / answered) of the mean latency (so minus that of the
    throughput) and of the 99th percentile; `apart` marks sessions that stand apart (unsteady, or
    published), for which no profile answers. `total` is how many the fit saw: where they are
    many, only some are kept, evenly spread.
    """

    operation: Literal[Operation.READ, Operation.WRITE]
    pattern: Pattern
    total: Count
    path: list[str]
    request_bytes: list[int]
    queue_depth: list[int]
    jobs: list[int]
    apart: list[bool]
    latency: list[float]
    p99: list[float | None]

    @model_validator(mode="after")
    def _columns_match(self) -> PerformancePoints:
        refuse_unequal(
            self, "path", "request_bytes", "queue_depth", "jobs", "apart", "latency", "p99"
        )
        return self


class PowerPoints(Section):
    """Points of the drive's power law: rates, and log(observed / answered watts).

    Rates are in the law's own units (see `DevicePower`); `collecting` is the share of background
    work and `request_bytes` is what the host asked for. Rows of a series are means over blocks.
    """

    total: Count
    power_state: list[Count]
    request_bytes: list[float]
    read_bytes_per_second: list[float]
    read_operations_per_second: list[float]
    write_bytes_per_second: list[float]
    write_operations_per_second: list[float]
    collecting: list[float]
    watts: list[float]

    @model_validator(mode="after")
    def _columns_match(self) -> PowerPoints:
        refuse_unequal(self, *(name for name in type(self).model_fields if name != "total"))
        return self


class Assessment(Section):
    """Errors on what was left out, and fitted points."""

    held_out: list[HeldOut]
    performance: list[PerformancePoints]
    power: PowerPoints | None


FACTS_RECIPE = "facts"
"""Recipe of a profile that no measurement carries: built from a drive's facts alone."""

DATASETS_RECIPE = "datasets"
"""Recipe of a profile that a user fitted from datasets."""


class DriveRating(Section):
    """What a drive is made for: beyond it nothing can be asked. None: it is not stated.

    Attributes:
        interface: How it is attached.
        medium: What holds the data: no moving parts, or the platters of a hard disk.
        pcie_generation: The latest that it speaks; it falls back to earlier ones.
        pcie_lanes: The most that it has.
        temperature_celsius: Lowest and highest at which it is rated to work.
    """

    interface: Interface | None = None
    medium: Medium | None = None
    pcie_generation: int | None = None
    pcie_lanes: int | None = None
    temperature_celsius: tuple[float, float] | None = None


class ValidFor(Section):
    """Outside these conditions an answer widens.

    `device_serial_hash` names the one drive that was measured; None = unknown, or several.
    """

    firmware: list[str]
    pcie_generation: list[int]
    aspm_policy: str | None = None
    temperature_celsius: tuple[float, float] | None = None
    power_loss_protection: bool | None = None
    device_serial_hash: str | None = None
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


NEEDED_DEFAULTS = frozenset(
    ("operation", "pattern", "request_bytes", "queue_depth", "jobs", "engine", "completion")
)
"""Fields of a question that a profile answers for where the question leaves them out."""


@cache
def _adapter(field: str) -> TypeAdapter[Any]:
    stated = SECTIONS[COLUMNS[field]].model_fields[field]
    form: Any = Annotated[stated.annotation, stated]
    return TypeAdapter(form)


class DeviceProfile(Section):
    """Everything fitted for one SSD model; the JSON file is this, field by field.

    `write_buffer_bytes` are those that the drive answers before its flash has taken them (its sd is
    in log units); None: unknown. `other_conditions` names those of a question that are known to
    differ from what was measured (`model.evaluate.validity`): no answer is then better than
    extrapolated. `between_sessions_relative_sd` is how far another session of the measured drive
    and host lies from the answers; None: the prior counts. `work_after_writes` stands for the
    write state of a drive whose cache was not looked at. `limit_states` are power states that stand
    for a limit in W in one answer (`model.evaluate.power_limit`); no file has them.
    """

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
    max_transfer_bytes: Annotated[int, Field(ge=1)]
    link_bytes_per_second: Parameter | None = None
    capacity_bytes: int | None
    endurance_bytes_written: Parameter | None
    between_drives_relative_sd: Parameter
    between_sessions_relative_sd: Parameter | None = None
    surfaces: Annotated[list[Surface], Field(min_length=1)]
    host: HostPerformance
    power_state_effects: list[PowerStateEffect]
    power_limit: PowerLimit | None = None
    limit_states: dict[int, float] = Field(default_factory=dict, exclude=True)
    mixed: list[MixedEffect]
    device_power: DevicePower | None
    write_state: WriteState | None
    work_after_writes: WorkAfterWrites | None = None
    host_power: HostPower | None
    system_power: SystemPower | None
    assessment: Assessment | None = None
    ladder: Ladder | None = None
    idle: IdleBehaviour | None = None
    host_operation: HostOperation | None = None
    simulated: Simulated | None = None
    state_residuals: list[StateResidual] | None = None
    rebuilt: Rebuilt | None = None
    flush: FlushCost | None = None
    write_buffer_bytes: Parameter | None = None
    rating: DriveRating = Field(default_factory=DriveRating)
    other_conditions: list[str] = Field(default_factory=list)
    gaps: list[str]

    @field_validator("defaults")
    @classmethod
    def _defaults_are_fields(cls, defaults: dict[str, Any]) -> dict[str, Any]:
        if missing := NEEDED_DEFAULTS - defaults.keys():
            raise ValueError(f"lacks {', '.join(sorted(missing))}")
        for name, value in defaults.items():
            if name in COLUMNS:
                try:
                    _adapter(name).validate_json(json.dumps(value), strict=True)
                except ValidationError as error:
                    reason = error.errors(include_url=False)[0]["msg"]
                    raise ValueError(f"{name}: {reason}") from None
        return defaults

    @model_validator(mode="before")
    @classmethod
    def _earlier_host(cls, data: Any) -> Any:
        return carried_over(data, "host_power", "system_power")

    @property
    def interface(self) -> Interface | None:
        """How the drive is attached; None where neither its rating nor its link says."""
        link = self.link_bytes_per_second
        if self.rating.interface is None and link is not None:
            return "sata" if link.value == SATA_BYTES_PER_SECOND else "nvme"
        return self.rating.interface

    @property
    def is_disk(self) -> bool:
        """Whether it is a hard disk."""
        return self.rating.medium == "disk"

    def surface(self, operation: Operation | str, pattern: Pattern | str) -> Surface | None:
        """Return the surface of one operation and pattern, or None where nothing is known."""
        for surface in self.surfaces:
            if surface.operation == operation and surface.pattern == pattern:
                return surface
        return None


PROFILE_SCHEMA_VERSION = 1
"""Version of the profile's JSON layout; a reader refuses anything newer."""


FIT_AGAIN = "fit it again: `iojoule fit DATASET... -o PROFILE.json`"


def fitted_by_another(profile: DeviceProfile) -> str | None:
    """What to say of a profile that another version of iojoule fitted; None where this one did."""
    generator = f"iojoule {__version__}"
    if profile.generator == generator:
        return None
    return (
        f"the profile of {profile.model_name} was fitted by {profile.generator}, this is "
        f"{generator}: its figures may differ from what a fit finds today; {FIT_AGAIN}"
    )


def write_profile(profile: DeviceProfile, path: Path) -> None:
    """Write a profile atomically as indented JSON; raises as `write_document`."""
    write_document(profile, path)


def write_document(document: Section, path: Path) -> None:
    """Write a document atomically as indented JSON.

    Raises:
        InputError: The folder does not exist or cannot be written, or the file is that of a
            dataset.
    """
    keep_other_documents(path, of_dataset=False)
    text = json.dumps(document.model_dump(mode="json"), indent=1, sort_keys=True) + "\n"
    with output_file(path):
        write_text_atomically(path, text)


def parse_profile(text: bytes, where: str) -> DeviceProfile:
    """Read a profile from JSON bytes; raises as `parse_document`."""
    return parse_document(
        DeviceProfile, text, where, ("a device profile", PROFILE_SCHEMA_VERSION, "fit it again")
    )


D = TypeVar("D", bound=Section)


def parse_document(kind: type[D], text: bytes, where: str, about: tuple[str, int, str]) -> D:
    """Read a document from JSON bytes.

    Args:
        kind: What it must be.
        text: Its bytes.
        where: Names the file in messages.
        about: What people call it, the newest version that is read, and how one is made anew.

    Raises:
        SchemaVersionError: Written by a newer version of iojoule.
        InputError: Not JSON, truncated, or not such a document; the message names file and field.
    """
    name, newest, remedy = about
    try:
        data = json_of(text)
    except ValueError as error:  # also a number of thousands of digits
        raise InputError(
            f"{where}: not a complete JSON file ({error}); {remedy} or restore a copy"
        ) from None
    version = data.get("schema_version") if isinstance(data, dict) else None
    if not isinstance(version, int) or isinstance(version, bool):
        raise InputError(f"{where}: not {name}: no schema_version")
    if version > newest:
        raise SchemaVersionError(
            f"{where}: profile schema {version} is newer than {newest}, the newest "
            f"this iojoule reads; upgrade iojoule or {remedy}"
        )
    if version < 1:
        raise SchemaVersionError(f"{where}: profile schema {version} never existed")
    if version < PROFILE_SCHEMA_VERSION:
        raise SchemaVersionError(
            f"{where}: profile schema {version} is older than {PROFILE_SCHEMA_VERSION}, what this "
            f"iojoule reads; {FIT_AGAIN}"
        )
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        raise validation_error(error, where) from None


def read_profile(path: Path) -> DeviceProfile:
    """Read a profile file; raises as `parse_profile`, and InputError where it is unreadable."""
    return parse_profile(document_bytes(path), str(path))


def document_bytes(path: Path) -> bytes:
    """The bytes of a file.

    Raises:
        InputError: It cannot be read.
    """
    try:
        return read_input(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None


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


HOST_PROFILE_SCHEMA_VERSION = 1
"""Version of the host profile's JSON layout; a reader refuses anything newer."""


class HostProfile(Section):
    """What one machine costs, drive excluded.

    Attributes:
        kind: Tells it from a device profile.
        performance: Core time of the paths that were run; None where no file was named.
        power: Watts of packages and memory.
        system: Watts at the wall; None without a meter there.
        operation: What frequency, sleep states and NUMA do.
        drive_idle_watts_included: Whether the wall's floor holds idle drives of the machine.
        runs: How many loads were measured.
        others_busy_cores: Cores that others kept busy meanwhile, in the mean.
        gaps: What could not be found, and why.
    """

    schema_version: int
    kind: Literal["iojoule-host-profile"] = "iojoule-host-profile"
    host_id: str
    cpu_model: str | None
    cpu_cores: int
    kernel_version: str
    generator: str
    measured_utc: str
    sensors: list[str]
    performance: HostPerformance | None
    power: HostPower
    system: SystemPower | None
    operation: HostOperation | None
    drive_idle_watts_included: bool = True
    runs: int
    others_busy_cores: float
    gaps: list[str]

    @model_validator(mode="before")
    @classmethod
    def _earlier_law(cls, data: Any) -> Any:
        return carried_over(data, "power", "system")


def write_host_profile(profile: HostProfile, path: Path) -> None:
    """Write a host profile atomically; raises as `files.write_document`."""
    write_document(profile, path)


def parse_host_profile(text: bytes, where: str) -> HostProfile:
    """Read a host profile from JSON bytes; raises as `files.parse_document`."""
    about = ("a host profile", HOST_PROFILE_SCHEMA_VERSION, "measure it again")
    return parse_document(HostProfile, text, where, about)


def read_host_profile(path: Path) -> HostProfile:
    """Read a host profile file; raises as `parse_host_profile`, and where it is unreadable."""
    return parse_host_profile(document_bytes(path), str(path))
