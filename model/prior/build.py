"""A complete device profile of a drive that nobody measured: the lowest rung of the ladder."""

from __future__ import annotations

from typing import Any

from iojoule import __version__
from iojoule.datasets.links import LANE_BYTES_PER_SECOND, LINK_LANES
from iojoule.datasets.profile import (
    FACTS_RECIPE,
    PROFILE_SCHEMA_VERSION,
    DevicePower,
    DeviceProfile,
    HostPath,
    HostPerformance,
    Ladder,
    MixedEffect,
    Parameter,
    SchedulerCost,
    SourceRecord,
    WriteState,
)
from iojoule.datasets.vocabulary import Evidence
from iojoule.model.prior.cache import expected_writes
from iojoule.model.prior.disk import (
    WHOLE_REQUEST_BYTES,
    disk_entries,
    disk_idle,
    disk_mixes,
    disk_power,
    disk_surfaces,
    sata_idle,
)
from iojoule.model.prior.disk_facts import DiskFacts
from iojoule.model.prior.document import FLOWS, LearnedPrior, load_prior
from iojoule.model.prior.facts import DriveFacts, join_large_requests
from iojoule.model.prior.host import with_expected_host_power
from iojoule.model.prior.ladder import prior_entries
from iojoule.model.prior.posterior import Posterior, condition
from iojoule.model.prior.power import prior_power, state_effects
from iojoule.model.prior.surfaces import HOST_SD, prior_surface
from iojoule.model.recipe import Recipe, generic_recipe, parameter

HOST_SHARPNESS = 6.0
"""Of the host's bend where no host was measured (`model.fit.performance.Priors`)."""

NOBODY_MEASURED = (
    "nobody measured this drive: everything is expected of drives with its facts; measure it "
    "(iojoule measure plan --plan quick) and fit"
)

UNKNOWN_OF_ALL = (NOBODY_MEASURED, "CPU and wall power: they belong to a host; measure it")
"""Gaps of every profile of facts alone."""

FASTEST_LINK = LINK_LANES * max(LANE_BYTES_PER_SECOND.values())
"""Bytes a second that no NVMe drive exceeds, also where nobody says what its link is."""

SOURCE = "expected of drives with its facts: the prior learned over the catalogue"


def build_profile(drive: DriveFacts, prior: LearnedPrior | None = None) -> DeviceProfile:
    """Everything that can be said of a drive known by its facts alone, with wide intervals.

    Args:
        drive: What identify data, data sheet or the catalogue say of it.
        prior: The learned prior; None takes the one that ships.
    """
    if drive.disk is not None:
        return disk_profile(drive, drive.disk)
    return profile_of(drive, condition(prior or load_prior(), drive))


POWER_GAP = "device power"
"""How the gap begins that a drive's expected watts fill."""


def completed_with_facts(
    profile: DeviceProfile, drive: DriveFacts, prior: LearnedPrior | None = None
) -> DeviceProfile:
    """A measured profile with its drive's rating, and with watts where nobody knows its own.

    They are those that drives like it draw; the host's are then those that a drive that nobody
    measured is answered with.

    Args:
        profile: Fitted; what it knows stays.
        drive: The drive's facts.
        prior: The learned prior; None takes the one that ships.
    """
    profile = profile.model_copy(update={"rating": drive.rating})
    if profile.device_power is None:
        power = (
            disk_power(drive.disk, DISK_SOURCE)
            if drive.disk is not None
            else prior_power(condition(prior or load_prior(), drive), drive, SOURCE)
        )
        message = (
            f"{POWER_GAP}: no sensor saw it; it is expected of drives with its facts. Attach one, "
            "repeat the runs and fit again"
        )
        gaps = [*(gap for gap in profile.gaps if not gap.startswith(POWER_GAP)), message]
        profile = profile.model_copy(update={"device_power": power, "gaps": gaps})
    if profile.idle is None and drive.sata:
        idle = (
            disk_idle(drive.disk, sata=True)
            if drive.disk is not None
            else sata_idle(_idle_watts(profile.device_power), drive.slumber)
        )
        profile = profile.model_copy(update={"idle": idle})
    return with_expected_host_power(profile)


def profile_of(drive: DriveFacts, posterior: Posterior) -> DeviceProfile:
    """The profile of a drive at its point of the prior."""
    recipe = generic_recipe(drive.device, drive.model)
    link, endurance = drive.link_bytes_per_second, drive.endurance
    power = prior_power(posterior, drive, SOURCE)
    writes = expected_writes(posterior, drive, power)
    bound = link or (None if drive.sata is None else FASTEST_LINK)
    return _profile(
        drive,
        recipe,
        bound,
        sources=_sources(posterior),
        max_transfer_bytes=drive.max_transfer_bytes or recipe.max_transfer_bytes,
        endurance_bytes_written=Parameter(
            name="endurance_bytes_written",
            value=float(endurance.value),
            sd=0.0,
            unit="bytes",
            evidence=Evidence.DATASHEET,
            source=endurance.source,
        )
        if endurance is not None
        else None,
        surfaces=join_large_requests(
            [prior_surface(posterior, flow, link, SOURCE) for flow in sorted(FLOWS)]
        ),
        power_state_effects=state_effects(posterior, drive, SOURCE),
        mixed=[
            MixedEffect(
                pattern=effect.pattern,
                latency_factor=parameter("latency_factor", effect.latency_factor),
                tail_factor=parameter("tail_factor", effect.tail_factor),
            )
            for effect in recipe.mixed
        ],
        device_power=power,
        write_state=writes,
        ladder=Ladder(entries=prior_entries(posterior)),
        idle=sata_idle(_idle_watts(power), drive.slumber) if drive.sata else None,
        gaps=[*UNKNOWN_OF_ALL, _writes_gap(drive, writes)],
    )


