"""Learning the prior: group effects, offsets of kinds of facts, and the spread of drives.

A hierarchical linear model with missing data (Little and Rubin, Statistical Analysis with Missing
Data, chapter 11; Gelman et al., Bayesian Data Analysis, chapters 15 and 18). Drive d has the log
quantities x_d = E g_d + u_d, u_d ~ N(0, S); what is known of it is y = H x + offset + noise. Given
S the effects E and the offsets are Gaussian (generalised least squares with their stated priors);
S has an inverse-Wishart prior around the stated spread and is found by expectation maximisation.

Learning the prior that ships, from the catalogue and the public fio runs.

Public fio runs as observations for the prior: the curve's parameters with their own errors.

What rows of measurements add to the prior of a drive: its curve, fitted within the prior.

The maximum a posteriori of all quantities together, and the Gaussian around it (Laplace), so that
random reads at two depths also say something of sequential writes. The curve is the physical one
(`model.evaluate.surface`): five parameters a flow, and two factors of the host for all flows.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares
from threadpoolctl import threadpool_limits

from iojoule import __version__
from iojoule.datasets.catalogue import Fact, load_catalogue
from iojoule.datasets.importers.column_map import public_map
from iojoule.datasets.importers.csv import import_csv
from iojoule.datasets.profile.drive import FactUsed
from iojoule.datasets.schema import Measurement
from iojoule.model.evaluate.bands import Floats
from iojoule.model.evaluate.performance import WAKEUP_EXPONENT
from iojoule.model.evaluate.prediction import Prediction
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.evaluate.surface import log_mean_latency, log_smooth_max, split_commands
from iojoule.model.fit.performance import PathKey, PathPrior, physical_capacity, physical_unloaded
from iojoule.model.fit.rows import Rows, average_repeats, rows_of, stands_apart
from iojoule.model.fit.surfaces import path_priors, scheduler_priors
from iojoule.model.prior.build import profile_of
from iojoule.model.prior.document import (
    CURVE,
    EFFECTS,
    FLOWS,
    Assumptions,
    LearnedPrior,
    LearnedSource,
    load_assumptions,
)
from iojoule.model.prior.facts import OWN_METRICS, DriveFacts, Observation, facts_of, observation
from iojoule.model.prior.posterior import (
    Posterior,
    condition,
    design,
    expected_group,
    possible_groups,
    spread_scale,
)
from iojoule.model.recipe import Recipe, generic_recipe

ROUNDS = 60
SETTLED = 2e-3
"""Expectation maximisation ends after so many rounds, or when no variance or covariance (log units
squared) moves by more than this."""

DIGITS = 5
"""Significant digits of the shipped numbers."""


def catalogue_drives() -> list[DriveFacts]:
    """Every real drive of the catalogue with what others may learn from it; disks teach no SSD."""
    return [
        facts_of(drive.model_copy(update={"facts": _shared(drive.facts)}))
        for drive in load_catalogue()
        if drive.drive_class != "emulated" and drive.medium != "disk"
    ]


def _shared(facts: Sequence[Fact]) -> tuple[Fact, ...]:
    return tuple(fact for fact in facts if fact.metric not in OWN_METRICS)


def learn(drives: Sequence[DriveFacts], rounds: int = ROUNDS) -> LearnedPrior:
    """Learn the prior from drives; one without observations tells nothing.

    Drives that do not say their group count with each group's share at first, then again as the
    prior that was learned so assigns them by their facts.
    """
    informative = [drive for drive in drives if drive.observations]
    first = _learned(informative, {}, rounds)
    unsaid = [drive for drive in informative if len(possible_groups(drive)) > 1]
    if rounds == 1 or not unsaid:
        return first
    groups = {drive.device: expected_group(first, drive) for drive in unsaid}
    return _learned(informative, groups, rounds)


def _learned(
    drives: Sequence[DriveFacts], groups: Mapping[str, Floats], rounds: int
) -> LearnedPrior:
    """Learn with the groups of some drives given as regressors of EFFECTS."""
    problem = _Problem(load_assumptions(), drives, groups)
    spread = problem.stated_spread
    for _ in range(rounds):
        before, spread = spread, problem.improved(spread)
        if np.max(np.abs(spread - before)) < SETTLED:
            break
    mean, covariance = problem.effects(spread)
    count, width = len(problem.names), len(EFFECTS)
    blocks = [
        covariance[q * width : (q + 1) * width, q * width : (q + 1) * width] for q in range(count)
    ]
    kinds = count * width + np.arange(len(problem.kinds))
    return LearnedPrior(
        schema_version=1,
        generator=f"iojoule {__version__}",
        quantities=problem.names,
        effects=_rounded(mean[: count * width].reshape(count, width)),
        effect_covariance=[_rounded(block) for block in blocks],
        spread=_rounded(spread),
        offsets={
            kind: (_digits(mean[place]), _digits(float(np.sqrt(covariance[place, place]))))
            for kind, place in zip(problem.kinds, kinds, strict=True)
        },
        drives=problem.told_by(),
        sources=_sources(drives),
    )


@dataclass(frozen=True)
class _Drive:
    """One drive: regressors of all effects and offsets, quantities, log values, noise.

    `h` is in units of the learned spread: the design times the spread of the drive's group.
    """

    regressors: Floats
    h: Floats
    y: Floats
    noise: Floats


class _Problem:
    """The drives as matrices, and the stated priors."""

    def __init__(
        self, assumed: Assumptions, drives: Sequence[DriveFacts], groups: Mapping[str, Floats]
    ) -> None:
        self.groups = groups
        self.names = list(assumed.quantities)
        self.kinds = list(assumed.kinds)
        self.drives = [self._drive(drive) for drive in drives]
        self.stated_spread = _stated_spread(assumed)
        self.weight = assumed.spread_drives
        centre, sd = [], []
        for quantity in assumed.quantities.values():
            added = [getattr(quantity, name) for name in EFFECTS[1:]]
            centre += [np.log(quantity.centre), *added]
            sd += [assumed.centre_sd, *[quantity.effect_sd or assumed.effect_sd] * len(added)]
        centre += [kind.offset for kind in assumed.kinds.values()]
        sd += [max(kind.offset_sd, 1e-6) for kind in assumed.kinds.values()]
        self.prior_mean, self.prior_precision = np.array(centre), np.diag(np.array(sd) ** -2.0)

    def _drive(self, drive: DriveFacts) -> _Drive:
        h = design(self.names, drive.observations)
        # of a drive that does not say its group every group is as likely as its share, or, once
        # a prior is learned, as its facts make it
        group = self.groups.get(drive.device)
        if group is None:
            options = possible_groups(drive)
            group = sum((share * option for option, share in options), np.zeros(len(EFFECTS)))
        kinds = np.zeros((len(h), len(self.kinds)))
        for row, observation_row in enumerate(drive.observations):
            kinds[row, self.kinds.index(observation_row.kind)] = 1.0
        return _Drive(
            np.hstack([np.kron(h, group), kinds]),
            h * spread_scale(self.names, group),
            np.array([observation_row.log_value for observation_row in drive.observations]),
            np.diag([observation_row.sd**2 for observation_row in drive.observations]),
        )

    def effects(self, spread: Floats) -> tuple[Floats, Floats]:
        """Mean and covariance of effects and offsets, given the spread."""
        precision = self.prior_precision.copy()
        pull = precision @ self.prior_mean
        for drive in self.drives:
            total = drive.h @ spread @ drive.h.T + drive.noise
            weighted = np.linalg.solve(total, drive.regressors)
            precision += drive.regressors.T @ weighted
            pull += weighted.T @ drive.y
        covariance = np.linalg.inv(precision)
        return np.asarray(covariance @ pull), np.asarray(covariance)

    def improved(self, spread: Floats) -> Floats:
        """One round of expectation maximisation."""
        mean, covariance = self.effects(spread)
        scatter = self.weight * self.stated_spread
        for drive in self.drives:
            total = drive.h @ spread @ drive.h.T + drive.noise
            gain = np.linalg.solve(total, drive.h @ spread).T
            moved = gain @ (drive.y - drive.regressors @ mean)
            leverage = gain @ drive.regressors
            left = spread - gain @ drive.h @ spread + leverage @ covariance @ leverage.T
            scatter += left + np.outer(moved, moved)
        new_spread = scatter / (self.weight + len(self.drives))
        return np.asarray(0.5 * (new_spread + new_spread.T))

    def told_by(self) -> list[int]:
        """How many drives tell of each quantity."""
        informs = np.array([(drive.h != 0).any(axis=0) for drive in self.drives])
        return [int(count) for count in informs.sum(axis=0)]


def _stated_spread(assumed: Assumptions) -> Floats:
    """Covariance of drives as stated: common causes by their loadings, the rest alone."""
    sd = np.array([quantity.sd for quantity in assumed.quantities.values()])
    loadings = np.array([quantity.loadings for quantity in assumed.quantities.values()])
    correlation = loadings @ loadings.T
    np.fill_diagonal(correlation, 1.0)
    return np.asarray(correlation * np.outer(sd, sd))


def _sources(drives: Sequence[DriveFacts]) -> list[LearnedSource]:
    figures: Counter[str] = Counter()
    owners: dict[str, set[str]] = {}
    for drive in drives:
        for item in drive.observations:
            name = _family(item)
            figures[name] += 1
            owners.setdefault(name, set()).add(drive.device)
    return [
        LearnedSource(name=name, drives=len(owners[name]), figures=count)
        for name, count in sorted(figures.items())
    ]


def _family(fact: Observation) -> str:
    """Where a figure comes from, in one word or two."""
    if fact.kind == "fitted":
        return fact.fact.source
    if fact.kind.startswith("linear_cost"):
        return "iocost-benchmarks (Apache-2.0)"
    if fact.fact.name in ("max_power_ps0", "declared_active_power_ps0", "declared_idle_power_ps0"):
        return "power-state descriptors"
    return "published measurements" if fact.measured else "data sheets"


def _rounded(values: Floats) -> list[list[float]]:
    return [[_digits(value) for value in row] for row in values]


def _digits(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


FORM_SD = 0.15
"""Log units by which drives stray from the physical curve: what it misses on the 980 PRO's and
the 860 PRO's rows, whose residuals a fit of many rows learns."""

