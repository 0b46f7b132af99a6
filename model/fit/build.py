"""Building a device profile: measurements and a recipe in, one JSON document out.

Conditions behind measurements: where a fit of them is valid.

Profiles built again without single findings, each in the time that what they touch takes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from threadpoolctl import threadpool_limits

from iojoule import __version__
from iojoule.datasets.contribution import Contribution, contributed_folder, read_contribution
from iojoule.datasets.errors import InputError
from iojoule.datasets.importers.column_map import public_map
from iojoule.datasets.importers.csv import import_csv
from iojoule.datasets.profile import (
    PROFILE_SCHEMA_VERSION,
    DeviceProfile,
    HostPath,
    HostPerformance,
    MixedEffect,
    SchedulerCost,
    SourceRecord,
    Surface,
    ValidFor,
)
from iojoule.datasets.schema import Measurement
from iojoule.datasets.store import Dataset
from iojoule.datasets.vocabulary import Evidence
from iojoule.model.evaluate.performance import PerformanceModel
from iojoule.model.fit.background import fit_idle, measured_settle, work_after_writes
from iojoule.model.fit.backtest import assess
from iojoule.model.fit.export import rounded
from iojoule.model.fit.generic_recipe import (
    device_power_recipe,
    host_operation_recipe,
    host_power_recipe,
    system_power_recipe,
)
from iojoule.model.fit.host_power import (
    core_seconds_per_byte,
    fit_host,
    fit_system_power,
    meters_disagree,
)
from iojoule.model.fit.power import PowerRows, fit_device_power, power_rows
from iojoule.model.fit.power_states import (
    exported_effects,
    power_state_recipes,
    with_predicted_twins,
)
from iojoule.model.fit.selection import select
from iojoule.model.fit.surfaces import (
    PriorsOf,
    SurfaceFit,
    SurfaceMemory,
    fit_surfaces,
    surface_priors,
)
from iojoule.model.fit.widths import between_drives, between_sessions
from iojoule.model.fit.without import facts_of, without
from iojoule.model.fit.write_state import fit_write_state, write_series
from iojoule.model.recipe import (
    ContributedFolder,
    MeasurementFile,
    PowerStateRecipe,
    Recipe,
    parameter,
)


def load_measurements(recipe: Recipe, folder: Path) -> tuple[list[Measurement], list[SourceRecord]]:
    """Read a recipe's measurement files from a folder, keeping the recipe's device only.

    Raises:
        InputError: A file is missing or is not what its map expects.
    """
    measurements: list[Measurement] = []
    records: list[SourceRecord] = []
    for item in recipe.measurements:
        if isinstance(item, ContributedFolder):
            contribution = read_contribution(contributed_folder(item.contributed))
            own, record = contributed_rows(recipe, Contributed(item.contributed, contribution))
            measurements += own
            records.append(record)
            continue
        path = folder / item.file
        if not path.is_file():
            raise InputError(
                f"{path}: missing; recipe {recipe.device} needs it. Name the folder that holds "
                "the public measurements with --data"
            )
        dataset = import_csv(path, public_map(item.map))
        own = [
            measurement
            for measurement in dataset.measurements()
            if measurement.conditions.device_model == recipe.device
        ]
        measurements += own
        records.append(_record(item, dataset, len(own)))
    return measurements, records


@dataclass(frozen=True)
class Contributed:
    """A contribution and the name of its folder."""

    name: str
    contribution: Contribution


def contributed_rows(recipe: Recipe, entry: Contributed) -> tuple[list[Measurement], SourceRecord]:
    """What a recipe takes of a contribution, and where it comes from.

    Raises:
        InputError: It is of another drive.
        DataQualityError: Its measurements contradict themselves (`gates`).
    """
    about, rows = entry.contribution.about, entry.contribution.measurements
    if about.device != recipe.device:
        raise InputError(
            f"contribution {entry.name} is of {about.device}, the recipe of {recipe.device}",
            field="contributed",
        )
    selected = select(rows)
    record = SourceRecord(
        name=entry.name,
        citation=f"contributed by {about.contributor or 'a user of iojoule'}",
        licence=about.licence,
        rows_used=len(selected.measurements),
        rows_excluded=len(rows) - len(selected.measurements),
        sha256=about.measurements_sha256,
        notes=[],
    )
    return selected.measurements, record


def _record(item: MeasurementFile, dataset: Dataset, used: int) -> SourceRecord:
    source = dataset.provenance.sources[0]
    reasons = sorted({row.reason for row in dataset.provenance.excluded})
    return SourceRecord(
        name=item.file,
        citation=source.citation or item.file,
        licence=source.licence or "unknown",
        rows_used=used,
        rows_excluded=len(dataset) - used + len(dataset.provenance.excluded),
        sha256=source.sha256,
        notes=reasons,
    )


def fit_profile(
    recipe: Recipe,
    measurements: list[Measurement],
    sources: list[SourceRecord],
    memory: SurfaceMemory | None = None,
    priors_of: PriorsOf = surface_priors,
    power_runs: Sequence[Measurement] = (),
) -> DeviceProfile:
    """Fit everything a recipe asks for.

    Args:
        recipe: What to fit, from what, under which assumptions.
        measurements: Of this drive.
        sources: Where they come from.
        memory: Spares fits that an earlier call has done; such a profile answers a question of
            the moment and is not assessed.
        priors_of: Says what to expect of a surface before its rows.
        power_runs: Further runs, which tell of the drive's power alone.

    Raises:
        InputError: The measurements cannot carry a profile; says what to measure.
    """
    # one thread: sums in one order, so that every machine finds the same digits
    with threadpool_limits(1):
        if memory is not None:
            return _fit_profile(recipe, measurements, sources, memory, priors_of, power_runs)[0]
        profile, fits, points = _fit_profile(
            recipe, measurements, sources, SurfaceMemory(), priors_of, power_runs
        )
        held = [(fit.rows, fit.without) for fit in fits]
        assessment = assess(profile, [fit.recipe for fit in fits], held, points)
        return profile.model_copy(update={"assessment": assessment})


def host_rows(recipe: Recipe, measurements: list[Measurement]) -> list[Measurement]:
    """The measurements that the law of CPU power is fitted on beside the recipe's anchors."""
    stated = recipe.host_power
    if stated is None or stated.measured_as is None:
        return []
    sessions = {session.session_id for session in stated.sessions}
    return [
        measurement
        for measurement in measurements
        if measurement.conditions.host_id == stated.measured_as
        and measurement.conditions.session_id in sessions
    ]


