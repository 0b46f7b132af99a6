"""From judged candidates to the rows, savings and misses of an answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.vocabulary import Evidence
from iojoule.model.evidence import EVIDENCE
from iojoule.model.predictor import NORMAL_90
from iojoule.recommender.answer import Miss, Row, Saving, Shortfall, Verdict
from iojoule.recommender.equal_work import most_device_watts, watts_of
from iojoule.recommender.estimate import Estimate
from iojoule.recommender.factors import JOULES_A_KWH, YEARLY
from iojoule.recommender.objective import Objective
from iojoule.recommender.screen import DEMAND, Judged, Question, rests
from iojoule.recommender.selection import rivals, widening
from iojoule.recommender.sensitivity import (
    Contrast,
    Gradients,
    Layout,
    Sums,
    all_gradients,
    contrast,
    energy_sd,
    sums,
)
from iojoule.recommender.space import configuration_of

Floats = NDArray[np.float64]
Triple = tuple[Floats, Floats, Floats, NDArray[np.intp]]

CPU_EVIDENCE = EVIDENCE.index(Evidence.PUBLISHED.value)


class Details:
    """Everything an answer says about a few judged rows.

    Args:
        layout: The common parameters of the profile's power laws.
        question: What was asked.
        judged: The rows.
        chosen: The row that is recommended, and the objectives of what it was chosen from: its
            intervals know of the choice (`recommender.selection`).
    """

    def __init__(
        self,
        layout: Layout,
        question: Question,
        judged: Judged,
        chosen: tuple[int, Floats] | None = None,
    ) -> None:
        self.layout = layout
        self.question = question
        self.judged = judged
        self._feasible = judged.feasible
        self.gradients: list[dict[str, Gradients]] = [
            all_gradients(
                layout, judged.frame, judged.prediction, judged.work,
                watts_of(layout.profile, judged.frame, judged.prediction, judged.work, rest), rest,
            )
            for rest in rests(question.demand)
        ]  # fmt: skip
        if chosen is not None:
            self._know_of_the_choice(*chosen)
        self.estimates = {name: _estimates(column) for name, column in self._columns().items()}

    def _know_of_the_choice(self, chosen: int, objectives: Floats) -> None:
        """Widen what the chosen row errs by itself, in every scope."""
        scope = self.question.scope.value
        place = int(np.argmin(np.abs(objectives - self.judged.costs[chosen, 0])))
        for every in self.gradients:
            if scope not in every:
                continue
            power = every[scope]
            own = np.hypot(power.own_speed, power.own_fit)[chosen] / power.watts[chosen]
            factor = widening(rivals(objectives, own * objectives, place))
            for part in every.values():
                part.own_speed[chosen] *= factor
                part.own_fit[chosen] *= factor

    def _columns(self) -> dict[str, Triple | None]:
        judged, prediction = self.judged, self.judged.prediction
        columns: dict[str, Triple | None] = {}
        for name in ("mean", "p50", "p99", "p999"):
            band = prediction[f"latency_{name}_ns"]
            columns[f"latency_{name}_ns"] = (band.value, band.low, band.high, band.evidence)
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
            ("device", "device_power_watts"), ("cpu", "cpu_power_watts"),
            ("device_cpu", "device_cpu_power_watts"), ("system", "system_power_watts"),
        ):  # fmt: skip
            columns[name] = self._power(scope)
        columns["joules_per_useful_gb"], columns["edp_joule_seconds"] = self._energy()
        columns |= self._yearly(columns["joules_per_useful_gb"])
        return columns

    def evidence_codes(self, scope: str) -> NDArray[np.intp]:
        """Weakest evidence of a scope's power, by row."""
        prediction = self.judged.prediction
        code = np.full(len(self.judged.frame), CPU_EVIDENCE, dtype=np.intp)
        if scope == "cpu":
            return np.maximum(code, prediction["cpu_power_watts"].evidence)
        device = prediction["device_power_watts"].evidence
        return device if scope == "device" else np.maximum(code, device)

    def _power(self, scope: str) -> Triple | None:
        """Value by the first kind of arrival, interval over both where one is assumed."""
        low = high = value = None
        for every in self.gradients:
            if scope not in every:
                return None
            power = every[scope]
            half = NORMAL_90 * power.sd(self.layout)
            value = power.watts if value is None else value
            low = power.watts - half if low is None else np.minimum(low, power.watts - half)
            high = power.watts + half if high is None else np.maximum(high, power.watts + half)
        if value is None or low is None or high is None:
            return None
        if scope == "device":
            most = most_device_watts(self.layout.profile, self.judged.frame, self.judged.work)
            high = high if most is None else np.minimum(high, np.maximum(most, value))
        return value, np.maximum(low, 0.0), high, self.evidence_codes(scope)

    def _energy(self) -> tuple[Triple | None, Triple | None]:
        scope, work = self.question.scope.value, self.judged.work
        power = self._power(scope)
        if power is None:
            return None, None
        gradients = self.gradients[0][scope]
        per_gb = 1e9 / work.served_bytes
        half = NORMAL_90 * energy_sd(self.layout, gradients, work)
        value = gradients.watts * per_gb
        moved = work.elasticity > 0  # with held work, energy is power over a constant
        low = np.where(moved, value * np.exp(-half), power[1] * per_gb)
        high = np.where(moved, value * np.exp(half), power[2] * per_gb)
        energy = (value, low, high, power[3])
        latency = self.judged.prediction["latency_mean_ns"]
        scale = self.question.demand.useful_bytes * 1e-9 * latency.value * 1e-9
        log_half = np.hypot(np.log(high / value), np.log(latency.high / latency.value))
        down = np.hypot(
            np.log(value / np.maximum(low, 1e-3 * value)), np.log(latency.value / latency.low)
        )
        edp = value * scale
        code = np.maximum(power[3], latency.evidence)
        return energy, (edp, edp * np.exp(-down), edp * np.exp(log_half), code)

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
            "busy_share": judged.work.busy[index],
            "host_bytes_written_per_second": judged.work.host_writes[index],
            "meets_sla": bool(self._feasible[index]),
        }
        return Row.model_validate(known)

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
                bound=name, limit=limits[name], reached=float(judged.reached[index, column]),
                missed_by=abs(limits[name] - float(judged.reached[index, column])),
                missed_by_percent=100.0
                * abs(limits[name] - float(judged.reached[index, column])) / limits[name],
                preferred=bool(judged.soft[column]),
            )
            for column, name in enumerate(judged.bounds)
            if judged.violations[index, column] > 0
        ]  # fmt: skip

    def sums(self, weights: Floats, base: int) -> list[Sums] | None:
        """Weighted sums of the rows' energies, for each kind of arrival; None without power."""
        scope = self.question.scope.value
        if any(scope not in every for every in self.gradients):
            return None
        return [
            sums(self.layout, every[scope], self.judged.work, weights, base)
            for every in self.gradients
        ]

    def saving(self, today: int, other: int, *, same: bool) -> Saving | None:
        """What `other` saves against `today`; None where the scope's power is unknown."""
        scope, work = self.question.scope.value, self.judged.work
        if any(scope not in every for every in self.gradients):
            return None
        found = [
            contrast(self.layout, every[scope], work, (today, other), same=same)
            for every in self.gradients
        ]
        codes = self.evidence_codes(scope)[[today, other]]
        word = Evidence(EVIDENCE[int(codes.max())])
        year = self.question.year
        assert year is not None  # whoever asks for a saving says what a year's work is
        written = _written_per_byte(self.judged)
        spared = 0.0 if same else float(written[today] - written[other])
        yearly = {
            YEARLY[one]: _over(
                found, "joules_per_byte", year.useful_bytes * rate.per_kwh / JOULES_A_KWH, word,
                year.useful_bytes * rate.per_written_byte * spared,
            )
            for one, rate in year.rates.items()
        }  # fmt: skip
        percent = _over(found, "percent", 1.0, word)
        aim, what = percent, "energy"
        if self.question.objective in (Objective.COST, Objective.CO2):
            aim, what = yearly[YEARLY[self.question.objective]], str(self.question.objective.value)
        verdict, reason = _verdict(aim, same=same, what=what)
        return Saving(
            watts=_over(found, "watts", 1.0, word),
            joules_per_useful_gb=_over(found, "joules_per_byte", 1e9, word),
            **yearly, percent=percent, verdict=verdict, reason=reason,
        )  # fmt: skip


