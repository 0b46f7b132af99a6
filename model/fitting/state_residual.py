"""Learning what runs in several power states show beside the physical model.

The surfaces rest on runs in PS0, the effects of states on few figures each. Everything that runs
in any state say at their place is the difference between them and that model: a Gaussian process
over size, requests in flight, jobs, host path and power state. Its level and slopes take what a
state does as a whole (a base power of its own, one clock for everything), its smooth part what is
local (a step at the maximum transfer size, a cap that holds on). Runs of mixes say likewise what
differs from reads and writes that take turns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.profile import DeviceProfile, ResidualTable, StateResidual
from iojoule.datasets.schema import Measurement
from iojoule.datasets.vocabulary import Evidence, MixDispatch, Operation, Pattern
from iojoule.model import device_power
from iojoule.model.fitting.export import octaves, rounded
from iojoule.model.fitting.rows import PERCENTILES, SETTINGS, Rows, rows_of, stands_apart
from iojoule.model.gaussian_process import GaussianProcess, unexplained
from iojoule.model.prediction import Prediction
from iojoule.model.predictor import Predictor
from iojoule.model.prior.surfaces import FORM_SD as CURVE_FORM_SD
from iojoule.model.prior.surfaces import TAIL_FORM_SD
from iojoule.model.state_residual import state_path

Floats = NDArray[np.float64]
Flow = tuple[Operation, Pattern, float | None]
"""Operation and pattern, and of a mix its share of reads."""

RUNS_MIN = 10
"""So many runs of an operation and pattern are needed: a process has half a dozen lengths."""

FORM_LENGTH = 0.5
"""What drives do beside a law changes over half the range of a knob, or of the states: lengths that
few runs suggest are too long, and so are sure of what nobody has seen."""

RUNS_MAX = 1000
"""So many are used, spread over all: the solve is cubic."""

LEAST_SD = 0.01
"""Log sd that a value keeps at a run itself, besides what drives of a model differ by."""

FORM_SD = {"latency": CURVE_FORM_SD, **TAIL_FORM_SD, "watts": 0.1}
"""Least log sd of what the model misses away from every run: what drives do beside curve and tail
law, and a bit less than `model.device_power` says of the watts of a state that nobody measured.
Residuals of the runs that a curve was fitted to say too little of other places."""


def with_state_residuals(
    profile: DeviceProfile, measurements: Sequence[Measurement]
) -> DeviceProfile:
    """The profile with what its own model misses of runs over power states.

    For reads and writes alone nothing changes where no run was below PS0, or where the effects of
    states were published: the runs that those rest on say more than the few of the dataset. Mixes
    are learned from in any case, in the states that they were measured in.
    """
    effects = [one.ceiling_bytes_per_second.evidence for one in profile.power_state_effects]
    runs = _by_flow(profile, measurements)
    alone = {
        key: own
        for key, own in runs.items()
        if key[2] is None and Evidence.PUBLISHED not in effects
    }
    mixes = {key: own for key, own in runs.items() if key[2] is not None}
    # what PS0 alone showed is in the new residual too, unless that rests on a part of the runs
    whole = {key[:2] for key, own in alone.items() if len(own) <= RUNS_MAX}
    surfaces = [
        one.model_copy(update={"residual": None}) if (one.operation, one.pattern) in whole else one
        for one in profile.surfaces
    ]
    known = profile.model_copy(update={"surfaces": surfaces})
    # a mix is compared once reads and writes are right, and watts once the rates are
    for own in (alone, mixes):
        for names in (("latency", *PERCENTILES), ("watts",)):
            known = _learned(known, own, names)
    return known if known.state_residuals else profile


def _learned(
    known: DeviceProfile, runs: Mapping[Flow, list[Measurement]], names: tuple[str, ...]
) -> DeviceProfile:
    """The profile with residuals of these names from these runs, beside what it has."""
    tables = {
        (one.operation, one.pattern, one.read_fraction): one.table
        for one in known.state_residuals or []
    }
    for key, own in runs.items():
        table = _table(known, own, key, names, tables.get(key))
        if table is not None:
            tables[key] = table
    found = [
        StateResidual(operation=key[0], pattern=key[1], read_fraction=key[2], table=table)
        for key, table in tables.items()
    ]
    return known.model_copy(update={"state_residuals": found or None})


def _by_flow(
    profile: DeviceProfile, measurements: Sequence[Measurement]
) -> dict[Flow, list[Measurement]]:
    """Runs by operation and pattern, where there are enough; of pure ones some below PS0."""
    flows: list[Flow] = [(Operation(one.operation), one.pattern, None) for one in profile.surfaces]
    flows += sorted(
        {
            (one.workload.operation, one.workload.pattern, one.workload.read_fraction)
            for one in measurements
            if one.workload.operation is Operation.MIXED
            and one.workload.mix_dispatch is not MixDispatch.SEPARATED
            and 0.0 < (one.workload.read_fraction or 0.0) < 1.0
        }
    )
    runs = {flow: [one for one in measurements if _belongs(one, profile, flow)] for flow in flows}
    return {
        flow: own
        for flow, own in runs.items()
        # PS0 alone is what the surfaces are fitted to; of mixes nothing else learns
        if len(own) >= RUNS_MIN
        and (flow[2] is not None or any(one.configuration.power_state for one in own))
    }


def _belongs(one: Measurement, profile: DeviceProfile, flow: Flow) -> bool:
    """Whether a run tells of a surface: at full speed, cache in play, no more jobs than cores."""
    full = profile.write_state.cached_bytes.value if profile.write_state else np.inf
    seen = one.observations
    operation, pattern, fraction = flow
    return (
        one.workload.operation is operation
        and one.workload.pattern is pattern
        and (fraction is None or one.workload.read_fraction == fraction)
        and one.at_full_speed
        and one.state.device_state != "collecting"
        and (one.state.host_bytes_written_since_purge or 0.0) < full
        and one.configuration.jobs <= (one.conditions.cpu_cores_available or one.configuration.jobs)
        and bool(seen.iops or seen.latency_mean_ns)
        and not stands_apart(one.conditions.session_id or one.conditions.series_id or "")
    )


def _table(
    profile: DeviceProfile,
    runs: list[Measurement],
    key: Flow,
    names: tuple[str, ...],
    before: ResidualTable | None,
) -> ResidualTable | None:
    """Residuals of these names at every octave of the runs' range, beside those of `before`."""
    runs = runs[:: -(-len(runs) // RUNS_MAX)]
    seen = _Places(
        rows_of(runs, host_cores=profile.host.cpu_cores),
        np.array([one.configuration.power_state or 0 for one in runs]),
    )
    answer = seen.answer(profile, key)
    residuals = _residuals(profile, answer, seen, runs)
    residuals = {
        name: values
        for name, values in residuals.items()
        if name in names and np.isfinite(values).sum() >= RUNS_MIN
    }
    if not residuals:
        return before
    axes = [octaves(column) for column in seen.log2.T]
    grid, blocks = seen.grid(np.array(list(product(*axes))))
    layout = _Layout(seen)
    at, inputs = layout.inputs(seen), layout.inputs(grid)
    values = dict(before.values) if before else {}
    for name, y in residuals.items():
        if name == "watts":
            at, inputs = layout.with_law(at, inputs, answer, grid.answer(profile, key))
        known = np.isfinite(y)
        process = GaussianProcess(
            at[known], y[known], least_sd=min(FORM_SD[name], FORM_SD["latency"])
        )
        mean, variance = process.marginal(inputs)
        sd = max(1.0, process.surprise()) * np.sqrt(np.maximum(variance, 0.0))
        values[name] = _short(mean)
        form = FORM_SD[name] * np.sqrt(unexplained(at[known], inputs, FORM_LENGTH))
        values[f"{name}_sd"] = _short(np.hypot(np.hypot(sd, form), LEAST_SD))
    measured = set(seen.places())
    values["measured"] = [float(place in measured) for place in grid.places()]
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


@dataclass(frozen=True)
class _Places:
    """Where something is measured or asked: n rows, and the power state of each."""

    rows: Rows
    state: NDArray[np.intp]

    @property
    def log2(self) -> Floats:
        """log2 of depth, jobs and request bytes, shape (n, 3)."""
        rows = self.rows
        return np.log2(np.stack([rows.queue_depth, rows.jobs, rows.request_bytes], axis=1))

    def places(self) -> list[tuple[object, ...]]:
        """What tells the places apart."""
        return [
            (path, int(state), *np.round(where, 4))
            for path, state, where in zip(self.rows.path_keys(), self.state, self.log2, strict=True)
        ]

    def grid(self, log2: Floats) -> tuple[_Places, list[tuple[str, int]]]:
        """Every place of `log2`, shape (m, 3), on each path and in each state that occurs here.

        Returns:
            The places, and path and state of each block of m of them.
        """
        paths = self.rows.path_keys()
        first = {path: paths.index(path) for path in sorted(set(paths))}
        blocks = [(path, int(state)) for state in np.unique(self.state) for path in first]
        rows = replace(
            self.rows.take(np.repeat([first[path] for path, _ in blocks], len(log2))),
            **{
                name: np.tile(np.exp2(column), len(blocks))
                for name, column in zip(
                    ("queue_depth", "jobs", "request_bytes"), log2.T, strict=True
                )
            },
        )
        return _Places(rows, np.repeat([state for _, state in blocks], len(log2))), blocks

    def answer(self, profile: DeviceProfile, key: Flow) -> Prediction:
        """What a profile says of the places."""
        columns: dict[str, object] = {name: getattr(self.rows, name) for name in SETTINGS}
        columns |= {"power_state": self.state}
        columns |= {"operation": key[0].value, "pattern": key[1].value}
        if key[2] is not None:
            columns |= {"read_fraction": key[2]}
        return Predictor(profile).predict_columns(columns, len(self.rows))[0]


def _residuals(
    profile: DeviceProfile, answer: Prediction, seen: _Places, runs: Sequence[Measurement]
) -> dict[str, Floats]:
    """Logs of what runs showed over what the profile says, by name, shape (n,).

    Watts stand beside the law at the rate that was measured: no error of the rate is in them.
    """
    rows = seen.rows
    found = {
        name: np.log(values) - np.log(answer[quantity].value)
        for name, values, quantity in [
            ("latency", rows.latency_ns, "latency_mean_ns"),
            *((name, rows.percentile(name), f"latency_{name}_ns") for name in PERCENTILES),
        ]
    }
    power = profile.device_power
    if power is not None:
        watts = np.array([one.observations.device_power_watts or np.nan for one in runs])
        x = answer.activity.device_x.copy()
        x[:, 1:5] *= np.exp(-found["latency"])[:, None]
        found["watts"] = np.log(watts / device_power.active_value(power, x, seen.state))
    return found


class _Layout:
    """Scales coordinates of runs, so that each goes from 0 to 1.

    As in `model.coordinates`, depth enters as requests in flight; a power state is a number.
    """

    def __init__(self, seen: _Places) -> None:
        self._paths = sorted(set(seen.rows.path_keys()))[1:]
        flight = self._in_flight(seen)
        self._low = flight.min(axis=0)
        self._span = np.maximum(np.ptp(flight, axis=0), 1.0)

    def inputs(self, places: _Places) -> Floats:
        """Inputs of a process, shape (n, d)."""
        keys = np.array(places.rows.path_keys(), dtype=object)
        switches = [(keys == one).astype(float) for one in self._paths]
        scaled = (self._in_flight(places) - self._low) / self._span
        return np.column_stack([scaled, *switches])

    @staticmethod
    def with_law(
        at: Floats, inputs: Floats, seen: Prediction, asked: Prediction
    ) -> tuple[Floats, Floats]:
        """Inputs with the log watts of the law as one more.

        What a state does to base and dynamic power is a smooth function of the two's ratio.
        """
        here, there = (np.log(one["device_power_watts"].value) for one in (seen, asked))
        low, span = here.min(), max(float(np.ptp(here)), 0.1)
        return (
            np.column_stack([at, (here - low) / span]),
            np.column_stack([inputs, (there - low) / span]),
        )

    @staticmethod
    def _in_flight(places: _Places) -> Floats:
        depth, jobs, size = places.log2.T
        return np.stack([depth + jobs, jobs, size, places.state.astype(float)], axis=1)
