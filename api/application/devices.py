"""What is known of SSD models: catalogue facts beside what their profiles can answer."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel

from iojoule import __version__
from iojoule.api.application.profiles import profile_of, what_to_measure
from iojoule.datasets.catalogue import Drive, Fact, PowerState, load_catalogue
from iojoule.datasets.errors import NoProfileError
from iojoule.datasets.profile import (
    DeviceProfile,
    SourceRecord,
    ValidFor,
    load_shipped_profile,
    shipped_profiles,
)
from iojoule.datasets.vocabulary import Evidence, Operation, Pattern

DECLARED = "a declared cap is not a measured power"


class DeviceSummary(BaseModel):
    """One SSD model in a list.

    Attributes:
        performance: Whether a profile that ships predicts throughput and latency.
        power: Whether it knows the drive's power by measurements or publications; else it is
            expected of its facts.
        profile_version: Version of that profile.
    """

    id: str
    model: str
    vendor: str
    interface: str
    drive_class: str
    performance: bool
    power: bool
    profile_version: str | None


class FittedSurface(BaseModel):
    """Performance that a profile knows for one operation and pattern."""

    operation: Operation
    pattern: Pattern
    evidence: Evidence
    source: str


class Default(BaseModel):
    """What a field takes where it is left out, and why."""

    field: str
    value: str | int | float | bool
    source: str


class ProfileSummary(BaseModel):
    """What a profile can answer, and where it ends.

    Attributes:
        fitted: Performance by operation and pattern.
        device_power: Whether the drive's power is known; likewise CPU and whole system.
        power_states: Operational power states whose effect is known.
        host_id: The host on which performance was measured.
        gaps: What is missing or rests on little.
    """

    device: str
    model_name: str
    profile_version: str
    schema_version: int
    generator: str
    fitted: list[FittedSurface]
    device_power: bool
    cpu_power: bool
    system_power: bool
    power_states: list[int]
    host_id: str
    valid_for: ValidFor
    defaults: list[Default]
    gaps: list[str]
    sources: list[SourceRecord]


class DeviceDetail(BaseModel):
    """Everything known of one SSD model.

    Attributes:
        declared_power_note: How the table of power states is to be read.
        profile: What the shipped profile answers, else what is expected of the drive's facts; None
            where nothing can be.
        measured: Whether the profile rests on measurements or publications of this model.
        what_to_measure: Without such a profile, what answers now and what to do to get one.
    """

    id: str
    model: str
    aliases: tuple[str, ...]
    vendor: str
    interface: str
    drive_class: str
    drive_class_source: str
    note: str | None
    facts: tuple[Fact, ...]
    power_states: tuple[PowerState, ...]
    declared_power_note: str
    profile: ProfileSummary | None
    measured: bool
    what_to_measure: str | None
    iojoule_version: str = __version__


def list_devices(published: Mapping[str, DeviceProfile] | None = None) -> list[DeviceSummary]:
    """Every SSD model of the catalogue by id, with what its profile covers.

    Args:
        published: What answers in place of the profiles that ship.
    """
    profiles = {device: load_shipped_profile(device) for device in shipped_profiles()}
    profiles |= published or {}
    return [_summary(drive, profiles.get(drive.id)) for drive in load_catalogue()]


def _summary(drive: Drive, profile: DeviceProfile | None) -> DeviceSummary:
    return DeviceSummary(
        id=drive.id,
        model=drive.model,
        vendor=drive.vendor,
        interface=drive.interface,
        drive_class=drive.drive_class,
        performance=profile is not None,
        power=profile is not None
        and profile.device_power is not None
        and not profile.device_power.is_expected,
        profile_version=profile.profile_version if profile else None,
    )


def show_device(name: str, published: Mapping[str, DeviceProfile] | None = None) -> DeviceDetail:
    """Everything known of the SSD model of that id, name or alias.

    Args:
        name: Of the model.
        published: What answers in place of the profiles that ship.

    Raises:
        UnknownDeviceError: There is none; the message names the closest.
    """
    drive = load_catalogue().get(name)
    own = (published or {}).get(drive.id)
    measured = own is not None or drive.id in shipped_profiles()
    return DeviceDetail(
        **{field: getattr(drive, field) for field in Drive.model_fields},
        declared_power_note=DECLARED,
        profile=_answering(drive.id) if own is None else summarise(own),
        measured=measured,
        what_to_measure=None if measured else what_to_measure(drive.id),
    )


def _answering(device: str) -> ProfileSummary | None:
    """The profile that answers for a drive; None for an emulated one."""
    try:
        return summarise(profile_of(device))
    except NoProfileError:
        return None


def summarise(profile: DeviceProfile) -> ProfileSummary:
    """What a profile can answer, without its numbers."""
    return ProfileSummary(
        device=profile.device,
        model_name=profile.model_name,
        profile_version=profile.profile_version,
        schema_version=profile.schema_version,
        generator=profile.generator,
        fitted=[
            FittedSurface(
                operation=surface.operation,
                pattern=surface.pattern,
                evidence=surface.evidence,
                source=surface.source,
            )
            for surface in profile.surfaces
        ],
        device_power=profile.device_power is not None,
        cpu_power=profile.host_power is not None,
        system_power=profile.system_power is not None,
        power_states=[0, *sorted({e.power_state for e in profile.power_state_effects})],
        host_id=profile.host.host_id,
        valid_for=profile.valid_for,
        defaults=[
            Default(field=field, value=value, source=profile.default_sources.get(field, "unknown"))
            for field, value in profile.defaults.items()
        ],
        gaps=profile.gaps,
        sources=profile.sources,
    )
