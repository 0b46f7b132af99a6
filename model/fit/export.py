"""From a fitted surface to the numbers that a profile keeps."""

from __future__ import annotations

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from iojoule.datasets.profile import Hull, IntervalWidth, ResidualTable, Surface
from iojoule.datasets.vocabulary import Evidence
from iojoule.model.evaluate.bands import Floats
from iojoule.model.fit.performance import FittedSurface
from iojoule.model.fit.residual import coordinates
from iojoule.model.fit.rows import PERCENTILES, Rows, stands_apart
from iojoule.model.prior.surfaces import prior_tail, prior_widths
from iojoule.model.recipe import SurfaceRecipe

DIGITS = 7
"""Significant digits kept in a profile: more than any fit repeats, few enough to compare."""


def rounded(values: Floats | list[float] | float) -> list[float]:
    """Round to the digits a profile keeps."""
    return [float(f"{value:.{DIGITS}g}") for value in np.ravel(values)]


def export_surface(
    fitted: FittedSurface, rows: Rows, recipe: SurfaceRecipe, widths: list[IntervalWidth]
) -> Surface:
    """Write a fitted surface down.

    Args:
        fitted: The surface.
        rows: What it was fitted on, for hulls and table axes.
        recipe: Its recipe.
        widths: Conformal widths by quantity and region.
    """
    knots = fitted.knots
    evident = _by_path(_evident(rows, recipe))
    absent = [name for name in PERCENTILES if name not in fitted.tails]
    tails = {**fitted.tails, **{name: prior_tail(name, len(knots.log2_bytes)) for name in absent}}
    return Surface(
        operation=recipe.operation,
        pattern=recipe.pattern,
        evidence=recipe.evidence,
        source=recipe.source,
        log2_request_bytes=rounded(knots.log2_bytes),
        unloaded_latency_ns=rounded(np.exp(knots.log_unloaded_ns)),
        capacity_operations_per_second=rounded(np.exp(knots.log_capacity_per_ns) * 1e9),
        sharpness=rounded(np.exp(knots.log_sharpness)),
        transfer_bytes_per_second=rounded(knots.transfer_bytes_per_ns * 1e9)[0],
        access_unit_bytes=int(2**knots.access_unit_log2),
        relative_sd=recipe.relative_sd,
        tails=[
            tail.model_copy(
                update={
                    "intrinsic": rounded(tail.intrinsic)[0],
                    "collision": rounded(tail.collision),
                    "exponent": rounded(tail.exponent)[0],
                    "saturation": rounded(tail.saturation)[0],
                    "host_damping": rounded(tail.host_damping)[0],
                }
            )
            for tail in tails.values()
        ],
        residuals=_tables(fitted),
        hulls={key: _hull(part) for key, part in evident.items()},
        widths=[*widths, *(w for name in absent for w in prior_widths(name, recipe.relative_sd))],
    )


def _evident(rows: Rows, recipe: SurfaceRecipe) -> Rows:
    """The rows that bear the surface's evidence: sessions that stand apart widen no hull."""
    if recipe.evidence != Evidence.MEASURED:
        return rows
    return rows.take(np.array([not stands_apart(str(name)) for name in rows.session]))


def _by_path(rows: Rows) -> dict[str, Floats]:
    """Coordinates of the rows of each host path."""
    keys = np.array(rows.path_keys(), dtype=object)
    where = coordinates(rows)
    return {str(key): where[keys == key] for key in sorted(set(keys))}


def _hull(points: Floats) -> Hull:
    """Convex hull of points (n, 3); coordinates that never vary are fixed."""
    low, high = points.min(axis=0), points.max(axis=0)
    varies = np.flatnonzero(high - low > 1e-9)
    fixed = [None if axis in varies else float(low[axis]) for axis in range(3)]
    normals = np.zeros((0, 3))
    offsets = np.zeros(0)
    if len(varies) == 1:
        normals = np.zeros((2, 3))
        normals[0, varies[0]], normals[1, varies[0]] = 1.0, -1.0
        offsets = np.array([high[varies[0]], -low[varies[0]]])
    elif len(varies) > 1:
        try:
            equations = np.unique(np.round(ConvexHull(points[:, varies]).equations, 9), axis=0)
        except QhullError:  # the points lie on a line or a plane: keep to the box they span
            equations = np.vstack(
                [
                    np.hstack([s * np.eye(len(varies)), -s * e[varies, None]])
                    for s, e in ((1.0, high), (-1.0, low))
                ]
            )
        normals = np.zeros((len(equations), 3))
        normals[:, varies] = equations[:, :-1]
        offsets = -equations[:, -1]
    return Hull(
        normals=[(float(a), float(b), float(c)) for a, b, c in normals],
        offsets=[float(value) for value in offsets],
        fixed=(fixed[0], fixed[1], fixed[2]),
    )


def _tables(fitted: FittedSurface) -> list[ResidualTable]:
    """One table a host path, that with most rows first."""
    return [
        ResidualTable(
            log2_queue_depth=rounded(grid.axes[0]),
            log2_jobs=rounded(grid.axes[1]),
            log2_request_bytes=rounded(grid.axes[2]),
            paths=[path],
            values={
                **{name: _short(each.ravel()) for name, each in grid.reference.items()},
                "measured": [float(flag) for flag in grid.measured.ravel()],
            },
        )
        for path, grid in fitted.grids.items()
    ]


def _short(values: Floats) -> list[float]:
    """Five decimals of a logarithm: a hundred-thousandth of the predicted value."""
    return [float(value) for value in np.round(values, 5)]


def octaves(values: Floats) -> Floats:
    """Whole octaves from the smallest to the largest measured position."""
    return np.arange(np.floor(values.min() + 1e-9), np.ceil(values.max() - 1e-9) + 1)