def _fit_profile(
    recipe: Recipe,
    measurements: list[Measurement],
    sources: list[SourceRecord],
    memory: SurfaceMemory,
    priors_of: PriorsOf,
    power_runs: Sequence[Measurement],
) -> tuple[DeviceProfile, list[SurfaceFit], PowerRows]:
    runs = host_rows(recipe, measurements)
    caps, stated = declared_caps(recipe), recipe.power_states

    def effects_of(runs: Sequence[Measurement]) -> list[PowerStateRecipe]:
        return power_state_recipes(caps, runs, recipe.drive_class, stated)

    recipe = complete(recipe, measurements)
    state = fit_write_state(write_series(measurements), recipe)
    fits = fit_surfaces(recipe, measurements, state, memory, priors_of)
    host = _host(recipe, fits).model_copy(
        update={"core_seconds_per_byte": core_seconds_per_byte(measurements)}
    )
    host_power, operation = fit_host(recipe, host, runs)
    system_power = fit_system_power(recipe.system_power) if recipe.system_power else None
    disagreement = (
        meters_disagree(recipe.system_power, system_power)
        if recipe.system_power and system_power
        else None
    )
    surfaces = [memory.export(fit.rows, fit.recipe, fit.fitted, fit.exported) for fit in fits]
    profile = DeviceProfile(
        schema_version=PROFILE_SCHEMA_VERSION,
        device=recipe.device,
        model_name=recipe.model_name,
        profile_version=recipe.profile_version,
        generator=f"iojoule {__version__}",
        recipe=recipe.device,
        sources=sources,
        valid_for=recipe.valid_for,
        defaults=dict(recipe.defaults),
        default_sources=dict(recipe.default_sources),
        max_transfer_bytes=recipe.max_transfer_bytes,
        link_bytes_per_second=(
            parameter("link_bytes_per_second", recipe.link_bytes_per_second)
            if recipe.link_bytes_per_second
            else None
        ),
        capacity_bytes=recipe.capacity_bytes,
        endurance_bytes_written=(
            parameter("endurance_bytes_written", recipe.endurance_bytes_written)
            if recipe.endurance_bytes_written
            else None
        ),
        between_drives_relative_sd=parameter(
            "between_drives_relative_sd", between_drives(measurements, recipe.between_drives)
        ),
        between_sessions_relative_sd=between_sessions(measurements),
        surfaces=sorted(surfaces, key=_surface_order),
        host=host,
        power_state_effects=exported_effects(effects_of(measurements)),
        mixed=[
            MixedEffect(
                pattern=effect.pattern,
                latency_factor=parameter("latency_factor", effect.latency_factor),
                tail_factor=parameter("tail_factor", effect.tail_factor),
            )
            for effect in recipe.mixed
        ],
        device_power=None,  # once the effects of power states are known
        write_state=state,
        work_after_writes=work_after_writes(measurements) if state is None else None,
        host_power=host_power,
        system_power=system_power,
        idle=fit_idle(recipe),
        host_operation=operation,
        gaps=[*recipe.gaps, *([disagreement] if disagreement else [])],
    )
    profile = with_predicted_twins(profile, measurements, effects_of)
    # the power law is fitted with the load that the profile sees behind each run
    rows = power_rows(
        [*measurements, *power_runs],
        recipe.max_transfer_bytes,
        profile.write_state,
        PerformanceModel(profile),
    )
    if recipe.device_power is not None:
        power = fit_device_power(rows, recipe.device_power)
        profile = profile.model_copy(update={"device_power": power})
        joules = recipe.idle.settle_joules if recipe.idle is not None else None
        if joules is not None and profile.idle is not None:
            idle = measured_settle(profile.idle, joules, power)
            profile = profile.model_copy(update={"idle": idle})
    return profile, fits, rows


