"""Learning what runs in several power states show beside the physical model.

The surfaces rest on runs in PS0, the effects of states on few figures each. Everything that runs
in any state say at their place is the difference between them and that model: a Gaussian process
over size, requests in flight, jobs, host path and power state. Its level and slopes take what a
state does as a whole (a base power of its own, one clock for everything), its smooth part what is
local (a step at the maximum transfer size, a cap that holds on).

Runs of mixes say likewise what differs from the law of mixing (`model.evaluate.mixes`), in any
state and however few they are: one process a pattern, with the share of reads f among its inputs,
as (2 / pi) arcsin sqrt f. What it says is multiplied by `mixed_extent`, 2 sqrt (f (1 - f)), and so
vanishes where nothing is mixed: few writes among reads (or the reverse) already do much of what an
even mix does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from iojoule.datasets.profile import DeviceProfile, ResidualTable, StateResidual
from iojoule.datasets.schema import Measurement
from iojoule.datasets.vocabulary import Evidence, MixDispatch, Operation, Pattern
from iojoule.model.evaluate import device_power
from iojoule.model.evaluate.bands import Floats
from iojoule.model.evaluate.prediction import Prediction
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.evaluate.state_residual import state_path
from iojoule.model.fit.export import octaves, rounded
from iojoule.model.fit.gaussian_process import GaussianProcess, unexplained
from iojoule.model.fit.power import beyond_cache
from iojoule.model.fit.rows import PERCENTILES, SETTINGS, Rows, rows_of, stands_apart
from iojoule.model.prior.surfaces import FORM_SD as CURVE_FORM_SD
from iojoule.model.prior.surfaces import TAIL_FORM_SD

Flow = tuple[Operation, Pattern]
Tables = dict[float | None, ResidualTable]
"""By share of reads; None where nothing is mixed."""

RUNS_MIN = 10
"""So many runs of an operation and pattern are needed: a process has half a dozen lengths. Mixes
need none such: what they say beside the law of mixing is pinned at both ends."""

NODES = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Shares of reads that tables of mixes have beside the measured ones."""

NODES_APART = 0.04
"""Of those, the ones closer than this to a measured share have no table of their own."""

FORM_LENGTH = 0.5
"""What drives do beside a law changes over half the range of a knob, or of the states: lengths that
few runs suggest are too long, and so are sure of what nobody has seen."""

RUNS_MAX = 1000
"""So many are used, spread over all: the solve is cubic."""

LEAST_SD = 0.01
"""Log sd that a value keeps at a run itself, besides what drives of a model differ by."""

HALF_OCTAVE = 0.5
"""Runs closer than this say little of a slope: their noise is most of the difference."""

FORM_SD = {"latency": CURVE_FORM_SD, **TAIL_FORM_SD, "watts": 0.1}
"""Least log sd of what the model misses away from every run: what drives do beside curve and tail
law, and a bit less than `model.evaluate.device_power` says of the watts of a state that nobody
measured. Residuals of the runs that a curve was fitted to say too little of other places."""

FAR = 3.0
"""A run that misses the law of power by so many `FORM_SD` found the drive in another state, such as
cleaning up after the writes of a run before."""


def with_state_residuals(
    profile: DeviceProfile, measurements: Sequence[Measurement]
) -> DeviceProfile:
    """The profile with what its own model misses of runs over power states.

    For reads and writes alone nothing changes where no run was below PS0, or where the effects of
    states were published: the runs that those rest on say more than the few of the dataset. Mixes
    are learned from in any case, in the states that they were measured in.
    """
    effects = [effect.ceiling_bytes_per_second.evidence for effect in profile.power_state_effects]
    runs = _by_flow(profile, measurements)
    alone = {
        flow: own
        for flow, own in runs.items()
        if flow[0] is not Operation.MIXED and Evidence.PUBLISHED not in effects
    }
    mixes = {flow: own for flow, own in runs.items() if flow[0] is Operation.MIXED}
    known = profile
    # a mix is compared once reads and writes are right, and watts once the rates are
    with threadpool_limits(1):  # sums in one order; and threads of a shared machine wait
        for own in (alone, mixes):
            for names in (("latency", *PERCENTILES), ("watts",)):
                known = _learned(known, own, names)
    return known if known.state_residuals else profile


