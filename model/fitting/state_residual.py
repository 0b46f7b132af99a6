"""Learning what runs in several power states show beside the physical model.

The surfaces rest on runs in PS0, the effects of states on few figures each. Everything that runs
in any state say at their place is the difference between them and that model: a Gaussian process
over size, requests in flight, jobs, host path and power state. Its level and slopes take what a
state does as a whole (a base power of its own, one clock for everything), its smooth part what is
local (a step at the maximum transfer size, a cap that holds on).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.profile import DeviceProfile, ResidualTable, StateResidual
from iojoule.datasets.schema import Measurement
from iojoule.datasets.vocabulary import Evidence, Operation, Pattern
from iojoule.model.fitting.export import octaves, rounded
from iojoule.model.fitting.rows import PERCENTILES, Rows, rows_of, stands_apart
from iojoule.model.gaussian_process import GaussianProcess
from iojoule.model.predictor import Predictor
from iojoule.model.prior.surfaces import FORM_SD
from iojoule.model.state_residual import state_path

Floats = NDArray[np.float64]

RUNS_MIN = 10
"""So many runs of an operation and pattern are needed: a process has half a dozen lengths."""

RUNS_MAX = 1000
"""So many are used, spread over all: the solve is cubic."""

LEAST_SD = 0.01
"""Log sd that a value keeps at a run itself, besides what drives of a model differ by."""

LATENCY_FORM_SD = FORM_SD
"""Least log sd of what the model misses of latencies, away from every run: what drives do beside
the curve. Residuals of the runs that the curve was fitted to say too little of it."""

WATTS_FORM_SD = 0.1
"""Likewise of watts: a bit less than `model.device_power` says of a state that nobody measured."""


def with_state_residuals(
    profile: DeviceProfile, measurements: Sequence[Measurement]
) -> DeviceProfile:
    """The profile with what its own model misses of runs over power states.

    Nothing changes where no run was below PS0, or where the effects of states were published: the
    runs that those rest on say more than the few of the dataset.
    """
    effects = [one.ceiling_bytes_per_second.evidence for one in profile.power_state_effects]
    if Evidence.PUBLISHED in effects:
        return profile
    runs = {
        (one.operation, one.pattern): [
            run for run in measurements if _belongs(run, profile, one.operation, one.pattern)
        ]
        for one in profile.surfaces
    }
    runs = {
        key: own
        for key, own in runs.items()
        if len(own) >= RUNS_MIN and any(one.configuration.power_state for one in own)
    }
    # what PS0 alone was seen to miss is in the new residual too, as far as the runs bear it out
    surfaces = [
        one.model_copy(update={"residual": None}) if (one.operation, one.pattern) in runs else one
        for one in profile.surfaces
    ]
    known = profile.model_copy(update={"surfaces": surfaces})
    # watts follow the rates, so that they are compared once these are right
    for names in (("latency", *PERCENTILES), ("watts",)):
        before = {(one.operation, one.pattern): one.table for one in known.state_residuals or []}
        tables = {key: _table(known, own, key, names, before.get(key)) for key, own in runs.items()}
        found = [
            StateResidual(operation=key[0], pattern=key[1], table=table)
            for key, table in tables.items()
            if table is not None
        ]
        known = known.model_copy(update={"state_residuals": found or None})
    return known if known.state_residuals else profile


def _belongs(
    one: Measurement, profile: DeviceProfile, operation: Operation, pattern: Pattern
) -> bool:
    """Whether a run tells of a surface: at full speed, cache in play, no more jobs than cores."""
    full = profile.write_state.cached_bytes.value if profile.write_state else np.inf
    seen = one.observations
    return (
        one.workload.operation is operation
        and one.workload.pattern is pattern
        and one.workload.demand_bytes_per_second is None
        and one.state.device_state != "collecting"
        and (one.state.host_bytes_written_since_purge or 0.0) < full
        and one.configuration.jobs <= (one.conditions.cpu_cores_available or one.configuration.jobs)
        and bool(seen.iops or seen.latency_mean_ns)
        and not stands_apart(one.conditions.session_id or one.conditions.series_id or "")
    )


def _table(
    profile: DeviceProfile,
    runs: list[Measurement],
    key: tuple[Operation, Pattern],
    names: tuple[str, ...],
    before: ResidualTable | None,
) -> ResidualTable | None:
    runs = runs[:: -(-len(runs) // RUNS_MAX)]
    rows = rows_of(runs, host_cores=profile.host.cpu_cores)
    state = np.array([one.configuration.power_state or 0 for one in runs])
    residuals = {
        name: values
        for name, values in _residuals(profile, runs, rows, state, key).items()
        if name in names and np.isfinite(values).sum() >= RUNS_MIN
    }
    if not residuals:
        return before
    places = np.stack(
        [np.log2(rows.queue_depth), np.log2(rows.jobs), np.log2(rows.request_bytes)], axis=1
    )
    paths = np.array(rows.path_keys(), dtype=object)
    layout = _Layout(places, paths, state)
    axes = [octaves(places[:, i]) for i in range(3)]
    grid = np.array(list(product(*axes)))
    blocks = [(str(path), int(one)) for one in np.unique(state) for path in sorted(set(paths))]
    inputs = np.concatenate([layout.inputs(grid, *block) for block in blocks])
    at = np.concatenate(
        [
            layout.inputs(where[None], path, int(one))
            for where, path, one in zip(places, paths, state, strict=True)
        ]
    )
    values = dict(before.values) if before else {}
    for name, y in residuals.items():
        seen = np.isfinite(y)
        least = WATTS_FORM_SD if name == "watts" else LATENCY_FORM_SD
        process = GaussianProcess(at[seen], y[seen], least_sd=least)
        mean, variance = process.marginal(inputs)
        wider = max(1.0, process.surprise())
        values[name] = _short(mean)
        values[f"{name}_sd"] = _short(
            np.hypot(wider * np.sqrt(np.maximum(variance, 0.0)), LEAST_SD)
        )
    measured = {
        (str(path), int(one), *np.round(where, 4))
        for where, path, one in zip(places, paths, state, strict=True)
    }
    values["measured"] = [
        float((*block, *np.round(where, 4)) in measured) for block in blocks for where in grid
    ]
    return ResidualTable(
        log2_queue_depth=rounded(axes[0]),
        log2_jobs=rounded(axes[1]),
        log2_request_bytes=rounded(axes[2]),
        paths=[state_path(*block) for block in blocks],
        values=values,
    )


def _short(values: Floats) -> list[float]:
    """Five decimals of a logarithm: a hundred-thousandth of the predicted value."""
    return [float(value) for value in np.round(values, 5)]


def _residuals(
    profile: DeviceProfile,
    runs: list[Measurement],
    rows: Rows,
    state: NDArray[np.intp],
    key: tuple[Operation, Pattern],
) -> dict[str, Floats]:
    """Logs of what runs showed over what the profile says, by name, shape (n,)."""
    columns = {
        name: getattr(rows, name)
        for name in (
            "request_bytes",
            "queue_depth",
            "jobs",
            "engine",
            "completion",
            "submission_polling",
            "scheduler",
        )
    } | {
        "operation": [key[0].value] * len(rows),
        "pattern": [key[1].value] * len(rows),
        "power_state": state,
    }
    answer, _ = Predictor(profile).predict_columns(columns, len(rows))
    watts = np.array([one.observations.device_power_watts or np.nan for one in runs])
    seen = {"latency": (rows.latency_ns, "latency_mean_ns"), "watts": (watts, "device_power_watts")}
    seen |= {name: (rows.percentile(name), f"latency_{name}_ns") for name in PERCENTILES}
    return {
        name: np.log(values) - np.log(answer[quantity].value)
        for name, (values, quantity) in seen.items()
    }


class _Layout:
    """Scales coordinates of runs, so that each goes from 0 to 1.

    As in `model.coordinates`, depth enters as requests in flight; a power state is a number.
    """

    def __init__(self, places: Floats, paths: NDArray[np.object_], state: NDArray[np.intp]) -> None:
        self._paths = sorted(set(paths))[1:]
        flight = self._in_flight(places, np.asarray(state, float))
        self._low = flight.min(axis=0)
        self._span = np.maximum(np.ptp(flight, axis=0), 1.0)

    def inputs(self, places: Floats, path: str, state: int) -> Floats:
        """Coordinates in (log2 depth, jobs, bytes) as inputs of a process, shape (n, d)."""
        flight = self._in_flight(places, np.full(len(places), float(state)))
        scaled = (flight - self._low) / self._span
        switches = np.tile([float(path == one) for one in self._paths], (len(places), 1))
        return np.hstack([scaled, switches])

    @staticmethod
    def _in_flight(places: Floats, state: Floats) -> Floats:
        depth, jobs, size = places.T
        return np.stack([depth + jobs, jobs, size, state], axis=1)
