"""Random questions: workload profiles and SLAs about what a simulated drive can nearly do.

What is drawn, each from a stream of its own seed and number:

* the kind of work, uniformly from `truth.WORKS`; useful requests of 4, 8 or 16 KiB, coalescible up
  to a size uniform among those from there on;
* which knobs are free, each with probability 0.8 (two at the least), over all values of the grid;
  today's value of every knob uniformly, the request size that of the application;
* `concurrency_max`: left out (as many requests as today's configuration keeps in flight),
  "unbounded", or a number that the grid has and that is no less than today's; what needs more in
  flight, counted in useful bytes, is no candidate;
* with probability 0.5 a demand that comes as Poisson arrivals, else with probability 0.5 one in
  bursts, uniform from 10 to 90 % of the highest capacity of any candidate; objective watts, or
  with probability 0.2 energy-delay product (also of what runs as fast as possible, else joules per
  useful GB);
* one to three bounds among p99, mean latency, throughput (where there is no demand) and power of
  the drive, in random order. Each is a quantile, uniform from 0.2 to 0.9 from the tightest, of the
  true values over the configurations that keep demand and bounds so far, times exp(U(-0.1, 0.1)):
  an application's bound knows nothing of the configurations, and now and then none can keep it;
* a confidence among 0.8, 0.85, 0.9, 0.95 and 0.99; with probability 0.2 one bound has its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iojoule.api.validating.chance import Simulate, at_random_work, in_bursts, simulator
from iojoule.api.validating.truth import ENGINE, KNOBS, Grid, Table
from iojoule.recommender.evaluate import DEMAND
from iojoule.recommender.factors import Objective
from iojoule.recommender.request import WorkloadProfile, parse_workload
from iojoule.recommender.sla import LATENCY_MAXIMA, MINIMA, POWER_MAXIMA

Floats = NDArray[np.float64]

POISSON, BURSTS = "poisson", "bursts"
"""Arrival processes that are asked about."""
ROOMS = ("today", "unbounded", "number")
"""What is said of the requests that the application can keep in flight."""

CONFIDENCES = (0.8, 0.85, 0.9, 0.95, 0.99)
USEFUL_SIZES = 3
"""How many of the grid's smallest sizes an application may ask for."""
AtDemand = Callable[[NDArray[np.intp], float], dict[str, Floats]]
"""Takes rows and a demand in bytes a second; gives what they do at it, as `Table.at_work`."""

BOUNDS = (
    "latency_p99_ns_max",
    "latency_mean_ns_max",
    "throughput_bytes_per_second_min",
    "device_power_watts_max",
)