def mixes_left_out(profile: DeviceProfile, measurements: Sequence[Measurement]) -> Counter[str]:
    """How many measured mixes `with_state_residuals` does not learn from, by the reason."""
    return Counter(
        reason
        for measurement in measurements
        if measurement.workload.operation is Operation.MIXED
        and (reason := _left_out(measurement, profile)) is not None
    )


def _learned(
    known: DeviceProfile, runs: Mapping[Flow, list[Measurement]], names: tuple[str, ...]
) -> DeviceProfile:
    """The profile with residuals of these names from these runs, beside what it has."""
    every: dict[Flow, Tables] = {}
    for entry in known.state_residuals or []:
        every.setdefault((entry.operation, entry.pattern), {})[entry.read_fraction] = entry.table
    for flow, own in runs.items():
        every[flow] = _tables(known, own, flow, names, every.get(flow, {}))
    residuals = [
        StateResidual(operation=flow[0], pattern=flow[1], read_fraction=fraction, table=table)
        for flow, tables in every.items()
        for fraction, table in tables.items()
    ]
    return known.model_copy(update={"state_residuals": residuals or None})


def _by_flow(
    profile: DeviceProfile, measurements: Sequence[Measurement]
) -> dict[Flow, list[Measurement]]:
    """Runs by operation and pattern, where there are enough; of pure ones some below PS0."""
    runs: dict[Flow, list[Measurement]] = {}
    for measurement in measurements:
        if _left_out(measurement, profile) is None:
            flow = measurement.workload.operation, measurement.workload.pattern
            runs.setdefault(flow, []).append(measurement)
    pure = [(Operation(surface.operation), surface.pattern) for surface in profile.surfaces]
    mixed = [(Operation.MIXED, pattern) for pattern in Pattern]
    # PS0 alone is what the surfaces are fitted to; of mixes nothing else learns
    return {
        flow: runs[flow]
        for flow in mixed + pure
        if flow in runs
        and (
            flow[0] is Operation.MIXED
            or (
                len(runs[flow]) >= RUNS_MIN
                and any(measurement.configuration.power_state for measurement in runs[flow])
            )
        )
    }


def _left_out(measurement: Measurement, profile: DeviceProfile) -> str | None:
    """Why a run tells nothing of what a drive serves with its cache in play; None where it does."""
    full = profile.write_state.cached_bytes.value if profile.write_state else np.inf
    seen, work = measurement.observations, measurement.workload
    if work.operation is Operation.MIXED and work.mix_dispatch is MixDispatch.SEPARATED:
        return "of reads and writes that do not share the drive's time"
    if work.operation is Operation.MIXED and not 0.0 < (work.read_fraction or 0.0) < 1.0:
        return "of reads or writes alone"
    if not measurement.at_full_speed:
        return "below full speed"
    if measurement.state.device_state == "collecting" or (
        (measurement.state.host_bytes_written_since_purge or 0.0) >= full
    ):
        return "of a drive whose cache is full"
    if measurement.configuration.jobs > (
        measurement.conditions.cpu_cores_available or measurement.configuration.jobs
    ):
        return "of more jobs than cores"
    if not (seen.iops or seen.latency_mean_ns):
        return "without a rate"
    if stands_apart(measurement.conditions.session):
        return "of sessions that stand apart"
    return None


def mixed_extent(read_fraction: Floats) -> Floats:
    """How much of what mixes do beside their law there is at shares of reads, 0 to 1."""
    return np.asarray(2.0 * np.sqrt(read_fraction * (1.0 - read_fraction)))


