"""Evaluates candidates: objective, costs of the Pareto front, endurance, bounds of the SLA."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.errors import InputError
from iojoule.datasets.profile import DeviceProfile
from iojoule.datasets.schema import YEAR_SECONDS
from iojoule.model.evaluate import system_power
from iojoule.model.evaluate.bands import with_lower
from iojoule.model.evaluate.equal_work import Demand, Watts, Work, watts_of, work_of
from iojoule.model.evaluate.frame import Frame
from iojoule.model.evaluate.latency import Arrivals, alone_of
from iojoule.model.evaluate.observed_latency import ObservedLatency
from iojoule.model.evaluate.prediction import DEVICE_VALUE, Prediction, below
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.evaluate.quantities import NORMAL_90, QUANTITIES
from iojoule.model.evaluate.uncertainty import Gradients, Layout, all_gradients
from iojoule.recommender.factors import YEARLY, Objective, Year, rated_bytes
from iojoule.recommender.pareto import without_rounding_errors
from iojoule.recommender.request import Scope, WorkloadProfile
from iojoule.recommender.response import Endurance, Row
from iojoule.recommender.sla import (
    ENDURANCE,
    LATENCY_MAXIMA,
    MINIMA,
    POWER_MAXIMA,
    Sla,
    confidence_scale,
)
from iojoule.recommender.space import Candidates, join

Floats = NDArray[np.float64]

DEMAND = "demand_bytes_per_second"
"""Name under which the demand itself is judged, beside the bounds of the SLA."""


@dataclass(frozen=True)
class Question:
    """What candidates are judged by.

    Attributes:
        demand: The work.
        sla: The bounds.
        scope: Whose energy counts.
        objective: What is made small; None ranks by performance alone.
        tail: Latency that the Pareto set minimises.
        percentage_used: Rated endurance already used, percent; None counts as none.
        year: A year of the work and its rates; needed by the objectives of a year.
        observed: Latency that was measured of one configuration at the demand.
    """

    demand: Demand
    sla: Sla
    scope: Scope
    objective: Objective | None
    tail: str
    percentage_used: float | None = None
    year: Year | None = None
    observed: ObservedLatency | None = None


@dataclass(frozen=True)
class Predicted:
    """n candidates with their predictions.

    Attributes:
        frame: The configurations.
        prediction: At full speed.
        alone: With a single request in flight; None where that was not needed. Its activity may be
            that of other rows.
    """

    frame: Frame
    prediction: Prediction
    alone: Prediction | None

    def take(self, rows: NDArray[np.intp]) -> Predicted:
        """Some of them."""
        alone = self.alone
        return Predicted(
            self.frame.take(rows),
            self.prediction.rows(rows),
            None if alone is None else alone.take(rows, alone.bands),
        )


def together(parts: Sequence[Predicted]) -> Predicted:
    """Candidates below each other, of the quantities that are known of the last."""
    alone = [part.alone for part in parts if part.alone is not None]
    return Predicted(
        join([part.frame for part in parts]),
        below([part.prediction for part in parts]),
        below(alone, activity=False) if len(alone) == len(parts) else None,
    )


@dataclass(frozen=True)
class Evaluated:
    """n candidates at the demanded work, before any bound is looked at.

    Attributes:
        frame: The configurations.
        prediction: At full speed.
        alone: With a single request in flight; None where that was not needed.
        work: At the demanded work.
        watts: Mean power at that work.
    """

    frame: Frame
    prediction: Prediction
    alone: Prediction | None
    work: Work
    watts: Watts


@dataclass(frozen=True)
class Judged:
    """n candidates judged.

    Attributes:
        frame: The configurations.
        prediction: At full speed.
        work: At the demanded work.
        watts: Mean power at that work.
        costs: Columns of the Pareto set, all to be minimised; the first is the objective.
        bounds: Names of what is judged, the columns of the next two.
        reached: The end of the interval that is compared with each limit, shape (n, bounds);
            infinite where it is unbounded.
        violations: Relative amount by which it is missed, 0 where it holds; infinite where nobody
            knows whether it holds.
        soft: Which bounds are only preferred, shape (bounds,).
        unknown: Which bounds depend on something that nobody knows, shape (bounds,).
    """

    frame: Frame
    prediction: Prediction
    work: Work
    watts: Watts
    costs: Floats
    bounds: tuple[str, ...]
    reached: Floats
    violations: Floats
    soft: NDArray[np.bool_]
    unknown: NDArray[np.bool_]

    @property
    def predicted(self) -> Predicted:
        """The configurations with what is predicted of them."""
        return Predicted(self.frame, self.prediction, self.work.latencies.alone)

    @property
    def feasible(self) -> NDArray[np.bool_]:
        """Which rows hold every bound that is not only preferred."""
        return np.asarray(~self.violations[:, ~self.soft].any(axis=1))

    @property
    def preferred_missed(self) -> Floats:
        """By how much the preferred bounds are missed in all, relative; 0 where all hold."""
        return np.asarray(self.violations[:, self.soft].sum(axis=1))


class Judge:
    """Evaluates frames for one question."""

    def __init__(self, predictor: Predictor, layout: Layout, question: Question) -> None:
        self.predictor = predictor
        self.layout = layout
        self.question = question
        self.limits = self._limits()
        sla = question.sla
        self.scales = {name: confidence_scale(sla.confidence_of(name)) for name in self.limits}
        self.soft = np.array([name in sla.soft for name in self.limits], dtype=bool)
        # what waits for flushes of unknown cost holds no promise
        flush = question.demand.flush
        waits = flush is not None and not flush.is_known
        self.unknown = np.array([waits and name in WAITING for name in self.limits], dtype=bool)

    def _limits(self) -> dict[str, float]:
        question = self.question
        limits = dict(question.sla.bounds())
        if question.demand.bytes_per_second is not None:
            limits = {DEMAND: question.demand.bytes_per_second, **limits}
        return limits

    @property
    def search_quantities(self) -> frozenset[str]:
        """What the search needs of a prediction beside the mean latency."""
        bounded = {quantity for name, quantity in LATENCY_MAXIMA.items() if name in self.limits}
        needed = with_lower({*bounded, self.question.tail})
        if self.predictor.profile.write_buffer_bytes is not None:
            needed |= {"latency_p50_ns"}  # a write that finds room in the buffer
        return needed | {DEVICE_VALUE}

    def search(self, candidates: Candidates) -> Iterator[Judged]:
        """Evaluate and judge what the search needs of every candidate, block by block."""
        return map(self.judge_evaluated, self.evaluate(candidates))

    def evaluate(self, candidates: Candidates) -> Iterator[Evaluated]:
        """Evaluate what the search needs of every candidate, block by block.

        The same for every question that differs in nothing but limits of the SLA.
        """
        only, runs = self.search_quantities, len(candidates.states)
        alone: Prediction | None = None
        for rows, frame in candidates.blocks():
            if not is_open(self.question.demand):
                yield self._evaluated(frame, self.predictor.predict(frame, runs=runs, only=only))
                continue
            if alone is None:  # with the first block: few rows take as long as one
                single, place = candidates.alone()
                both = self.predictor.predict(join([single, frame]), runs=runs, only=only)
                alone = both.rows(slice(len(single)))
                prediction = both.rows(slice(len(single), None))
            else:
                prediction = self.predictor.predict(frame, runs=runs, only=only)
            names = only - {DEVICE_VALUE}
            yield self._evaluated(frame, prediction, alone.take(place[rows], names))

    def evaluate_again(self, blocks: Iterable[Evaluated]) -> Iterator[Evaluated]:
        """Candidates that were evaluated for a question of another demand, for this one."""
        for block in blocks:
            yield self._evaluated(block.frame, block.prediction, block.alone)

    def judge_lightly(self, frame: Frame) -> Judged:
        """As `judge`, of the quantities that the search needs."""
        demand = self.question.demand
        return self.judge(predicted(self.predictor, frame, demand, self.search_quantities))

    def judge(self, known: Predicted | Frame) -> Judged:
        """Evaluate candidates, of which predictions may be known already."""
        if isinstance(known, Frame):
            known = predicted(self.predictor, known, self.question.demand)
        return self.judge_evaluated(self._evaluated(known.frame, known.prediction, known.alone))

    def _evaluated(
        self, frame: Frame, prediction: Prediction, alone: Prediction | None = None
    ) -> Evaluated:
        demand, observed = self.question.demand, self.question.observed
        work = work_of(frame, prediction, demand, alone)
        if observed is not None:
            latencies = replace(work.latencies, observed=observed.beside(frame))
            work = replace(work, latencies=latencies)
        watts = watts_of(self.predictor.profile, frame, prediction, work, demand.rest)
        return Evaluated(frame, prediction, alone, work, watts)

    def judge_evaluated(self, evaluated: Evaluated) -> Judged:
        """Hold candidates against the bounds."""
        frame, prediction = evaluated.frame, evaluated.prediction
        work, watts = evaluated.work, evaluated.watts
        reached = np.empty((len(frame), len(self.limits)))
        violations = np.empty_like(reached)
        powers: dict[str, Floats] = {}
        for column, (name, limit) in enumerate(self.limits.items()):
            if name in POWER_MAXIMA and not powers:
                powers = self._power_bounds(frame, prediction, work, watts)
            value = self._reached(name, work, powers)
            reached[:, column] = value
            missed = value / limit - 1.0 if name.endswith("_max") else limit / value - 1.0
            violations[:, column] = np.maximum(missed, 0.0)
        if self.unknown.any():
            violations[self._unknown_of(work)] = np.inf
        return Judged(
            frame,
            prediction,
            work,
            watts,
            self._costs(work, watts),
            tuple(self.limits),
            reached,
            violations,
            self.soft,
            self.unknown,
        )

    def _unknown_of(self, work: Work) -> NDArray[np.bool_]:
        """Which bounds nobody knows of which row: not those that were measured of it."""
        unknown = np.tile(self.unknown, (len(work.busy), 1))
        observed = work.latencies.observed
        if observed is None:
            return unknown
        known = (DEMAND, *observed.measured)
        measured = np.array([LATENCY_MAXIMA.get(name, name) in known for name in self.limits])
        return np.asarray(unknown & ~(observed.itself[:, None] & measured))

    def _reached(self, name: str, work: Work, powers: dict[str, Floats]) -> Floats:
        scale = self.scales[name]
        if name in LATENCY_MAXIMA:
            return work.latencies.at(LATENCY_MAXIMA[name], scale)
        if name in POWER_MAXIMA:
            return powers[name]
        if name == ENDURANCE:
            more = np.exp(scale * work.log_capacity_up * work.elasticity)
            return self._years(work.host_writes * more)
        margin = np.exp(-scale * work.log_capacity_half * work.capacity_elasticity)
        carried = work.capacity_bytes * margin
        observed = work.latencies.observed
        if name == DEMAND and observed is not None:  # latency at the demand shows that it is served
            carried = np.where(observed.itself, np.maximum(carried, self.limits[DEMAND]), carried)
        return carried / self.question.demand.useful_bytes if name == "iops_min" else carried

    def _years(self, bytes_per_second: Floats) -> Floats:
        """How long the rated endurance lasts, years; infinite where nothing is written."""
        rated = self.predictor.profile.endurance_bytes_written
        assert rated is not None  # `check_answerable` asks
        used = (self.question.percentage_used or 0.0) / 100.0
        left = rated.value * max(0.0, 1.0 - used)
        with np.errstate(divide="ignore"):
            return left / (bytes_per_second * YEAR_SECONDS)

    def _power_bounds(
        self, frame: Frame, prediction: Prediction, work: Work, watts: Watts
    ) -> dict[str, Floats]:
        """Upper bound of each mean power."""
        rest = self.question.demand.rest
        every = all_gradients(self.layout, frame, prediction, work, watts, rest)
        found: dict[str, Floats] = {}
        for name in self.limits.keys() & POWER_MAXIMA.keys():
            power: Gradients = every[name.removesuffix("_power_watts_max")]
            found[name] = power.watts + self.scales[name] * NORMAL_90 * power.sd(self.layout)
        return found

    def _costs(self, work: Work, watts: Watts) -> Floats:
        tail = work.latencies.at(self.question.tail)
        objective = objective_values(self.question, work, watts)
        columns = np.stack([objective, -work.capacity_bytes, tail], axis=1)
        return without_rounding_errors(columns)


def is_open(demand: Demand) -> bool:
    """Whether requests come on their own, whatever is in flight."""
    return demand.arrivals is not Arrivals.CLOSED


def predicted(
    predictor: Predictor, frame: Frame, demand: Demand, only: Collection[str] = QUANTITIES
) -> Predicted:
    """Predictions of a few rows, and of each with a single request in flight, in one go."""
    if not is_open(demand):
        return Predicted(frame, predictor.predict(frame, only=only), None)
    rows = len(frame)
    both = predictor.predict(join([frame, alone_of(frame)]), only=only)
    return Predicted(frame, both.rows(slice(rows)), both.rows(slice(rows, None)))


def is_powered(profile: DeviceProfile, scope: Scope) -> bool:
    """Whether the power of a scope is known."""
    if profile.device_power is None:
        return False
    if scope is Scope.DEVICE:
        return True
    return profile.host_power is not None and (
        scope is not Scope.SYSTEM or profile.system_power is not None
    )


OF_LATENCY = tuple(LATENCY_MAXIMA.values())

WAITING = frozenset({DEMAND, *MINIMA, *LATENCY_MAXIMA})
"""Bounds that depend on what a flush costs."""


def scope_watts(watts: Watts, scope: Scope) -> Floats | None:
    """Power of a scope, W; None where a part of it is unknown."""
    if scope is Scope.SYSTEM:
        return watts.system
    if scope is Scope.DEVICE or watts.device is None:
        return watts.device
    return None if watts.cpu is None else watts.device + watts.cpu


def objective_values(question: Question, work: Work, watts: Watts) -> Floats:
    """What is made small: W, J per useful GB, J s, kWh, money or kg a year.

    Without power a demanded rate is ranked by tail latency (s), full speed by capacity (s a GB).
    """
    power = scope_watts(watts, question.scope)
    if question.objective is None or power is None:
        if question.demand.bytes_per_second is None:
            return 1e9 / work.capacity_bytes
        return work.latencies.at(question.tail) * 1e-9
    if question.objective is Objective.WATTS:
        return power
    energy = power / work.served_bytes
    if question.objective is Objective.JOULES_PER_USEFUL_GB:
        return energy * 1e9
    if question.objective in YEARLY:
        assert question.year is not None
        # wear that no configuration spares would only hide what they differ in
        more = work.host_writes / work.served_bytes - question.year.written_by_the_work
        return question.year.cost(question.objective, energy, more)
    mean = work.latencies.at("latency_mean_ns")
    return energy * question.demand.useful_bytes * (mean * 1e-9)


def check_answerable(question: Question, layout: Layout, sample: Prediction) -> None:
    """Refuse bounds that this profile cannot judge or that no state of the drive can keep.

    Raises:
        InputError: Names the bound and the remedy.
    """
    profile = layout.profile
    bounds = question.sla.bounds()
    for name in bounds:
        if name in LATENCY_MAXIMA and np.isnan(sample[LATENCY_MAXIMA[name]].value[0]):
            raise InputError(
                f"sla.{name}: the profile of {profile.model_name} does not know this percentile "
                "for the workload; bound latency_mean_ns_max instead, or measure and fit it",
                field=f"sla.{name}",
            )
    if ENDURANCE in bounds and profile.endurance_bytes_written is None:
        raise InputError(
            f"sla.{ENDURANCE}: the profile of {profile.model_name} has no endurance rating; leave "
            "the bound out, or add `endurance_bytes_written` to the drive's facts",
            field=f"sla.{ENDURANCE}",
        )
    for name, floor in least_watts(profile).items():
        if name not in bounds:
            continue
        if floor is None:
            raise InputError(
                f"sla.{name}: the profile of {profile.model_name} knows no such power, so nothing "
                "can be compared with the bound; leave it out, or measure power and fit it",
                field=f"sla.{name}",
            )
        if bounds[name] < floor:
            raise InputError(
                f"sla.{name}: {bounds[name]:g} W is below the {floor:.3g} W that are drawn without "
                "any work; no configuration can keep it, raise it",
                field=f"sla.{name}",
            )


def least_watts(profile: DeviceProfile) -> dict[str, float | None]:
    """What is drawn without any work, by the bound that it is compared with; None: unknown."""
    idle: dict[str, float | None] = dict.fromkeys(POWER_MAXIMA)
    device, host, system = profile.device_power, profile.host_power, profile.system_power
    if device is not None:
        states = {0, *(effect.power_state for effect in profile.power_state_effects)}
        idle["device_power_watts_max"] = min(device.idle_watts[state].value for state in states)
    if host is not None:
        idle["cpu_power_watts_max"] = host.parameters[0].value
    least, cpu = idle["device_power_watts_max"], idle["cpu_power_watts_max"]
    if least is not None and cpu is not None:
        idle["device_cpu_power_watts_max"] = least + cpu
    if system is not None and least is not None and cpu is not None:
        parts = least + cpu
        drawn, _ = system_power.watts(system, np.array([parts]), np.zeros(1))
        idle["system_power_watts_max"] = float(drawn[0])
    return idle


def endurance_of(
    profile: DeviceProfile, workload: WorkloadProfile, recommended: Row, current: Row | None
) -> Endurance | None:
    """Host and flash bytes a year; None for a workload that does not write.

    A rating in bytes written counts host bytes (JESD218), so years left need no write
    amplification.
    """
    if workload.read_fraction == 1.0:
        return None
    yearly = recommended.host_bytes_written_per_second * YEAR_SECONDS
    change = None
    if current is not None:
        change = yearly - current.host_bytes_written_per_second * YEAR_SECONDS
    money = _spread(profile, workload.factors.drive_price, "drive_price")
    carbon = _spread(profile, workload.factors.drive_carbon_kilograms, "drive_carbon_kilograms")
    amplification = workload.write_amplification
    rated = profile.endurance_bytes_written
    years = None
    if rated is not None and yearly > 0:
        left = max(0.0, 1.0 - (workload.percentage_used or 0.0) / 100.0)
        years = rated.value * left / yearly
    parts = []
    if amplification is None:
        parts.append("write amplification is not known, so only host bytes are stated")
    if rated is None:
        parts.append("the profile has no endurance rating")
    elif workload.percentage_used is None:
        parts.append("an unused drive is assumed; state percentage_used")
    return Endurance(
        host_bytes_per_year=yearly,
        change_host_bytes_per_year=change,
        nand_bytes_per_year=None if amplification is None else yearly * amplification,
        years_left=years,
        cost_per_year=None if money is None else yearly * money,
        change_cost_per_year=None if money is None or change is None else change * money,
        co2_kilograms_per_year=None if carbon is None else yearly * carbon,
        change_co2_kilograms_per_year=None if carbon is None or change is None else change * carbon,
        reason="; ".join(parts) or "from the rating, the share used and the host bytes a year",
    )


def _spread(profile: DeviceProfile, amount: float | None, name: str) -> float | None:
    """What a written host byte takes of the drive's price or carbon; None where none is stated."""
    return None if amount is None else amount / rated_bytes(profile, f"factors.{name}")