@dataclass(frozen=True)
class Asked:
    """A question, its candidates and what is true of them.

    Attributes:
        number: Of the question.
        table: The drive's truth for this kind of work.
        workload: The question.
        candidates: Rows of the table that may be chosen.
        truth: What each row of the table does at the demand.
        today: Row of today's configuration.
        at_demand: What rows do at another demand, bytes a second, that arrives in the same way.
    """

    number: int
    table: Table
    workload: WorkloadProfile
    candidates: NDArray[np.intp]
    truth: dict[str, Floats]
    today: int
    at_demand: AtDemand

    @property
    def arrivals(self) -> str:
        """How the demand arrives; "none" where there is none."""
        return self.workload.workload.arrival_process or "none"

    @property
    def demand(self) -> float | None:
        """Useful bytes a second."""
        return self.workload.workload.demand_bytes_per_second

    @property
    def power(self) -> str:
        """Whose power counts, as a name of the truth."""
        return f"{self.workload.scope.value}_power_watts"

    def confidences(self) -> dict[str, float]:
        """With which each bound is to be kept; the demand is one of them."""
        sla = self.workload.sla
        names = [*([DEMAND] if self.demand is not None else []), *sla.bounds()]
        return {name: sla.confidence_of(name) for name in names}

    def broken(self) -> dict[str, NDArray[np.bool_]]:
        """By bound, which rows of the table truly break it."""
        found = {
            name: _breaks(self.truth, name, limit)
            for name, limit in self.workload.sla.bounds().items()
        }
        if self.demand is not None:
            found[DEMAND] = self.truth["capacity_bytes_per_second"] < self.demand
        return found

    def headroom(self, rows: NDArray[np.intp]) -> float:
        """How far the row that is farthest from its nearest bound is from it, as a share.

        0.2: some row could have every latency and watt grow by a fifth, and every rate fall by a
        sixth, and would still keep all. The demand is one of the bounds.
        """
        if not len(rows):
            return 0.0
        limits = list(self.workload.sla.bounds().items())
        if self.demand is not None:
            limits.append((DEMAND, self.demand))
        room = [_room_to(self.truth, name, limit)[rows] for name, limit in limits]
        return float(np.min(room, axis=0).max())

    def costs(self) -> Floats:
        """The true objective of every row: W, J per useful byte, or that times seconds."""
        watts = self.truth[self.power]
        objective = self.workload.effective_objective
        if objective is Objective.WATTS:
            return watts
        energy = self.energy()
        if objective is Objective.EDP:
            return energy * self.truth["latency_mean_ns"]
        return energy

    def fair(self) -> NDArray[np.bool_]:
        """Rows whose drive saves, against today's, no less than their CPU takes more.

        Nothing else may be recommended where the drive's energy alone counts.
        """
        served = self.truth["served_bytes_per_second"]
        drive, cpu = (self.truth[f"{part}_power_watts"] / served for part in ("device", "cpu"))
        spared = np.maximum(drive[self.today] - drive, 0.0)
        found = np.asarray(cpu - cpu[self.today] <= spared)
        found[self.today] = True
        return found

    def saving_percent(self, row: int) -> float:
        """What a row truly saves of today's energy for the same work in the same time.

        Of a demand that today's configuration cannot carry, the work is what it does carry. Without
        a demand the faster one draws the idle power of today's power state for the rest.
        """
        today, served = self.today, self.truth["served_bytes_per_second"]
        if self.demand is not None:
            rate = float(min(served[today], served[row]))
            most = self._watts_at(today, rate)
            return 100.0 * (most - self._watts_at(row, rate)) / most
        idle = float(self.table.drive.with_leakage(self.table.idle_watts)[today])
        net = (self.truth[self.power] - idle) / served
        return float(100.0 * (net[today] - net[row]) / self.energy()[today])

    def _watts_at(self, row: int, rate: float) -> float:
        """Power of the scope where so many bytes a second are demanded of a row."""
        truth = self.truth
        if rate < truth["served_bytes_per_second"][row]:
            truth = self.at_demand(np.array([row]), rate)
        return float(truth[self.power][row])

    def energy(self) -> Floats:
        """True energy of every row in the question's scope, J per useful byte."""
        watts = self.truth[self.power]
        return watts / self.truth["served_bytes_per_second"]


def draw_question(table: Table, number: int, seed: int, simulate: Simulate | None = None) -> Asked:
    """The question of this number about a drive; the same seed and number give the same one.

    Args:
        table: The drive's truth for the kind of work that is asked about.
        number: Of the question.
        seed: Of all questions.
        simulate: Open loops; None simulates them here and keeps nothing.
    """
    source = np.random.default_rng([seed, 3, number])
    grid = table.grid
    useful = int(source.choice(grid.request_bytes[:USEFUL_SIZES]))
    larger = [size for size in grid.request_bytes if size >= useful]
    coalescible = int(source.choice(larger))
    today = {name: _plain(source.choice(getattr(grid, name))) for name in KNOBS}
    today["request_bytes"] = useful
    values = {name: [_plain(one) for one in getattr(grid, name)] for name in KNOBS}
    values["request_bytes"] = [size for size in larger if size <= coalescible]
    chosen = source.random(len(KNOBS)) < 0.8
    if chosen.sum() < 2:
        chosen[source.choice(len(KNOBS), 2, replace=False)] = True
    free = {name: values[name] for name, is_free in zip(KNOBS, chosen, strict=True) if is_free}
    axes = [free.get(name, [today[name]]) for name in KNOBS]
    room = _room(grid, today, source)
    candidates = _within(grid, _rows(grid, axes), room, today)
    workload = table.work.workload | {
        "useful_request_bytes": useful,
        "request_bytes_coalescible": coalescible,
    }
    demand, arrivals = None, source.choice([POISSON, POISSON, BURSTS, "none"])
    if arrivals != "none":
        most = float((table.iops * table.request_bytes)[candidates].max())
        demand = float(source.uniform(0.1, 0.9)) * most
        workload |= {"demand_bytes_per_second": demand, "arrival_process": str(arrivals)}
    at_demand: AtDemand = partial(in_bursts, table)
    if arrivals == POISSON:
        at_demand = partial(at_random_work, table, simulate=simulate or simulator())
    truth = table.at_work(None) if demand is None else at_demand(candidates, demand)
    sla = _sla(truth, candidates, demand, source)
    asked: dict[str, Any] = {
        "name": f"question {number}",
        "workload": workload,
        "current": today | ENGINE,
        "free": free,
        "sla": sla,
        "scope": "device",
    }
    if room is not None:
        asked["concurrency_max"] = room
    if source.random() < 0.2:
        asked["objective"] = "edp"
    place = _rows(grid, [[today[name]] for name in KNOBS])
    return Asked(number, table, parse_workload(asked), candidates, truth, int(place[0]), at_demand)


