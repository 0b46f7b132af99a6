"""From judged candidates to the rows, savings and misses of an answer."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.schema import YEAR_SECONDS
from iojoule.datasets.vocabulary import Evidence
from iojoule.model.evaluate.bands import EVIDENCE, INTERPOLATED
from iojoule.model.evaluate.equal_work import within_cap
from iojoule.model.evaluate.quantities import NORMAL_90, share_below
from iojoule.model.evaluate.uncertainty import (
    Energies,
    Gradients,
    Layout,
    Saved,
    all_gradients,
    contrast,
    energies,
    energy_sd,
    idle_gradients,
    relative_errors,
    sums,
)
from iojoule.recommender.evaluate import DEMAND, OF_LATENCY, Judged, Question
from iojoule.recommender.factors import JOULES_A_KWH, YEARLY, Objective, Rate
from iojoule.recommender.request import Scope
from iojoule.recommender.response import (
    Estimate,
    Miss,
    Row,
    Saving,
    Shortfall,
    Verdict,
)
from iojoule.recommender.space import configuration_of

Floats = NDArray[np.float64]
Triple = tuple[Floats, Floats, Floats, NDArray[np.intp]]

MISS = 0.05
"""Share of misses on each side of a 90 % interval."""


RIVALS = 20
"""Rows that could as well have been chosen. The number is fixed: if it followed the candidates, a
wider choice could recommend less."""


WIDENING = NormalDist().inv_cdf(1.0 - MISS / RIVALS) / NORMAL_90
"""Factor on what a row errs by itself, so that its interval holds for the best of `RIVALS` rows."""


LIKELY = 0.9
"""Probability of a saving from which on a change is recommended."""

RESTS_ON = {
    "device": ("device_power_watts",),
    "cpu": ("cpu_power_watts",),
    "device_cpu": ("device_power_watts", "cpu_power_watts"),
    "system": ("system_power_watts",),
}
"""Scope -> quantities whose evidence its power has."""


class Details:
    """Everything an answer says about a few judged rows.

    Args:
        layout: The common parameters of the profile's power laws.
        question: What was asked.
        judged: The rows.
        chosen: The row that is recommended: its intervals know that it was chosen for its
            prediction (`recommender.rows.WIDENING`).
    """

    def __init__(
        self,
        layout: Layout,
        question: Question,
        judged: Judged,
        chosen: int | None = None,
    ) -> None:
        self.layout = layout
        self.question = question
        self.judged = judged
        self._feasible = judged.feasible
        frame, prediction, work = judged.frame, judged.prediction, judged.work
        rest = question.demand.rest
        self.gradients = all_gradients(layout, frame, prediction, work, judged.watts, rest)
        self._idle = idle_gradients(layout, frame, prediction, work, rest)
        self._widening = np.ones(len(frame))
        if chosen is not None:
            self._widening[chosen] = WIDENING
        self.estimates = {name: _estimates(column) for name, column in self._columns().items()}

    def relative_errors(self, rows: Sequence[int]) -> Floats:
        """Covariance of what the powers of some rows for equal work err, relative, shape (k, k).

        The first two of them are compared, today's with another one.
        """
        found = self.energies(rows[0])
        assert found is not None
        return relative_errors(self.layout, found, rows, self._widening[list(rows)])

    @property
    def power(self) -> Gradients | None:
        """The power of the question's scope; None where it is unknown."""
        return self.gradients.get(self.question.scope.value)

    def energies(self, today: int) -> Energies | None:
        """Energies for equal work above today's idle power; None where power is unknown."""
        if self.power is None:
            return None
        idle = self._idle[self.question.scope.value]
        return energies(self.layout, self.power, idle, self.judged.work, today)

    def _columns(self) -> dict[str, Triple | None]:
        judged, prediction = self.judged, self.judged.prediction
        columns: dict[str, Triple | None] = {}
        for name in OF_LATENCY:
            band = judged.work.latencies.band(name)
            columns[name] = (band.value, band.low, band.high, band.evidence)
        work, code = judged.work, prediction["iops"].evidence
        down, up = work.log_capacity_half, work.log_capacity_up
        carried, held = work.capacity_elasticity, work.elasticity
        columns["capacity_bytes_per_second"] = _spread(
            work.capacity_bytes, carried * down, carried * up, code
        )
        columns["throughput_bytes_per_second"] = _spread(
            work.served_bytes, held * down, held * up, code
        )
        columns["iops"] = _spread(work.requests, held * down, held * up, code)
        for scope, name in (
            ("device", "device_power_watts"),
            ("cpu", "cpu_power_watts"),
            ("device_cpu", "device_cpu_power_watts"),
            ("system", "system_power_watts"),
        ):
            columns[name] = self._power(scope)
        columns["joules_per_useful_gb"], columns["edp_joule_seconds"] = self._energy()
        columns |= self._yearly(columns["joules_per_useful_gb"])
        return columns

    def evidence_codes(self, scope: str) -> NDArray[np.intp]:
        """Weakest evidence of a scope's power, by row."""
        codes = [self.judged.prediction[name].evidence for name in RESTS_ON[scope]]
        return np.asarray(np.maximum.reduce(codes))

    def _power(self, scope: str) -> Triple | None:
        if scope not in self.gradients:
            return None
        power = self.gradients[scope]
        half = NORMAL_90 * power.sd(self.layout, self._widening)
        low, high = np.maximum(power.watts - half, 0.0), power.watts + half
        low, high = self._at_full_speed(scope, power.watts, low, high)
        if scope == "device":
            judged = self.judged
            high = within_cap(self.layout.profile, judged.frame, judged.work, power.watts, high)
        return power.watts, low, high, self.evidence_codes(scope)

    def _at_full_speed(
        self, scope: str, watts: Floats, low: Floats, high: Floats
    ) -> tuple[Floats, Floats]:
        """The interval as predicted of a configuration that runs at full speed.

        Not of the one that was chosen for its prediction.
        """
        band = self.judged.prediction.bands.get(f"{scope}_power_watts")
        if band is None:
            return low, high
        same = self.judged.work.at_full_speed & (np.abs(band.value - watts) <= 1e-9 * watts)
        same &= self._widening == 1.0
        return np.where(same, band.low, low), np.where(same, band.high, high)

    def _energy(self) -> tuple[Triple | None, Triple | None]:
        scope, work = self.question.scope.value, self.judged.work
        power = self._power(scope)
        if power is None:
            return None, None
        gradients = self.gradients[scope]
        per_gb = 1e9 / work.served_bytes
        half = NORMAL_90 * energy_sd(self.layout, gradients, work, self._widening)
        value = gradients.watts * per_gb
        moved = work.elasticity > 0  # with held work, energy is power over a constant
        low = np.where(moved, value * np.exp(-half), power[1] * per_gb)
        high = np.where(moved, value * np.exp(half), power[2] * per_gb)
        energy = (value, low, high, power[3])
        latency = work.latencies.band("latency_mean_ns")
        scale = self.question.demand.useful_bytes * 1e-9 * 1e-9
        edp = (
            value * latency.value * scale,
            low * latency.low * scale,
            high * latency.high * scale,
            np.maximum(power[3], latency.evidence),
        )
        return energy, edp

    def _yearly(self, energy: Triple | None) -> dict[str, Triple | None]:
        """A year of the work in kWh, money and CO2; what is written for it is not unsure."""
        year = self.question.year
        if year is None or energy is None:
            return {}
        written = _written_per_byte(self.judged)
        value, low, high = (
            {one: year.cost(one, end * 1e-9, written) for one in year.rates} for end in energy[:3]
        )
        return {YEARLY[one]: (value[one], low[one], high[one], energy[3]) for one in year.rates}

    def row(self, index: int) -> Row:
        """One row of the answer."""
        judged = self.judged
        known: dict[str, Any] = {
            name: None if column is None else column[index]
            for name, column in self.estimates.items()
        }
        known |= {
            "configuration": configuration_of(judged.frame, index),
            "concurrency": self._concurrency(index),
            "busy_share": judged.work.busy[index],
            "host_bytes_written_per_second": judged.work.host_writes[index],
            "meets_sla": bool(self._feasible[index]),
        }
        return Row.model_validate(known)

    def _concurrency(self, index: int) -> int:
        """Requests of the application in flight that a row needs."""
        frame, useful = self.judged.frame, self.question.demand.useful_bytes
        merged = max(1.0, frame.request_bytes[index] / useful)
        return int(np.ceil(frame.queue_depth[index] * frame.jobs[index] * merged))

    def miss(self, index: int) -> Miss:
        """A row and what it misses."""
        return Miss(row=self.row(index), shortfalls=self.shortfalls(index))

    def shortfalls(self, index: int) -> list[Shortfall]:
        """What a row misses, preferred bounds among it."""
        judged, limits = self.judged, dict(self.question.sla.bounds())
        if self.question.demand.bytes_per_second is not None:
            limits[DEMAND] = self.question.demand.bytes_per_second
        return [
            Shortfall(
                bound=name,
                limit=limits[name],
                reached=float(judged.reached[index, column]),
                missed_by=abs(limits[name] - float(judged.reached[index, column])),
                missed_by_percent=100.0
                * abs(limits[name] - float(judged.reached[index, column]))
                / limits[name],
                preferred=bool(judged.soft[column]),
                unknown=bool(judged.unknown[column]),
            )
            for column, name in enumerate(judged.bounds)
            if judged.violations[index, column] > 0
        ]

    def sums(self, weights: Floats, today: int, others: Sequence[int]) -> Saved | None:
        """Weighted sums of the rows' energies (`uncertainty.sums`); None without power."""
        found = self.energies(today)
        if found is None:
            return None
        return sums(self.layout, found, weights, today, others, self._widening)

    def saving(self, today: int, other: int, *, same: bool) -> Saving | None:
        """What `other` saves against `today`; None where the scope's power is unknown."""
        found, year = self.energies(today), self.question.year
        if found is None or year is None:
            return None
        widening = float(self._widening[other])
        every = contrast(self.layout, found, today, [other], widening)
        rate, most = float(every.rate[0]), float(every.most_watts[0])
        factor = 0.0 if same else 1.0
        codes = self.evidence_codes(self.question.scope.value)[[today, other]]
        word = Evidence(EVIDENCE[int(codes.max())])
        written = _written_per_byte(self.judged)
        spared = factor * float(written[today] - written[other])
        percent = aim = _one(every.percent, 1.0, word, factor, (-np.inf, 100.0))
        # whether anything is saved does not depend on its unit
        ends = (0.0 if percent.low >= 0.0 else -np.inf, 0.0 if percent.high <= 0.0 else most)
        yearly = {
            YEARLY[one]: _one(
                every.watts,
                YEAR_SECONDS * costs.per_kwh / JOULES_A_KWH,
                word,
                factor,
                ends,
                YEAR_SECONDS * rate * costs.per_written_byte * spared,
            )
            for one, costs in year.rates.items()
        }
        value, sd = every.percent
        objective = self.question.objective
        if objective in (Objective.COST, Objective.CO2):
            aim = yearly[YEARLY[objective]]
            value, sd = priced(every, year.rates[objective], np.array([spared]))
        likely = 0.0 if same else probability_above_zero(float(value[0]), float(sd[0]))
        return Saving(
            watts=_one(every.watts, 1.0, word, factor, ends),
            joules_per_useful_gb=_one(
                every.joules_per_byte, 1e9, word, factor, (ends[0], ends[1] / rate)
            ),
            **yearly,
            percent=percent,
            percent_of=PERCENT_OF[self.question.scope],
            probability=likely,
            verdict=verdict(aim, likely, same=same, measured=self._is_measured(today, other)),
        )

    def _is_measured(self, *rows: int) -> bool:
        """Whether speeds and power of rows were measured, or lie between measured neighbours."""
        places = list(rows)
        power = self.evidence_codes(self.question.scope.value)[places]
        speed = self.judged.prediction["iops"].evidence[places]
        return bool((np.maximum(power, speed) <= INTERPOLATED).all())


