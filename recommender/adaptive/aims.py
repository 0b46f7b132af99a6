"""What a question wants of a measured candidate: its cost and its bounds, as what is modelled.

Everything that is measured is positive and varies by factors, so it is modelled by its log. The
objective is a sum of such logs, and stays normally distributed:

    joules per useful GB = watts / (requests a second x useful bytes)
    watts                = watts, at a demand that the runs carry
    energy-delay product = watts / requests a second x mean latency

A bound is modelled by the log of how far it is missed (negative: kept). A drive that cannot keep up
with a demand misses it by factors of thousands, and how many does not matter: beyond a factor of e
either way the log is taken once more, so that such cliffs do not rule the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from iojoule.datasets.errors import InputError
from iojoule.datasets.schema import Configuration, Workload
from iojoule.datasets.store import Dataset
from iojoule.recommender.factors import Objective
from iojoule.recommender.request import Scope, WorkloadProfile
from iojoule.recommender.sla import LATENCY_MAXIMA, POWER_MAXIMA

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

DEMAND_MET = 0.98
"""A run at a demand carries it when it serves so much of it; what is missing is its ends."""

_SCOPES: dict[Scope, tuple[str, ...]] = {
    Scope.DEVICE: ("device_power_watts",),
    Scope.DEVICE_CPU: ("device_power_watts", "cpu_power_watts"),
    Scope.SYSTEM: ("system_power_watts",),
}
WATTS = "watts"
REQUESTS = "iops"


@dataclass(frozen=True)
class Candidate:
    """What could be measured: a configuration under a workload, and what a run of it takes.

    Where the question states a demand, the workload carries it, in bytes of this size of request.
    """

    workload: Workload
    configuration: Configuration
    seconds: float

    @property
    def key(self) -> tuple[Workload, Configuration]:
        """Tells candidates apart, and finds them in a dataset."""
        return self.workload, self.configuration


@dataclass(frozen=True)
class Bound:
    """One bound.

    Attributes:
        name: Of the SLA's field, or `demand`.
        quantity: What it bounds.
        sign: 1 where it bounds from above, -1 from below.
        limits: Its value for each candidate, shape (m,).
    """

    name: str
    quantity: str
    sign: float
    limits: Floats

    def missed(self, value: float, row: int) -> float:
        """How far it is missed by an observed value, as it is modelled; negative: it is kept."""
        return tempered(self.sign * float(np.log(value / self.limits[row])))


def tempered(distance: float) -> float:
    """The distance itself up to 1, from there on 1 and its log."""
    far = abs(distance)
    return distance if far <= 1.0 else float(np.copysign(1.0 + np.log(far), distance))


class Aims:
    """A question over candidates, as sums of logs.

    Args:
        question: Workload, SLA, objective and scope.
        candidates: What may be recommended, all of one workload but for the demand.

    Attributes:
        outputs: Names of what is modelled: the quantities of the objective, then the bounds.
        weights: Log cost = weights x outputs + offset; shape (q,), 0 for the bounds.
        offset: Shape (m,).
        bounds: What must hold; their outputs are the last ones.

    Raises:
        InputError: There is no candidate, or a bound cannot be judged from such runs.
    """

    def __init__(self, question: WorkloadProfile, candidates: Sequence[Candidate]) -> None:
        if not candidates:
            raise InputError(
                f"{question.name}: no point of the plan is a candidate for the question; let the "
                "plan sweep the question's own operation, pattern and read fraction"
            )
        self.question = question
        self.candidates = tuple(candidates)
        self.useful_bytes = _useful(question, candidates)
        objective = question.effective_objective
        weights = {WATTS: 1.0}
        self.offset = np.zeros(len(candidates))
        if objective is not Objective.WATTS:
            weights[REQUESTS] = -1.0
        elif question.as_fast_as_possible:
            raise InputError(
                "objective: watts at full speed favour the slowest configuration; state a demand, "
                "or ask for joules_per_useful_gb",
                field="objective",
            )
        if objective is Objective.JOULES_PER_USEFUL_GB:
            self.offset = -np.log(self.useful_bytes / 1e9)
        if objective is Objective.EDP:
            weights["latency_mean_ns"] = 1.0
            self.offset = np.full(len(candidates), np.log(1e-9))
        self._quantities = tuple(weights)
        self.bounds = tuple(self._bounds())
        self.outputs = (*self._quantities, *(one.name for one in self.bounds))
        self.weights = np.array([weights.get(name, 0.0) for name in self.outputs])
        self._rows = {one.key: row for row, one in enumerate(self.candidates)}

    def observed(self, dataset: Dataset) -> tuple[Rows, Floats]:
        """Which candidates were measured, and their outputs.

        Returns:
            The candidate of every usable row, shape (n,), and its outputs, shape (n, q). Rows of
            other points, and rows that lack an output, are left out.
        """
        rows: list[int] = []
        values: list[list[float]] = []
        for one in dataset.measurements():
            row = self._rows.get((one.workload, one.configuration))
            seen = one.observations.model_dump()
            costs = [self._value(name, seen) for name in self._quantities]
            bounded = [self._value(bound.quantity, seen) for bound in self.bounds]
            if row is None or not all(each is not None and each > 0 for each in costs + bounded):
                continue
            pairs = zip(self.bounds, bounded, strict=True)
            rows.append(row)
            values.append(
                [float(np.log(each)) for each in costs if each is not None]
                + [bound.missed(each, row) for bound, each in pairs if each is not None]
            )
        return np.array(rows, dtype=np.intp), np.array(values).reshape(-1, len(self.outputs))

    def missing(self, dataset: Dataset) -> list[str]:
        """Quantities that no row of the dataset has, so that the question cannot be answered."""
        seen = [one.observations.model_dump() for one in dataset.measurements()]
        wanted = dict.fromkeys((*self._quantities, *(one.quantity for one in self.bounds)))
        return [name for name in wanted if all(self._value(name, row) is None for row in seen)]

    def log_costs(self, means: Floats, rows: Rows | None = None) -> Floats:
        """Log cost from mean outputs of shape (q, ..., k) about `rows` (None: all)."""
        offset = self.offset if rows is None else self.offset[rows]
        return np.asarray(np.tensordot(self.weights, means, axes=1) + offset)

    def chances(self, means: Floats, variances: Floats) -> Floats:
        """Probability that all bounds are kept, for outputs of shape (q, ...)."""
        first = len(self._quantities)
        kept = ndtr(-means[first:] / np.sqrt(variances[first:]))
        return np.asarray(np.prod(kept, axis=0))

    def keeps(self, outputs: Floats) -> NDArray[np.bool_]:
        """Whether all bounds are kept where the outputs, shape (q, ...), are these."""
        return np.asarray((outputs[len(self._quantities) :] <= 0).all(axis=0))

    def _value(self, name: str, seen: dict[str, float | None]) -> float | None:
        if name != WATTS:
            return seen.get(name)
        parts = [seen.get(part) for part in _SCOPES[self.question.scope]]
        known = [part for part in parts if part is not None]
        return sum(known) if len(known) == len(parts) else None

    def _bounds(self) -> list[Bound]:
        ones = np.ones(len(self.candidates))
        found: list[Bound] = []
        demanded = _demanded(self.question, self.useful_bytes)
        if demanded is not None:
            found.append(Bound("demand", REQUESTS, -1.0, DEMAND_MET * demanded))
        for name, value in self.question.sla.bounds().items():
            if name in LATENCY_MAXIMA:
                found.append(Bound(name, LATENCY_MAXIMA[name], 1.0, value * ones))
            elif name in POWER_MAXIMA:
                found.append(Bound(name, POWER_MAXIMA[name], 1.0, value * ones))
            else:
                operation = self.useful_operation
                least = value if name == "iops_min" else value / operation
                needed = least * operation / self.useful_bytes
                if demanded is None:
                    found.append(Bound(name, REQUESTS, -1.0, needed))
                elif np.any(needed > demanded * (1 + 1e-9)):
                    raise InputError(
                        f"sla.{name}: is more than the demand, and runs at a demand do not show "
                        "what a configuration is able to carry; leave one of the two out",
                        field=f"sla.{name}",
                    )
        return found

    @property
    def useful_operation(self) -> float:
        """Useful bytes of one operation of the application."""
        stated = self.question.workload.useful_request_bytes or self.question.current.request_bytes
        return float(stated or self.candidates[0].configuration.request_bytes)


def _useful(question: WorkloadProfile, candidates: Sequence[Candidate]) -> Floats:
    """Useful bytes of one request of each candidate, shape (m,)."""
    sizes = np.array([one.configuration.request_bytes for one in candidates], dtype=float)
    stated = question.workload
    useful = stated.useful_request_bytes or question.current.request_bytes
    limit = stated.request_bytes_coalescible or useful
    return sizes if limit is None else np.minimum(sizes, float(limit))


def _demanded(question: WorkloadProfile, useful: Floats) -> Floats | None:
    """Requests a second that serve the demand, shape (m,); None = as fast as possible."""
    stated = question.workload
    if stated.demand_bytes_per_second is not None:
        return np.asarray(stated.demand_bytes_per_second / useful)
    if stated.demand_operations_per_second is not None:
        operation = stated.useful_request_bytes or question.current.request_bytes
        rate = stated.demand_operations_per_second
        return np.asarray(rate * (operation or useful) / useful)
    return None
