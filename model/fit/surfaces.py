"""The surfaces of a drive: the rows and figures that each rests on, and its fit.

Surface fits kept by everything that could change them, for profiles that are built again.

A surface depends on its rows, its priors and the host costs that its rows can tell of; what
else a recipe says passes through. With that, building a profile again without one published
figure costs what depends on that figure.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np

from iojoule.datasets.errors import InputError
from iojoule.datasets.profile import Surface, WriteState
from iojoule.datasets.schema import Measurement
from iojoule.datasets.vocabulary import Evidence
from iojoule.model.fit.export import export_surface
from iojoule.model.fit.performance import (
    FittedSurface,
    PathKey,
    PathPrior,
    Priors,
    Settings,
    fit_surface,
)
from iojoule.model.fit.rows import PUBLISHED, Rows, average_repeats, join, rows_of
from iojoule.model.fit.widths import Fold, Scores, held_out, interval_widths, left_out_scores
from iojoule.model.recipe import PublishedPoint, Recipe, SurfaceRecipe


class SurfaceMemory:
    """Fits and exports each surface once; empty at first."""

    def __init__(self) -> None:
        self._fits: dict[str, FittedSurface] = {}
        self._exports: dict[str, Surface] = {}

    def fit(self, rows: Rows, settings: Settings, *, learn: bool) -> FittedSurface:
        """As `fit_surface`, from memory where nothing changed that the rows could tell."""
        key = _key(rows, settings, str(learn))
        if key not in self._fits:
            self._fits[key] = fit_surface(rows, settings, learn=learn)
        cached, seen = self._fits[key], set(rows.path())
        paths = {
            path: (prior.added_latency_ns, prior.core_time_ns, prior.wakeup_ns)
            for path, prior in settings.path_priors.items()
        }
        paths |= {path: cost for path, cost in cached.paths.items() if path in seen}
        measured = {str(name) for name in rows.scheduler}
        schedulers = settings.scheduler_priors | {
            name: cost for name, cost in cached.schedulers.items() if name in measured
        }
        return replace(cached, settings=settings, paths=paths, schedulers=schedulers)

    def export(
        self,
        rows: Rows,
        recipe: SurfaceRecipe,
        fitted: FittedSurface,
        compute: Callable[[], Surface],
    ) -> Surface:
        """The surface as a profile keeps it."""
        key = _key(
            rows,
            fitted.settings,
            recipe.model_dump_json(exclude={"points", "priors", "prior_facts"}),
        )
        if key not in self._exports:
            self._exports[key] = compute()
        return self._exports[key]


def _key(rows: Rows, settings: Settings, more: str) -> str:
    digest = hashlib.sha256(more.encode())
    for field in fields(rows):
        digest.update(np.asarray(getattr(rows, field.name)).astype(str).tobytes())
    seen, names = set(rows.path()), {str(name) for name in rows.scheduler}
    parts = (
        sorted((k, v) for k, v in settings.path_priors.items() if k in seen),
        sorted((k, v) for k, v in settings.scheduler_priors.items() if k in names),
        settings.host_cores,
        settings.max_transfer_bytes,
        settings.priors,
        sorted(settings.known_paths & seen),
        sorted(settings.known_schedulers & names),
        settings.host_sharpness,
    )
    digest.update(repr(parts).encode())
    return digest.hexdigest()


PriorsOf = Callable[[SurfaceRecipe], Priors]
"""Says what to expect of a surface before its rows."""


@dataclass(frozen=True)
class SurfaceFit:
    """A surface's recipe, the rows it rests on, and the fit."""

    recipe: SurfaceRecipe
    rows: Rows
    fitted: FittedSurface

    @cached_property
    def measured_paths(self) -> list[PathKey]:
        """Host path of each row that is a measurement, not a published point."""
        own = np.array([str(name) != PUBLISHED for name in self.rows.session])
        return self.rows.take(own).path()

    @cached_property
    def without(self) -> list[tuple[Fold, FittedSurface]]:
        """Every depth and size left out, with the fit to the rest; none if nothing is learned."""
        if not self.fitted.grids:
            return []
        return held_out(self.rows, self.fitted)

    @cached_property
    def scores(self) -> Scores:
        """Scores of what was left out, by quantity and region."""
        return left_out_scores(self.rows, self.fitted, self.without)

    def exported(self) -> Surface:
        """The surface as a profile keeps it, with intervals from what was left out."""
        names = ["latency", *self.fitted.tails] if self.fitted.grids else []
        return export_surface(
            self.fitted, self.rows, self.recipe, interval_widths(self.scores, names)
        )


def surface_rows(
    recipe: Recipe,
    surface: SurfaceRecipe,
    measurements: list[Measurement],
    state: WriteState | None,
) -> Rows | None:
    """Collect the rows of one surface: as fast as possible at PS0, cache in play; and published.

    Rows of a drive that collects garbage belong to the write state, not to the surface; rows of
    more jobs than cores tell of the host's scheduling, not of the drive.
    """
    full = state.cached_bytes.value if state else np.inf
    own = [
        m
        for m in measurements
        if m.workload.operation == surface.operation
        and m.workload.pattern == surface.pattern
        and m.at_full_speed
        and (m.configuration.power_state or 0) == 0
        and m.state.device_state not in ("collecting",)
        and (m.state.host_bytes_written_since_purge or 0.0) < full
        and m.configuration.jobs <= (m.conditions.cpu_cores_available or m.configuration.jobs)
    ]
    parts = []
    if own:
        parts.append(average_repeats(rows_of(own, host_cores=recipe.host.cpu_cores)))
    if surface.points:
        parts.append(_published_rows(surface.points, recipe))
    return join(parts) if parts else None


