"""Surface fits kept by everything that could change them, for profiles that are built again.

A surface depends on its rows, its priors and the host costs that its rows can tell of; what
else a recipe says passes through. With that, building a profile again without one published
figure costs what depends on that figure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import fields, replace

import numpy as np

from iojoule.datasets.profile import Surface
from iojoule.model.fitting.performance import FittedSurface, Settings, fit_surface
from iojoule.model.fitting.recipe import SurfaceRecipe
from iojoule.model.fitting.rows import Rows


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
        kept, seen = self._fits[key], set(rows.path())
        paths = {
            path: (prior.added_latency_ns, prior.core_time_ns, prior.wakeup_ns)
            for path, prior in settings.path_priors.items()
        }
        paths |= {path: cost for path, cost in kept.paths.items() if path in seen}
        measured = {str(name) for name in rows.scheduler}
        schedulers = settings.scheduler_priors | {
            name: cost for name, cost in kept.schedulers.items() if name in measured
        }
        return replace(kept, settings=settings, paths=paths, schedulers=schedulers)

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
    told = (
        sorted((k, v) for k, v in settings.path_priors.items() if k in seen),
        sorted((k, v) for k, v in settings.scheduler_priors.items() if k in names),
        settings.host_cores,
        settings.max_transfer_bytes,
        settings.priors,
    )
    digest.update(repr(told).encode())
    return digest.hexdigest()