PERCENT_OF = {
    Scope.DEVICE: "power of the drive at this work, idle power included",
    Scope.DEVICE_CPU: "power of drive + CPU at this work, idle power included",
    Scope.SYSTEM: "power of the whole system at this work, idle power included",
}
"""What a percentage is a share of."""


def _written_per_byte(judged: Judged) -> Floats:
    """Host bytes written for a useful byte, shape (n,)."""
    return np.asarray(judged.work.host_writes / judged.work.served_bytes)


def _one(
    found: tuple[Floats, Floats],
    scale: float,
    evidence: Evidence,
    factor: float,
    ends: tuple[float, float],
    sure: float = 0.0,
) -> Estimate:
    """A difference with its interval, which lies within `ends`.

    Both are in the unit of what was found. `sure` is added in the scaled one, and `factor` 0 says
    that nothing differs.
    """
    value, half = (float(part[0]) * scale * factor for part in found)
    half *= NORMAL_90
    low, high = max(value - half, ends[0] * scale), min(value + half, ends[1] * scale)
    return Estimate(value=value + sure, low=low + sure, high=high + sure, evidence=evidence)


def over(
    found: tuple[Floats, Floats], scale: float, evidence: Sequence[Evidence], most: Floats | float
) -> list[Estimate]:
    """Sums with their intervals, in which nothing saves more than all there is, `most`.

    The value of a part may exceed it, where another part costs as much.
    """
    value, half = found[0] * scale, NORMAL_90 * found[1] * scale
    high = np.maximum(value, np.minimum(value + half, most * scale))
    return [
        Estimate(value=one, low=low, high=up, evidence=word)
        for one, low, up, word in zip(value, value - half, high, evidence, strict=True)
    ]