def complete(recipe: Recipe, measurements: list[Measurement]) -> Recipe:
    """Let measured power speak where the recipe says nothing about it."""
    parts: dict[str, object] = {}
    if recipe.device_power is None:
        power = device_power_recipe(measurements, recipe.cap_watts)
        if power is not None and recipe.idle_watts:
            known = [recipe.idle_watts.get(*watts) for watts in enumerate(power.idle_watts)]
            power = power.model_copy(update={"idle_watts": known})
        parts["device_power"] = power
    if recipe.host_power is None:
        parts["host_power"] = host_power_recipe(measurements, recipe.host.cpu_cores)
    if recipe.system_power is None:
        parts["system_power"] = system_power_recipe(measurements)
    parts["host_operation"] = host_operation_recipe(recipe.host_operation, measurements)
    return recipe.model_copy(update=parts)


def declared_caps(recipe: Recipe) -> list[float]:
    """Declared watts of the operational power states."""
    power = recipe.device_power
    if recipe.cap_watts or power is None:
        return recipe.cap_watts
    idle = power.idle_watts[0].value
    return [cap for cap in power.cap_watts if cap > idle]


def _surface_order(surface: Surface) -> tuple[str, str]:
    return surface.operation.value, surface.pattern.value


def _host(recipe: Recipe, fits: Sequence[SurfaceFit]) -> HostPerformance:
    """Host costs, each from the first surface whose rows tell it (`fit_surfaces`)."""
    fitted = fits[-1].fitted
    seen = {path for fit in fits for path in fit.measured_paths}
    costs = fits[0].fitted.paths | {path: fitted.paths[path] for path in seen}
    seen_schedulers = {str(name) for fit in fits for name in fit.rows.scheduler}
    paths = []
    for path in recipe.host_paths:
        key = (path.engine.value, path.completion.value, path.submission_polling)
        added, core, wakeup = rounded(list(costs[key]))
        measured = key in seen
        paths.append(
            HostPath(
                engine=path.engine,
                completion=path.completion,
                submission_polling=path.submission_polling,
                added_latency_ns=added,
                core_time_ns=core,
                wakeup_ns=wakeup,
                relative_sd=0.0 if measured else path.log_sd * 0.3,
                evidence=Evidence.MEASURED if measured else Evidence.EXTRAPOLATED,
                source="fitted on this drive's host" if measured else path.source,
            )
        )
    schedulers = [
        SchedulerCost(
            scheduler=cost.scheduler,
            added_latency_ns=rounded(fitted.schedulers[cost.scheduler.value][0])[0],
            added_core_time_ns=rounded(fitted.schedulers[cost.scheduler.value][1])[0],
            serial_ns=cost.serial_ns,
            relative_sd=0.0 if cost.scheduler.value in seen_schedulers else cost.log_sd * 0.3,
            evidence=Evidence.MEASURED
            if cost.scheduler.value in seen_schedulers
            else Evidence.EXTRAPOLATED,
            source="fitted on this drive's host"
            if cost.scheduler.value in seen_schedulers
            else cost.source,
        )
        for cost in recipe.schedulers
    ]
    return HostPerformance(
        host_id=recipe.host.host_id,
        cpu_cores=recipe.host.cpu_cores,
        sharpness=rounded(fits[0].fitted.knots.host_sharpness)[0],
        paths=paths,
        schedulers=schedulers,
    )