def _node(fraction: float) -> float:
    """Share of reads of the table that a run belongs to: they differ by chance from run to run."""
    near = round(fraction, 2 if 0.015 < fraction < 0.985 else 3)
    return min(max(near, 0.001), 0.999)


def _nodes(fractions: Floats) -> list[float]:
    """Shares of reads that get a table: the measured ones, and `NODES` where none is near."""
    measured = {_node(float(fraction)) for fraction in fractions}
    between = {
        node for node in NODES if all(abs(node - fraction) >= NODES_APART for fraction in measured)
    }
    return sorted(measured | between)


def _tables(
    profile: DeviceProfile,
    runs: list[Measurement],
    flow: Flow,
    names: tuple[str, ...],
    before: Tables,
) -> Tables:
    """Residuals of these names at every octave of the runs' range, beside those of `before`."""
    mixed = flow[0] is Operation.MIXED
    runs = runs[:: -(-len(runs) // RUNS_MAX)]
    seen = _Places(
        rows_of(runs, host_cores=profile.host.cpu_cores),
        np.array([measurement.configuration.power_state or 0 for measurement in runs]),
        np.array([measurement.workload.read_fraction for measurement in runs], dtype=float)
        if mixed
        else None,
    )
    prediction = seen.answer(profile, flow)
    residuals = {
        name: values
        for name, values in _residuals(profile, prediction, seen, runs).items()
        if name in names and np.isfinite(values).sum() >= (1 if mixed else RUNS_MIN)
    }
    if not residuals:
        return before
    axes = [octaves(column) for column in seen.log2.T]
    positions, blocks = seen.grid(np.array(list(product(*axes))))
    nodes: list[float | None] = [None] if seen.fraction is None else [*_nodes(seen.fraction)]
    grid = positions.at(nodes)
    layout = _Layout(seen)
    at, inputs = layout.inputs(seen), layout.inputs(grid)
    beyond = seen.octaves_beyond(grid)
    means: dict[str, Floats] = {}
    for name, y in residuals.items():
        if name == "watts":
            at, inputs = layout.with_law(at, inputs, prediction, grid.answer(profile, flow))
        known = np.isfinite(y)
        process = GaussianProcess(
            at[known],
            y[known],
            least_sd=min(FORM_SD[name], FORM_SD["latency"]),
            extent=seen.extent(known),
        )
        extent = grid.extent()
        mean, variance = process.marginal(inputs, 1.0 if extent is None else extent)
        sd = max(1.0, process.surprise()) * np.sqrt(np.maximum(variance, 0.0))
        form = FORM_SD[name] * np.sqrt(unexplained(at[known], inputs, FORM_LENGTH))
        onward = seen.steepest(y, grid.state) * beyond
        means[name] = mean
        means[f"{name}_sd"] = np.sqrt(sd**2 + form**2 + (onward**2).sum(axis=1) + LEAST_SD**2)
    tables: Tables = {}
    means["beyond"] = beyond.max(axis=1)
    for node, part in zip(nodes, np.split(np.arange(len(grid.rows)), len(nodes)), strict=True):
        values = dict(before[node].values) if node in before else {}
        values |= {name: _short(each[part]) for name, each in means.items()}
        measured = set(seen.near(node).coordinates())
        values["measured"] = [float(place in measured) for place in positions.coordinates()]
        tables[node] = ResidualTable(
            log2_queue_depth=rounded(axes[0]),
            log2_jobs=rounded(axes[1]),
            log2_request_bytes=rounded(axes[2]),
            paths=[state_path(*block) for block in blocks],
            values=values,
        )
    return tables


def _short(values: Floats) -> list[float]:
    """Five decimals of a logarithm: a hundred-thousandth of the predicted value."""
    return [float(value) for value in np.round(values, 5)]


@dataclass(frozen=True)
class _Places:
    """Where something is measured or asked: n rows, power state and share of reads of each."""

    rows: Rows
    state: NDArray[np.intp]
    fraction: Floats | None = None

    @property
    def log2(self) -> Floats:
        """log2 of depth, jobs and request bytes, shape (n, 3)."""
        rows = self.rows
        return np.log2(np.stack([rows.queue_depth, rows.jobs, rows.request_bytes], axis=1))

    def coordinates(self) -> list[tuple[object, ...]]:
        """What tells the places apart."""
        return [
            (path, int(state), *np.round(where, 4))
            for path, state, where in zip(self.rows.path_keys(), self.state, self.log2, strict=True)
        ]

    def at(self, nodes: Sequence[float | None]) -> _Places:
        """The same places at one share of reads after the other; themselves where it is None."""
        shares = [node for node in nodes if node is not None]
        if not shares:
            return self
        every = np.tile(np.arange(len(self.rows)), len(shares))
        return _Places(self.rows.take(every), self.state[every], np.repeat(shares, len(self.rows)))

    def near(self, node: float | None) -> _Places:
        """Those whose share of reads rounds to a node of the tables; all without one."""
        if self.fraction is None or node is None:
            return self
        own = np.array([_node(float(fraction)) == node for fraction in self.fraction])
        return _Places(self.rows.take(own), self.state[own], self.fraction[own])

    def extent(self, which: NDArray[np.bool_] | slice = slice(None)) -> Floats | None:
        """That of what mixing does, shape (n,); None where nothing is mixed."""
        return None if self.fraction is None else mixed_extent(self.fraction[which])

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

    @property
    def _reach(self) -> Floats:
        """Octaves of requests in flight and of request bytes, shape (n, 2)."""
        depth, jobs, size = self.log2.T
        return np.stack([depth + jobs, size], axis=1)

    def octaves_beyond(self, grid: _Places) -> Floats:
        """How far places lie outside of what was measured in their own power state.

        A state that only shallow queues were measured in says nothing of deep ones, however deep
        those of another state were.

        Returns:
            Octaves of requests in flight and of request bytes, shape (m, 2).
        """
        beyond = np.zeros((len(grid.state), 2))
        for state in np.unique(self.state):
            own, at = self._reach[self.state == state], grid.state == state
            there = grid._reach[at]
            beyond[at] = np.maximum(own.min(axis=0) - there, there - own.max(axis=0))
        return np.maximum(beyond, 0.0)

    def steepest(self, y: Floats, state: NDArray[np.intp]) -> Floats:
        """The steepest change of residuals in a power state, which may go on beyond its runs.

        Args:
            y: Residuals of the runs, shape (n,).
            state: Power states that are asked about, shape (m,).

        Returns:
            Change an octave of requests in flight and of request bytes, between two runs that
            differ in nothing else; shape (m, 2), 0 where no two runs tell.
        """
        reach, paths = self._reach, self.rows.path_keys()
        fraction = np.ones(len(y)) if self.fraction is None else np.round(self.fraction, 2)
        slopes: dict[int, Floats] = {}
        for axis, other in ((0, 1), (1, 0)):
            lines: dict[tuple[object, int, float, float], list[int]] = {}
            for row in np.flatnonzero(np.isfinite(y)):
                at, where = int(self.state[row]), round(float(reach[row, other]), 2)
                line = paths[row], at, float(fraction[row]), where
                lines.setdefault(line, []).append(int(row))
            for (_, at, _, _), rows in lines.items():
                ordered = sorted(rows, key=lambda row: float(reach[row, axis]))
                steps = np.diff(reach[ordered, axis])
                rises = np.abs(np.diff(y[ordered]))[steps >= HALF_OCTAVE]
                if rises.size:
                    known = slopes.setdefault(at, np.zeros(2))
                    known[axis] = max(known[axis], (rises / steps[steps >= HALF_OCTAVE]).max())
        return np.array([slopes.get(int(at), np.zeros(2)) for at in state])

    def answer(self, profile: DeviceProfile, flow: Flow) -> Prediction:
        """What a profile says of the places."""
        columns: dict[str, object] = {name: getattr(self.rows, name) for name in SETTINGS}
        columns |= {"power_state": self.state}
        columns |= {"operation": flow[0].value, "pattern": flow[1].value}
        if self.fraction is not None:
            columns |= {"read_fraction": self.fraction}
        return Predictor(profile).predict_columns(columns, len(self.rows))[0]


def _residuals(
    profile: DeviceProfile, prediction: Prediction, seen: _Places, runs: Sequence[Measurement]
) -> dict[str, Floats]:
    """Logs of what runs showed over what the profile says, by name, shape (n,).

    Watts stand beside the law at the rate that was measured: no error of the rate is in them.
    """
    rows = seen.rows
    residuals = {
        name: np.log(values) - np.log(prediction[quantity].value)
        for name, values, quantity in [
            ("latency", rows.latency_ns, "latency_mean_ns"),
            *((name, rows.percentile(name), f"latency_{name}_ns") for name in PERCENTILES),
        ]
    }
    power = profile.device_power
    if power is not None:
        watts = np.array(
            [measurement.observations.device_power_watts or np.nan for measurement in runs]
        )
        x = prediction.activity.device_x.copy()
        x[:, 1:5] *= np.exp(-residuals["latency"])[:, None]
        past = [beyond_cache(measurement, profile.write_state) for measurement in runs]
        x[:, 5] = np.maximum(x[:, 5], past)
        missed = np.log(watts / device_power.active_value(power, x, seen.state))
        residuals["watts"] = np.where(np.abs(missed) <= FAR * FORM_SD["watts"], missed, np.nan)
    return residuals


class _Layout:
    """Scales coordinates of runs, so that each goes from 0 to 1.

    As in `model.fit.gaussian_process`, depth enters as requests in flight; a power state is a
    number.
    """

    def __init__(self, seen: _Places) -> None:
        self._paths = sorted(set(seen.rows.path_keys()))[1:]
        flight = self._in_flight(seen)
        self._low = flight.min(axis=0)
        self._span = np.maximum(np.ptp(flight, axis=0), 1.0)

    def inputs(self, positions: _Places) -> Floats:
        """Inputs of a process, shape (n, d)."""
        keys = np.array(positions.rows.path_keys(), dtype=object)
        switches = [(keys == path).astype(float) for path in self._paths]
        scaled = (self._in_flight(positions) - self._low) / self._span
        if positions.fraction is not None:
            switches.append(2.0 / np.pi * np.arcsin(np.sqrt(positions.fraction)))
        return np.column_stack([scaled, *switches])

    @staticmethod
    def with_law(
        at: Floats, inputs: Floats, seen: Prediction, targets: Prediction
    ) -> tuple[Floats, Floats]:
        """Inputs with the log watts of the law as one more.

        What a state does to base and dynamic power is a smooth function of the two's ratio.
        """
        here, there = (np.log(part["device_power_watts"].value) for part in (seen, targets))
        low, span = here.min(), max(float(np.ptp(here)), 0.1)
        return (
            np.column_stack([at, (here - low) / span]),
            np.column_stack([inputs, (there - low) / span]),
        )

    @staticmethod
    def _in_flight(positions: _Places) -> Floats:
        depth, jobs, size = positions.log2.T
        return np.stack([depth + jobs, jobs, size, positions.state.astype(float)], axis=1)


def notes_on_mixes(profile: DeviceProfile, measurements: Sequence[Measurement]) -> list[str]:
    """How many mixes were measured and learned from, and why others were not."""
    mixes = sum(run.workload.operation is Operation.MIXED for run in measurements)
    if not mixes:
        return []
    left_out = mixes_left_out(profile, measurements)
    text = f"{mixes - left_out.total()} of {mixes} measured mixes say what mixing does"
    why = ", ".join(f"{count} {reason}" for reason, count in sorted(left_out.items()))
    return [f"{text}; left out: {why}" if why else text]