def _published_rows(points: list[PublishedPoint], recipe: Recipe) -> Rows:
    measurements = []
    for point in points:
        concurrency = point.queue_depth * point.jobs
        value = point.value
        if point.metric == "throughput_bytes_per_second":
            value = point.value / point.request_bytes
        iops = concurrency / value * 1e9 if point.metric == "latency_mean_ns" else value
        measurements.append(
            Measurement.model_validate(
                {
                    "workload": {"operation": "read"},
                    "configuration": point.model_dump(
                        include={"request_bytes", "queue_depth", "jobs", "engine", "completion"}
                    ),
                    "conditions": {"session_id": PUBLISHED},
                    "observations": {"iops": iops},
                }
            )
        )
    rows = rows_of(measurements, host_cores=recipe.host.cpu_cores)
    return dataclasses.replace(rows, relative_sd=np.array([point.relative_sd for point in points]))


def path_priors(recipe: Recipe) -> dict[PathKey, PathPrior]:
    """Expected host costs by path."""
    return {
        (p.engine.value, p.completion.value, p.submission_polling): PathPrior(
            p.added_latency_ns, p.core_time_ns, p.wakeup_ns, p.log_sd
        )
        for p in recipe.host_paths
    }


def scheduler_priors(recipe: Recipe) -> dict[str, tuple[float, float]]:
    """Expected added latency and core time of schedulers, ns."""
    return {
        s.scheduler.value: (s.added_latency_ns, s.added_core_time_ns) for s in recipe.schedulers
    }


def surface_priors(surface: SurfaceRecipe, expected: Priors | None = None) -> Priors:
    """Priors of one surface: what is expected (or the defaults) but for what its recipe says."""
    known = {field.name for field in dataclasses.fields(Priors)}
    unknown = set(surface.priors) - known
    if unknown:
        raise InputError(
            f"surface {surface.operation} {surface.pattern}: unknown prior "
            f"{sorted(unknown)[0]!r}; known: " + ", ".join(sorted(known))
        )
    return dataclasses.replace(expected or Priors(), **surface.priors)  # type: ignore[arg-type]


def fit_surfaces(
    recipe: Recipe,
    measurements: list[Measurement],
    state: WriteState | None,
    memory: SurfaceMemory | None = None,
    priors_of: PriorsOf = surface_priors,
) -> list[SurfaceFit]:
    """Fit every surface, that of the most requests per second of one job first.

    The profile keeps one host: what a surface tells of it holds for the next, and who asks a
    core for most tells most.
    """
    memory = memory or SurfaceMemory()
    candidates = []
    for surface in recipe.surfaces or default_surfaces(measurements):
        rows = surface_rows(recipe, surface, measurements, state)
        if rows is not None:
            candidates.append((surface, rows))
    if not candidates:
        raise InputError(
            f"{recipe.device}: no measurement has throughput or latency; measure reads and writes "
            "over request size and depth first"
        )
    candidates.sort(key=lambda item: -float(np.max(item[1].queue_depth / item[1].latency_ns)))
    priors, schedulers = path_priors(recipe), scheduler_priors(recipe)
    known_paths: frozenset[PathKey] = frozenset()
    known_schedulers: frozenset[str] = frozenset()
    fits: list[SurfaceFit] = []
    for candidate, rows in candidates:
        learn = candidate.evidence == Evidence.MEASURED and len(rows) >= 2
        settings = Settings(
            priors,
            schedulers,
            recipe.host.cpu_cores,
            recipe.max_transfer_bytes,
            priors_of(candidate),
            known_paths,
            known_schedulers,
            float(fits[0].fitted.knots.host_sharpness) if fits else None,
        )
        fitted = memory.fit(rows, settings, learn=learn)
        fits.append(SurfaceFit(candidate, rows, fitted))
        own = frozenset(fits[-1].measured_paths)
        priors = priors | {
            path: PathPrior(*fitted.paths[path], priors[path].log_sd) for path in own - known_paths
        }
        known_paths |= own
        measured = frozenset(str(name) for name in rows.scheduler) & schedulers.keys()
        schedulers = schedulers | {
            name: fitted.schedulers[name] for name in measured - known_schedulers
        }
        known_schedulers |= measured
    return fits


def default_surfaces(measurements: list[Measurement]) -> list[SurfaceRecipe]:
    """One surface for every operation and pattern that was measured alone."""
    kinds = sorted(
        {
            (m.workload.operation.value, m.workload.pattern.value)
            for m in measurements
            if m.workload.operation.value != "mixed"
        }
    )
    return [
        SurfaceRecipe.model_validate(
            {"operation": operation, "pattern": pattern, "source": "the dataset"}
        )
        for operation, pattern in kinds
    ]