TEMPERATURE_MARGIN_CELSIUS = 5.0
"""A drive's sensor reads whole kelvins at one place of the board: two drives of one model side by
side differ by a few."""


def valid_for(stated: ValidFor, measurements: Sequence[Measurement]) -> ValidFor:
    """The conditions of the measurements; what the recipe states wins, what varied is all kept."""
    seen = [measurement.conditions for measurement in measurements]
    known: dict[str, object] = {
        "firmware": stated.firmware
        or sorted({condition.firmware for condition in seen if condition.firmware}),
        "pcie_generation": stated.pcie_generation
        or sorted({condition.pcie_generation for condition in seen if condition.pcie_generation}),
    }
    for field in ("aspm_policy", "power_loss_protection", "device_serial_hash"):
        values = {getattr(condition, field) for condition in seen}
        if getattr(stated, field) is None and len(values) == 1:
            known[field] = values.pop()
    degrees = [
        value
        for condition in seen
        for value in (
            condition.temperature_celsius_start,
            condition.temperature_celsius_mean,
            condition.temperature_celsius_max,
        )
        if value is not None
    ]
    if stated.temperature_celsius is None and degrees:
        known["temperature_celsius"] = (
            min(degrees) - TEMPERATURE_MARGIN_CELSIUS,
            max(degrees) + TEMPERATURE_MARGIN_CELSIUS,
        )
    return stated.model_copy(update=known)


class Rebuilder:
    """Builds one drive's profile again without the findings that are to judge it.

    Args:
        recipe: The drive's recipe.
        folder: Where its measurements lie.

    Raises:
        InputError: A file of measurements is missing.
    """

    def __init__(self, recipe: Recipe, folder: Path) -> None:
        self.recipe = recipe
        self.facts = facts_of(recipe)
        self._measured = load_measurements(recipe, folder)
        self._memory = SurfaceMemory()
        self._profiles: dict[frozenset[str], DeviceProfile] = {}

    def used(self, facts: Collection[str]) -> frozenset[str]:
        """Those of the findings that the recipe rests on."""
        return self.facts & frozenset(facts)

    def profile(self, facts: Collection[str] = ()) -> DeviceProfile:
        """The profile as it would be without these findings."""
        gone = self.used(facts)
        if gone not in self._profiles:
            reduced = without(self.recipe, gone)
            self._profiles[gone] = fit_profile(reduced, *self._measured, memory=self._memory)
        return self._profiles[gone]