HOST_SD = 0.4
"""Log sd of what an unknown host adds to a request and of its core time: the spread of the paths'
costs between the hosts of the public fio runs (recipes/common.toml)."""

HOST_SHARPNESS = 6.0


@dataclass(frozen=True)
class HostPrior:
    """Expected costs by path and scheduler, ns, and the size above which requests are split."""

    paths: Mapping[PathKey, PathPrior]
    schedulers: Mapping[str, tuple[float, float]]
    max_transfer_bytes: float


class _Flow:
    """The rows of one operation and pattern, ready for the curve."""

    def __init__(self, name: str, rows: Rows, host: HostPrior, posterior: Posterior) -> None:
        self._curve_indices = [posterior.index(f"{name}_{parameter}") for parameter in CURVE]
        self.commands, log2_bytes = split_commands(rows.request_bytes, host.max_transfer_bytes)
        self.size = np.maximum(np.exp2(log2_bytes), 4096.0)
        self.log_requests = np.log(rows.queue_depth * rows.jobs)
        self.log_cores = np.log(np.minimum(rows.jobs, rows.cores))
        costs = [host.paths[path] for path in rows.path()]
        extra = [host.schedulers.get(str(name), (0.0, 0.0)) for name in rows.scheduler]
        self.added_ns = np.array([cost.added_latency_ns for cost in costs])
        self.added_ns = self.added_ns + np.array([term[0] for term in extra])
        core = np.array([cost.core_time_ns for cost in costs]) + np.array(
            [term[1] for term in extra]
        )
        wakeup = np.array([cost.wakeup_ns for cost in costs])
        self.core_ns = core + wakeup * rows.queue_depth**-WAKEUP_EXPONENT
        self.log_latency = np.log(rows.latency_ns)
        self.sd = np.hypot(rows.relative_sd, FORM_SD)

    def misfit(self, vector: Floats, host: Floats) -> Floats:
        """Standard deviations between the curve and the rows."""
        latency, transfer, operations, rate, sharpness = vector[self._curve_indices]
        physical = np.array([latency, transfer, operations, rate]) + _PER_NS
        unloaded = np.exp(physical_unloaded(physical, self.size)) + self.added_ns * np.exp(host[0])
        capacity = physical_capacity(physical, self.size)
        log_commands = self.log_requests + np.log(self.commands)
        sharp = np.full_like(self.size, np.exp(np.clip(sharpness, -1.0, 3.0)))
        device = log_mean_latency(log_commands, np.log(unloaded), capacity, sharp)
        busy = self.log_requests + np.log(self.core_ns) + host[1] - self.log_cores
        return (log_smooth_max(device, busy, HOST_SHARPNESS) - self.log_latency) / self.sd