def _profile(
    drive: DriveFacts, recipe: Recipe, link: float | None, **by_kind: Any
) -> DeviceProfile:
    """A profile of facts alone: what drives of every kind have, and what each kind has of its own.

    Args:
        drive: Its facts.
        recipe: The common assumptions.
        link: Bytes a second; None where nobody knows.
        by_kind: The other fields of the profile.
    """
    return DeviceProfile(
        schema_version=PROFILE_SCHEMA_VERSION,
        device=drive.device,
        model_name=drive.model,
        profile_version="1",
        generator=f"iojoule {__version__}",
        recipe=FACTS_RECIPE,
        valid_for=recipe.valid_for,
        defaults=dict(recipe.defaults),
        default_sources=dict(recipe.default_sources),
        link_bytes_per_second=_number("link_bytes_per_second", link, "bytes/s", _link_source(drive))
        if link
        else None,
        capacity_bytes=drive.capacity_bytes,
        between_drives_relative_sd=parameter("between_drives_relative_sd", recipe.between_drives),
        host=expected_host(recipe),
        host_power=None,
        system_power=None,
        rating=drive.rating,
        **by_kind,
    )


def _writes_gap(drive: DriveFacts, writes: WriteState | None) -> str:
    """What is not known of writes over time."""
    if writes is None:
        return (
            "what writes do over time: expected to change nothing, by the kind of its memory; "
            "nobody measured it"
        )
    if drive.datacentre:
        return (
            "how long random writes keep their first rate: until no block is free, about the "
            "capacity of a purged drive; nobody measured it"
        )
    return (
        "the cache for writes and what follows when it is full: as rated, or else as other drives "
        "of its kind, wide"
    )


DISK_SOURCE = "the mechanics of a disk with its facts (model.prior.disk_facts)"


def disk_profile(drive: DriveFacts, disk: DiskFacts) -> DeviceProfile:
    """The profile of a hard disk, from its mechanics."""
    recipe = generic_recipe(drive.device, drive.model)
    entries = disk_entries(disk)
    sources = sorted({fact.source for entry in entries for fact in entry.facts})
    return _profile(
        drive,
        recipe,
        drive.link_bytes_per_second,
        sources=[_facts_of(name) for name in sources],
        max_transfer_bytes=WHOLE_REQUEST_BYTES,
        endurance_bytes_written=None,
        surfaces=disk_surfaces(disk, DISK_SOURCE),
        power_state_effects=[],
        mixed=disk_mixes(),
        device_power=disk_power(disk, DISK_SOURCE),
        write_state=None,
        ladder=Ladder(entries=entries),
        idle=disk_idle(disk, sata=bool(drive.sata)),
        gaps=[
            *UNKNOWN_OF_ALL,
            "the writes that its cache holds: latencies are those once it is full",
            "shingled tracks, defects and other work of its own: as a disk that has none of it",
        ],
    )


def expected_host(recipe: Recipe) -> HostPerformance:
    """The host as the common assumptions have it."""
    return HostPerformance(
        host_id=recipe.host.host_id,
        cpu_cores=recipe.host.cpu_cores,
        sharpness=HOST_SHARPNESS,
        paths=[
            HostPath(
                engine=path.engine,
                completion=path.completion,
                submission_polling=path.submission_polling,
                added_latency_ns=path.added_latency_ns,
                core_time_ns=path.core_time_ns,
                wakeup_ns=path.wakeup_ns,
                # beyond what every unknown host may differ by (the surfaces' doubt)
                relative_sd=0.3 * max(path.log_sd - HOST_SD, 0.0),
                evidence=Evidence.EXTRAPOLATED,
                source=path.source,
            )
            for path in recipe.host_paths
        ],
        schedulers=[
            SchedulerCost(
                scheduler=cost.scheduler,
                added_latency_ns=cost.added_latency_ns,
                added_core_time_ns=cost.added_core_time_ns,
                serial_ns=cost.serial_ns,
                relative_sd=0.3 * cost.log_sd,
                evidence=Evidence.EXTRAPOLATED,
                source=cost.source,
            )
            for cost in recipe.schedulers
        ],
    )


def _sources(posterior: Posterior) -> list[SourceRecord]:
    """The facts by where they stand, and the prior."""
    names = sorted({observation.fact.source for observation in posterior.observations})
    learned = "; ".join(
        f"{source.name} ({source.drives} drives)" for source in posterior.prior.sources
    )
    return [
        *(_facts_of(name) for name in names),
        SourceRecord(
            name="learned prior",
            citation=learned,
            licence="facts and fitted parameters",
            rows_used=0,
            rows_excluded=0,
            sha256=None,
            notes=[posterior.prior.generator],
        ),
    ]


def _idle_watts(power: DevicePower | None) -> Parameter:
    assert power is not None, "a completed profile has the drive's power"
    return power.idle_watts[0]


def _facts_of(source: str) -> SourceRecord:
    return SourceRecord(
        name="catalogue fact",
        citation=source,
        licence="facts",
        rows_used=0,
        rows_excluded=0,
        sha256=None,
        notes=[],
    )


def _link_source(drive: DriveFacts) -> str:
    if drive.sata or drive.rating.pcie_generation is not None:
        return "catalogue"
    return "assumption: four lanes of the slowest PCIe generation that carries what is rated"


def _number(name: str, value: float, unit: str, source: str) -> Parameter:
    return Parameter(
        name=name, value=value, sd=0.0, unit=unit, evidence=Evidence.DATASHEET, source=source
    )
