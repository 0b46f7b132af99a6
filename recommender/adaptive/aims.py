"""What a question wants of a measured candidate: its cost, its bounds, as sums of logs.

Everything that is measured is positive and varies by factors, so it is modelled by its log. The
objective and every bound are then sums of modelled logs, and stay normally distributed:

    joules per useful GB = watts / (requests a second x useful bytes)
    watts                = watts, at a demand that the runs carry
    energy-delay product = watts / requests a second x mean latency
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
from iojoule.recommender.sla import LATENCY_MAXIMA, POWER_MAXIMA
from iojoule.recommender.workload import Objective, Scope, WorkloadProfile

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
    """One bound: the log of an output, times `sign`, must not exceed `limits` (shape (m,))."""

    name: str
    output: int
    sign: float
    limits: Floats


class Aims:
    """A question over candidates, as sums of logs.

    Args:
        question: Workload, SLA, objective and scope.
        candidates: What may be recommended, all of one workload but for the demand.

    Attributes:
        outputs: What is modelled, each by its log.
        weights: Log cost = weights x outputs + offset; shape (q,).
        offset: Shape (m,).
        bounds: What must hold.

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
        self._outputs: list[str] = [WATTS]
        weights = {WATTS: 1.0}
        self.offset = np.zeros(len(candidates))
        if objective is not Objective.WATTS:
            weights[self._output(REQUESTS)] = -1.0
        elif question.as_fast_as_possible:
            raise InputError(
                "objective: watts at full speed favour the slowest configuration; state a demand, "
                "or ask for joules_per_useful_gb",
                field="objective",
            )
        if objective is Objective.JOULES_PER_USEFUL_GB:
            self.offset = -np.log(self.useful_bytes / 1e9)
        if objective is Objective.EDP:
            weights[self._output("latency_mean_ns")] = 1.0
            self.offset = np.full(len(candidates), np.log(1e-9))
        self.bounds = tuple(self._bounds())
        self.outputs = tuple(self._outputs)
        self.weights = np.array([weights.get(name, 0.0) for name in self.outputs])
        self._rows = {one.key: row for row, one in enumerate(self.candidates)}

    def observed(self, dataset: Dataset) -> tuple[Rows, Floats]:
        """Which candidates were measured, and the logs of their outputs.

        Returns:
            The candidate of every usable row, shape (n,), and its logs, shape (n, q). Rows of
            other points, and rows that lack an output, are left out.
        """
        rows: list[int] = []
        values: list[list[float]] = []
        for one in dataset.measurements():
            row = self._rows.get((one.workload, one.configuration))
            if row is None:
                continue
            seen = one.observations
            found = [self._value(name, seen.model_dump()) for name in self.outputs]
            if all(each is not None and each > 0 for each in found):
                rows.append(row)
                values.append([float(np.log(each)) for each in found if each is not None])
        return np.array(rows, dtype=np.intp), np.array(values).reshape(-1, len(self.outputs))

    def missing(self, dataset: Dataset) -> list[str]:
        """Outputs that no row of the dataset has, so that the question cannot be answered."""
        seen = [one.observations.model_dump() for one in dataset.measurements()]
        return [
            name for name in self.outputs if all(self._value(name, row) is None for row in seen)
        ]

    def log_costs(self, means: Floats, rows: Rows | None = None) -> Floats:
        """Log cost from mean outputs of shape (q, ..., k) about `rows` (None: all)."""
        offset = self.offset if rows is None else self.offset[rows]
        return np.asarray(np.tensordot(self.weights, means, axes=1) + offset)

    def chances(self, means: Floats, variances: Floats, rows: Rows | None = None) -> Floats:
        """Probability that all bounds are kept, for outputs of shape (q, ..., k) about `rows`."""
        found = np.ones(means.shape[1:])
        for bound in self.bounds:
            limits = bound.limits if rows is None else bound.limits[rows]
            room = limits - bound.sign * means[bound.output]
            found = found * ndtr(room / np.sqrt(variances[bound.output]))
        return np.asarray(found)

    def _value(self, name: str, seen: dict[str, float | None]) -> float | None:
        if name != WATTS:
            return seen.get(name)
        parts = [seen.get(part) for part in _SCOPES[self.question.scope]]
        known = [part for part in parts if part is not None]
        return sum(known) if len(known) == len(parts) else None

    def _output(self, name: str) -> str:
        if name not in self._outputs:
            self._outputs.append(name)
        return name

    def _bound(self, name: str, output: str, sign: float, limits: Floats) -> Bound:
        place = self._outputs.index(self._output(output))
        return Bound(name, place, sign, sign * np.log(limits))

    def _bounds(self) -> list[Bound]:
        ones = np.ones(len(self.candidates))
        found: list[Bound] = []
        demanded = _demanded(self.question, self.useful_bytes)
        if demanded is not None:
            found.append(self._bound("demand", REQUESTS, -1.0, DEMAND_MET * demanded))
        for name, value in self.question.sla.bounds().items():
            if name in LATENCY_MAXIMA:
                found.append(self._bound(name, LATENCY_MAXIMA[name], 1.0, value * ones))
            elif name in POWER_MAXIMA:
                found.append(self._bound(name, POWER_MAXIMA[name], 1.0, value * ones))
            else:
                operation = self.useful_operation
                least = value if name == "iops_min" else value / operation
                needed = least * operation / self.useful_bytes
                if demanded is None:
                    found.append(self._bound(name, REQUESTS, -1.0, needed))
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