def _room(grid: Grid, today: dict[str, Any], source: np.random.Generator) -> int | str | None:
    """What is said of the requests that the application can keep in flight."""
    own = int(today["queue_depth"] * today["jobs"])
    every = sorted({d * j for d in grid.queue_depth for j in grid.jobs if d * j >= own})
    kind, number = str(source.choice(ROOMS)), int(source.choice(every))
    return {"today": None, "unbounded": "unbounded", "number": number}[kind]


def _within(
    grid: Grid, rows: NDArray[np.intp], room: int | str | None, today: dict[str, Any]
) -> NDArray[np.intp]:
    """Rows that keep no more in flight, counted in bytes, than the application can."""
    if room == "unbounded":
        return rows
    most = today["queue_depth"] * today["jobs"] if room is None else int(room)
    chosen = grid.configurations()
    bytes_in_flight = np.array([one.queue_depth * one.jobs * one.request_bytes for one in chosen])
    within = bytes_in_flight[rows] <= most * int(today["request_bytes"])
    return np.asarray(rows[within], dtype=np.intp)


def _rows(grid: Grid, axes: list[list[Any]]) -> NDArray[np.intp]:
    """Rows of the grid that a product of values makes."""
    places = [
        [getattr(grid, name).index(value) for value in axis]
        for name, axis in zip(KNOBS, axes, strict=True)
    ]
    cells = np.array(list(itertools.product(*places)))
    shape = [len(getattr(grid, name)) for name in KNOBS]
    return np.asarray(np.ravel_multi_index(tuple(cells.T), shape), dtype=np.intp)


def _sla(
    truth: dict[str, Floats],
    candidates: NDArray[np.intp],
    demand: float | None,
    source: np.random.Generator,
) -> dict[str, Any]:
    names = [name for name in BOUNDS if demand is None or name not in MINIMA]
    drawn = list(source.permutation(names)[: int(source.integers(1, 4))])
    sla: dict[str, Any] = {"confidence": float(source.choice(CONFIDENCES))}
    left = candidates
    if demand is not None:
        left = left[truth["capacity_bytes_per_second"][left] >= demand]
    for name in map(str, drawn):
        values = _bounded(truth, name)[left if len(left) else candidates]
        values = values[np.isfinite(values)]
        lower = name.endswith("_min")
        quantile = float(source.uniform(0.2, 0.9))
        limit = float(np.quantile(values, 1.0 - quantile if lower else quantile))
        sla[name] = limit * float(np.exp(source.uniform(-0.1, 0.1)))
        left = left[~_breaks(truth, name, sla[name])[left]]
    if source.random() < 0.2:
        sla["confidences"] = {str(drawn[0]): float(source.choice(CONFIDENCES))}
    return sla


def _bounded(truth: dict[str, Floats], name: str) -> Floats:
    """The quantity that a bound, or the demand, is about."""
    if name == DEMAND or name in MINIMA:
        return truth["capacity_bytes_per_second"]
    return truth[(LATENCY_MAXIMA | POWER_MAXIMA)[name]]


def _breaks(truth: dict[str, Floats], name: str, limit: float) -> NDArray[np.bool_]:
    value = _bounded(truth, name)
    return np.asarray(value < limit if name in MINIMA else value > limit)


def _room_to(truth: dict[str, Floats], name: str, limit: float) -> Floats:
    """By how much each row is on the right side of a limit, as a share; negative beyond it."""
    value = _bounded(truth, name)
    at_least = name == DEMAND or name in MINIMA
    return np.asarray(value / limit - 1.0 if at_least else limit / value - 1.0)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