def priced(found: Saved, costs: Rate, spared: Floats) -> tuple[Floats, Floats]:
    """Money or CO2 a second that is saved, wear included, and its sd.

    An error of the scale that both configurations share does not change which one takes less.

    Args:
        found: Energy that is saved.
        costs: What energy and wear cost.
        spared: Written bytes that are saved for a useful byte.
    """
    per_joule = costs.per_kwh / JOULES_A_KWH
    value = found.watts[0] * per_joule + found.rate * costs.per_written_byte * spared
    return value, found.most_watts * found.percent[1] / 100.0 * per_joule


def probability_above_zero(value: float, sd: float) -> float:
    """Probability that a normal quantity is above zero."""
    if sd == 0.0:
        return float(value > 0.0)
    return share_below(value / sd)


def verdict(saved: Estimate, likely: float, *, same: bool, measured: bool) -> Verdict:
    """What may be said of a saving (see `recommender.response.Verdict`)."""
    if same:
        return "no change"
    if saved.value < 0.0:
        return "costs more"
    if likely < LIKELY:
        return "measure first"
    return "proven" if measured else "expected"


def _spread(value: Floats, down: Floats, up: Floats, code: NDArray[np.intp]) -> Triple:
    """A value with an interval of log widths `down` and `up`."""
    return value, value * np.exp(-down), value * np.exp(up), code


def _estimates(triple: Triple | None) -> list[dict[str, Any] | None] | None:
    """A column as plain values, one a row, None where unknown."""
    if triple is None:
        return None
    value, low, high, code = triple
    columns = (value.tolist(), low.tolist(), high.tolist(), code.tolist())
    return [
        {"value": v, "low": lo, "high": hi, "evidence": EVIDENCE[word]} if v == v else None
        for v, lo, hi, word in zip(*columns, strict=True)
    ]
