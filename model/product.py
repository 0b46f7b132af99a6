"""A surface on a product of axes: what depends on few of them is worked out once for all rows.

Candidates are combinations of routes through the host, request sizes, queue depths and jobs. The
drive's own latency follows the route, the size and the requests in flight; what was learned and how
sure it is follow the place in the table or hull; only the host's bend needs every axis. So the
terms here are small, whatever the number of combinations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from iojoule.model.columns import Codes, Floats
from iojoule.model.curve import split_commands
from iojoule.model.loaded_surface import FAR_OCTAVES, LoadedSurface
from iojoule.model.surface import Points, collision_excess, device_latency


@dataclass(frozen=True)
class Product:
    """Axes, and what follows from them.

    Attributes:
        code: Host paths, shape (R,).
        added_ns: What each adds to an unloaded request, shape (R,).
        one_of_each: Codes of which every path has its like in residual and hull, shape (K,).
        queue_depth: Shape (D,).
        jobs: Shape (J,).
        request_bytes: Shape (S,).
        in_flight: Numbers of requests in flight, each once, shape (N,).
        commands: Device commands a request, shape (S,).
        log2_bytes: log2 of the bytes of a command, shape (S,).
    """

    code: Codes
    added_ns: Floats
    one_of_each: Codes
    queue_depth: Floats
    jobs: Floats
    request_bytes: Floats
    in_flight: Floats
    commands: Floats
    log2_bytes: Floats


@dataclass(frozen=True)
class TailTerms:
    """One percentile on a product.

    Attributes:
        excess: Of the percentile over the mean before the host damps it, in unloaded latencies,
            shape (R, N, S); None where the log ratio is `constant`.
        constant: That log ratio, NaN where the surface does not know the percentile.
        damping: How the host's excess damps.
        learned: Learned residual, shape (K, D, J, S).
        half_width: Log half width of 90 % before the path's, shape (K, D, J, S).
    """

    excess: Floats | None
    constant: float
    damping: float
    learned: Floats
    half_width: Floats


@dataclass(frozen=True)
class SurfaceTerms:
    """A surface on a product; logs of ns.

    Attributes:
        device: The drive's own latency, shape (R, N, S).
        log_unloaded: Unloaded latency, shape (R, S).
        learned: Learned residual of the mean, shape (K, D, J, S).
        half_width: Its log half width of 90 % before the path's, shape (K, D, J, S).
        path_half_width: That of the path, shape (R,).
        tails: By name.
    """

    device: Floats
    log_unloaded: Floats
    learned: Floats
    half_width: Floats
    path_half_width: Floats
    tails: dict[str, TailTerms]


def likes(surfaces: list[LoadedSurface], code: Codes) -> tuple[Codes, Codes]:
    """Group paths that share residual and hull in all surfaces.

    Returns:
        The first path of each group, shape (K,), and the group of each path, shape (R,).
    """
    keys = zip(
        *(part[code].tolist() for one in surfaces for part in (one.table_path, one.hull_index)),
        strict=True,
    )
    groups: dict[tuple[int, ...], int] = {}
    group = [groups.setdefault(key, len(groups)) for key in keys]
    first = [group.index(number) for number in range(len(groups))]
    return code[first], np.array(group, dtype=np.intp)


def axes(
    code: Codes, one_of_each: Codes, added_ns: Floats, sizes: Floats, depths: Floats, jobs: Floats,
    in_flight: Floats, max_transfer_bytes: float,
) -> Product:  # fmt: skip
    """Lay a product out; see `Product`."""
    commands, log2_bytes = split_commands(sizes, max_transfer_bytes)
    return Product(
        code, added_ns, one_of_each, depths, jobs, sizes, in_flight, commands, log2_bytes
    )


def surface_on(surface: LoadedSurface, at: Product, names: tuple[str, ...]) -> SurfaceTerms:
    """Terms of a surface without doubt (`LoadedSurface.surface.doubt`) for mean and percentiles.

    Args:
        surface: Evaluated as `LoadedSurface.evaluate` does.
        at: The axes.
        names: Percentiles wanted.
    """
    log_commands = np.log(at.in_flight)[:, None] + np.log(at.commands)
    device, log_unloaded, log_knee = device_latency(
        surface.knots, at.log2_bytes, log_commands, at.added_ns[:, None, None]
    )
    coordinates = (np.log2(at.queue_depth), np.log2(at.jobs), np.log2(at.request_bytes))
    shape = (len(at.one_of_each), *map(len, coordinates))
    wanted = [*("latency", *names), *(f"{name}_sd" for name in ("latency", *names))]
    learned: dict[str, Floats] = {}
    if surface.table is not None:
        paths = surface.table_path[at.one_of_each]
        learned = surface.table.on_product(coordinates, paths, wanted)
    distance = np.minimum(_distance(surface, at, coordinates), FAR_OCTAVES).reshape(shape)
    inside = distance <= 0
    nothing = np.zeros(shape)

    def half_width(name: str) -> Floats:
        return surface.half_width(name, learned.get(f"{name}_sd"), distance, inside)

    known = {str(tail.quantile): tail for tail in surface.surface.tails}
    tails = {}
    for name in names:
        tail = known.get(name)
        collides = tail is not None and bool(tail.collision)
        tails[name] = TailTerms(
            collision_excess(tail, surface.knots, at.log2_bytes, log_commands, log_knee)
            if tail is not None and collides
            else None,
            tail.intrinsic if tail is not None else np.nan,
            tail.host_damping if tail is not None else 0.0,
            learned.get(name, nothing),
            half_width(name),
        )
    return SurfaceTerms(
        device,
        log_unloaded[:, 0],
        learned.get("latency", nothing),
        half_width("latency"),
        surface.path_half_width[at.code],
        tails,
    )


def _distance(
    surface: LoadedSurface, at: Product, coordinates: tuple[Floats, Floats, Floats]
) -> Floats:
    """Octaves beyond the hull, in the order of (K, D, J, S)."""
    rows = [part.ravel() for part in np.meshgrid(*coordinates, indexing="ij")]
    nothing = np.zeros(len(rows[0]))
    points = Points(
        nothing, nothing, nothing, rows[2], rows[0], rows[1], nothing, nothing, nothing
    )  # fmt: skip
    hulls: dict[int, Floats] = {}
    for code in at.one_of_each.tolist():
        hull = int(surface.hull_index[code])
        if hull not in hulls:
            hulls[hull] = surface.distance(points, np.full(len(nothing), code))
    return np.concatenate([hulls[int(hull)] for hull in surface.hull_index[at.one_of_each]])