_PER_NS = np.log(np.array([1.0, 1e-9, 1e-9, 1e-9]))
"""From ns, bytes and operations a second to the curve's ns, bytes and operations a ns."""


def update(posterior: Posterior, rows: Mapping[str, Rows], host: HostPrior) -> Posterior:
    """Take in rows of measurements.

    Args:
        posterior: What is expected of the drive so far.
        rows: Rows by flow (`model.prior.document.FLOWS`).
        host: What the host is expected to cost.
    """
    flows = [_Flow(name, own, host, posterior) for name, own in rows.items() if len(own)]
    if not flows:
        return posterior
    root = np.linalg.cholesky(posterior.covariance + 1e-9 * np.eye(len(posterior.mean)))
    count = len(posterior.mean)

    def loss(z: Floats) -> Floats:
        vector, host_factors = posterior.mean + root @ z[:count], HOST_SD * z[count:]
        return np.concatenate([z, *(flow.misfit(vector, host_factors) for flow in flows)])

    solution = least_squares(loss, np.zeros(count + 2), loss="soft_l1", f_scale=3.0, max_nfev=60)
    jacobian = np.asarray(solution.jac)
    around = np.linalg.inv(jacobian.T @ jacobian)[:count, :count]
    return posterior.moved(posterior.mean + root @ solution.x[:count], root @ around @ root.T)