def _written_per_byte(judged: Judged) -> Floats:
    """Host bytes written for a useful byte, shape (n,)."""
    return np.asarray(judged.work.host_writes / judged.work.served_bytes)


def _over(
    found: list[Contrast], name: str, scale: float, evidence: Evidence, sure: float = 0.0
) -> Estimate:
    """Value of the first contrast, interval over all of them; `sure` is added to each."""
    pairs = [getattr(one, name) for one in found]
    return Estimate(
        value=pairs[0][0] * scale + sure,
        low=min(value - NORMAL_90 * sd for value, sd in pairs) * scale + sure,
        high=max(value + NORMAL_90 * sd for value, sd in pairs) * scale + sure,
        evidence=evidence,
    )


def over(
    found: Sequence[Sums], name: str, scale: float, evidence: Sequence[Evidence]
) -> list[Estimate]:
    """Sums for the first kind of arrival, with intervals over all of them."""
    ends = [(getattr(one, name), NORMAL_90 * getattr(one, f"{name}_sd")) for one in found]
    value = ends[0][0] * scale
    low = np.min([middle - half for middle, half in ends], axis=0) * scale
    high = np.max([middle + half for middle, half in ends], axis=0) * scale
    return [
        Estimate(value=value[place], low=low[place], high=high[place], evidence=word)
        for place, word in enumerate(evidence)
    ]


def _verdict(saved: Estimate, *, same: bool, what: str) -> tuple[Verdict, str]:
    if same:
        return "stay", "today's configuration is the best of the candidates: nothing to save"
    if saved.high < 0:
        return "costs more", f"it takes more {what} than today's configuration, to keep the bounds"
    if saved.low <= 0:
        return "not proven", "the interval includes no saving at all: measure this first"
    if saved.high - saved.low <= saved.value:
        return "proven", "the interval excludes zero by far: half of it is at most half the saving"
    return "not proven", "half the interval is wider than half the saving: measure this first"


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