SETS = ("980pro_fio_randread", "other_nvme_fio", "sata_ssd_fio_grids", "low_latency_ssd_engines")
"""Public fio sets of one drive at rest each; the 980 PRO's schedulers and mixes are of its host."""

KNOWN_SD = 0.6
"""A parameter that the rows leave more uncertain than this (log) is not taken over."""

VAGUE_SD = 2.0
TAIL_FACTORS = np.exp2(np.arange(-3.0, 4.01, 0.25))
LEAST_TAILS = 3
"""Rows with a p99 that tell of a drive's tails, and the factors that are tried."""

UNSEEN_SD = 0.3
"""Log sd before the rows: of what they may show, and of what runs of their sizes cannot."""


def measured_drives(folder: Path) -> dict[str, list[Measurement]]:
    """The public fio rows by drive.

    Raises:
        InputError: A file is missing or is not what its map expects.
    """
    drives: dict[str, list[Measurement]] = {}
    for name in SETS:
        for measurement in import_csv(folder / f"{name}.csv", public_map(name)).measurements():
            drives.setdefault(str(measurement.conditions.device_model), []).append(measurement)
    return drives


def flow_rows(measurements: Sequence[Measurement], host_cores: int) -> dict[str, Rows]:
    """Rows by flow: pure reads and writes at PS0 of sessions that do not stand apart."""
    rows: dict[str, Rows] = {}
    for flow in FLOWS:
        operation, pattern = flow.split("_")
        own = [
            measurement
            for measurement in measurements
            if measurement.workload.operation.value == operation
            and measurement.workload.pattern.value == pattern
            and measurement.at_full_speed
            and not measurement.configuration.power_state
            and measurement.state.device_state not in ("collecting",)
            and not stands_apart(str(measurement.conditions.session))
        ]
        if own:
            flow_rows = rows_of(own, host_cores=host_cores)
            if len(flow_rows):
                rows[flow] = average_repeats(flow_rows)
    return rows


def host_prior(recipe: Recipe, max_transfer_bytes: float | None = None) -> HostPrior:
    """What a recipe expects of the host."""
    return HostPrior(
        path_priors(recipe),
        scheduler_priors(recipe),
        float(max_transfer_bytes or recipe.max_transfer_bytes),
    )


def with_measurements(
    drive: DriveFacts, measurements: Sequence[Measurement], stated: LearnedPrior
) -> DriveFacts:
    """A drive of the catalogue with the curve parameters that its fio rows tell.

    Args:
        drive: Its facts; what the same runs gave the catalogue is replaced.
        measurements: Its rows.
        stated: A prior whose centre helps the search; it adds nothing to what is found.
    """
    start = condition(stated, drive.without_measurements())
    rows = flow_rows(measurements, generic_recipe("any", "any").host.cpu_cores)
    unseen = {name for flow, own in rows.items() for name in _unseen(flow, own)}
    vague = np.diag([UNSEEN_SD if name in unseen else VAGUE_SD for name in stated.quantities]) ** 2
    posterior = update(
        Posterior(stated, start.mean, vague, (), start.group),
        rows,
        host_prior(generic_recipe("any", "any"), drive.max_transfer_bytes),
    )
    fitted: list[Observation] = []
    for quantity, value in zip(stated.quantities, posterior.mean, strict=True):
        known = quantity.startswith(tuple(rows)) and quantity not in unseen
        if not known or posterior.sd(quantity) >= KNOWN_SD:
            continue
        fact = FactUsed(
            name=f"fitted_{quantity}",
            value=float(np.exp(value)),
            unit="as the quantity",
            source="public fio runs",
        )
        fitted.append(
            observation(
                {quantity: 1.0}, "fitted", fact, own_sd=posterior.sd(quantity), measured=True
            )
        )
    fitted += _tails(drive, posterior, rows)
    own = [fact for fact in drive.observations if not (fact.measured and _of_curve(fact))]
    return replace(drive, observations=[*own, *fitted])


def _tails(drive: DriveFacts, posterior: Posterior, rows: dict[str, Rows]) -> list[Observation]:
    """The factor on the excess of p99 over the mean that fits each direction's rows best."""
    out = []
    for operation in ("read", "write"):
        own = {flow: part for flow, part in rows.items() if flow.startswith(operation)}
        own = {flow: part.take(np.isfinite(part.p99)) for flow, part in own.items()}
        own = {flow: part for flow, part in own.items() if len(part) >= LEAST_TAILS}
        if not own:
            continue
        place = posterior.index(f"{operation}_tail")
        misses = []
        for factor in TAIL_FACTORS:
            mean = posterior.mean.copy()
            mean[place] = np.log(factor)
            predictor = Predictor(profile_of(drive, posterior.moved(mean, posterior.covariance)))
            ratios = [_tail_misses(predictor, flow, part) for flow, part in own.items()]
            misses.append(float(np.median(np.abs(np.concatenate(ratios)))))
        fact = FactUsed(
            name=f"fitted_{operation}_tail",
            value=float(TAIL_FACTORS[int(np.argmin(misses))]),
            unit="1",
            source="public fio runs",
        )
        out.append(
            observation({f"{operation}_tail": 1.0}, "fitted", fact, own_sd=0.15, measured=True)
        )
    return out


def _tail_misses(predictor: Predictor, flow: str, rows: Rows) -> Floats:
    prediction = predict_rows(predictor, flow, rows)
    ratio = np.log(prediction["latency_p99_ns"].value / prediction["latency_mean_ns"].value)
    return np.asarray(np.log(rows.p99 / rows.latency_ns) - ratio)


def predict_rows(predictor: Predictor, flow: str, rows: Rows) -> Prediction:
    """What a profile says of rows of one operation and pattern."""
    operation, pattern = flow.split("_")
    numbers = ("request_bytes", "queue_depth", "jobs")
    words = ("engine", "completion", "submission_polling", "scheduler")
    columns: dict[str, list[object]] = {
        "operation": [operation] * len(rows),
        "pattern": [pattern] * len(rows),
        "cpu_cores_available": rows.cores.astype(int).tolist(),
    }
    columns |= {name: getattr(rows, name).astype(int).tolist() for name in numbers}
    columns |= {name: getattr(rows, name).tolist() for name in words}
    return predictor.predict_columns(columns, len(rows))[0]


def _unseen(flow: str, rows: Rows) -> list[str]:
    """Parameters that these rows cannot show: small ones no bytes, shallow ones no end."""
    names = []
    if rows.request_bytes.max() < 16384:
        names += ["transfer_bytes_per_second", "bytes_per_second"]
    if rows.request_bytes.min() > 16384:
        names += ["operations_per_second"]
    if (rows.queue_depth * rows.jobs).max() < 4:
        names += ["operations_per_second", "bytes_per_second", "sharpness"]
    return [f"{flow}_{name}" for name in names]


def _of_curve(fact: Observation) -> bool:
    return any(name.startswith(FLOWS) for name in fact.weights)


def learned_prior(folder: Path) -> LearnedPrior:
    """Learn from everything.

    Raises:
        InputError: A file of public measurements is missing.
    """
    return prior_without((), measured_drives(folder))


def prior_without(
    left_out: Collection[str], measurements: Mapping[str, list[Measurement]]
) -> LearnedPrior:
    """Learn without what was measured of some drives; their identify data and data sheets stay."""
    with threadpool_limits(1):  # sums in one order, so that every machine finds the same digits
        drives = {
            drive.device: drive.without_measurements() if drive.device in left_out else drive
            for drive in catalogue_drives()
        }
        stated = learn(list(drives.values()), rounds=1)  # only a start for the curves' fits
        for name, rows in measurements.items():
            if name in drives and name not in left_out:
                drives[name] = with_measurements(drives[name], rows, stated)
        return learn(list(drives.values()))


def known_drive(device: str) -> DriveFacts:
    """A drive of the catalogue by identify data and data sheet only."""
    match = next(drive for drive in catalogue_drives() if drive.device == device)
    return match.without_measurements()


def write_prior(prior: LearnedPrior, path: Path) -> None:
    """Write the learned prior as JSON, one line a row of numbers."""
    data = prior.model_dump(mode="json")
    lines = [f" {json.dumps(key)}: {_nested(data[key])}" for key in sorted(data)]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def _nested(value: object) -> str:
    if isinstance(value, list) and value and isinstance(value[0], list | dict):
        return "[\n  " + ",\n  ".join(json.dumps(row) for row in value) + "\n ]"
    return json.dumps(value)
