"""Every finding of the frozen list beside what the models say, each judged without itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from pydantic import BaseModel, ConfigDict

from iojoule.datasets.errors import InputError
from iojoule.datasets.findings import Asked, Finding, Form, OutOfScope, Paper
from iojoule.datasets.profile import DeviceProfile
from iojoule.model.evaluate.bands import EVIDENCE
from iojoule.recommender.findings.disputed import DISPUTED
from iojoule.recommender.findings.estimate import Estimate, difference, ratio
from iojoule.recommender.findings.estimator import ARGUMENTS, KNOWN, Estimator, UnansweredError
from iojoule.recommender.findings.facts import Facts
from iojoule.recommender.findings.judge import UNANSWERED, Spread, Verdict, judge, judge_order
from iojoule.recommender.findings.profiles import Profiles, drive_without
from iojoule.recommender.findings.said import asked_quantity, jobs_counted, standing

Point = dict[str, Any]

BASELINE_HALF = 0.05
"""Half width of the baseline's interval: "no effect" within a twentieth."""


class Row(BaseModel):
    """One finding and its verdict.

    Attributes:
        published: The figure, in `unit`; None for a ranking and for what is out of scope.
        direction_right: Also False where nothing was answered.
        left_out: Findings without which the profile was built for this row.
        missing: What a model would have to know to answer; empty where it answered.
        reason: Why a row is out of scope.
        disputed: Why a row is asked and shown, but not counted; empty where it counts.
    """

    model_config = ConfigDict(frozen=True)

    fact_id: str
    paper: str
    section: str
    class_: str
    device: str = ""
    quantity: str = ""
    judged: str = ""
    direction: str = ""
    published: float | None = None
    published_high: float | None = None
    unit: str = ""
    predicted: float | None = None
    low: float | None = None
    high: float | None = None
    asked: bool
    answered: bool = False
    direction_right: bool = False
    magnitude_right: bool = False
    baseline_direction_right: bool = False
    baseline_magnitude_right: bool = False
    evidence: str = ""
    left_out: str = ""
    missing: str = ""
    reason: str = ""
    disputed: str = ""


def findings_table(papers: Iterable[Paper], profiles: Profiles) -> list[Row]:
    """Judge every row of the list; none is left out.

    Raises:
        InputError: The measurements that profiles are built from are not there.
    """
    rows = [(paper.paper, row) for paper in papers for row in paper.findings]
    bundles: dict[str, set[str]] = {}
    for _, row in rows:
        if isinstance(row, Asked) and row.bundle:
            bundles.setdefault(row.bundle, set()).add(row.fact_id)
    benches: dict[tuple[str, frozenset[str]], Facts] = {}
    return [_row(paper, row, bundles, profiles, benches) for paper, row in rows]


def _row(
    paper: str,
    row: Finding,
    bundles: dict[str, set[str]],
    profiles: Profiles,
    benches: dict[tuple[str, frozenset[str]], Facts],
) -> Row:
    common: dict[str, Any] = {
        "fact_id": row.fact_id, "paper": paper, "section": row.section, "class_": row.class_,
    }  # fmt: skip
    if isinstance(row, OutOfScope):
        return Row(**common, asked=False, reason=row.reason)
    gone = frozenset({row.fact_id, *bundles.get(row.bundle or "", ())})
    question = _Question(row, gone, profiles, benches)
    verdict, evidence, missing = question.answer()
    baseline = question.baseline()
    found = verdict.predicted
    left_out = {one for device in row.device for one in profiles.left_out(device, gone)}
    return Row(
        **common,
        device=", ".join(row.device),
        quantity=row.quantity if row.form is not Form.ORDER else f"order of {row.quantity}",
        judged=row.judged.value,
        direction=row.direction.value,
        published=row.published,
        published_high=row.published_high,
        unit=row.unit,
        predicted=found.value if found else None,
        low=found.low if found else None,
        high=found.high if found else None,
        asked=True,
        answered=not missing,
        direction_right=verdict.direction,
        magnitude_right=verdict.magnitude,
        baseline_direction_right=baseline.direction,
        baseline_magnitude_right=baseline.magnitude,
        evidence=evidence,
        left_out=", ".join(sorted(left_out)),
        missing=missing,
        disputed=DISPUTED.get(row.fact_id, ""),
    )


class _Question:
    """One asked finding and the profiles that answer it."""

    def __init__(
        self,
        row: Asked,
        gone: frozenset[str],
        profiles: Profiles,
        benches: dict[tuple[str, frozenset[str]], Facts],
    ) -> None:
        self.row, self.gone, self.profiles, self._benches = row, gone, profiles, benches

    def answer(self) -> tuple[Verdict, str, str]:
        """Verdict, evidence, and what is missing."""
        row = self.row
        try:
            if row.form is Form.ORDER:
                ranked = [[self._one(p, row.quantity) for p in one] for one in row.rankings()]
                every = [one for group in ranked for one in group]
                values = [[one.value for one in group] for group in ranked]
                return judge_order(row, values), _evidence(every), ""
            if row.form is Form.VALUE:
                every = self._values()
                found = [one.spread() for one in every]
            else:
                pairs = [self._pair(a, b) for a, b in row.pairs()]
                every = [one for pair in pairs for one in pair]
                combine = difference if row.form is Form.DIFFERENCE else ratio
                found = [combine(a, b) for a, b in pairs]
        except UnansweredError as error:
            return UNANSWERED, "", error.missing
        except InputError as error:
            return UNANSWERED, "", error.message
        scaled = [_scaled(one, row.multiply_by) for one in found]
        return judge(row, scaled), _evidence(every), ""

    def baseline(self) -> Verdict:
        """What "no effect" would be worth."""
        row = self.row
        if row.form is Form.ORDER:
            return UNANSWERED
        if row.form is Form.DIFFERENCE:
            return judge(row, [Spread(0.0, 0.0, 0.0)])
        try:
            value = self._default_level
        except (UnansweredError, InputError):
            return UNANSWERED
        half = BASELINE_HALF * value
        return judge(row, [Spread(value, value - half, value + half)])

    @cached_property
    def _default_level(self) -> float:
        """1 for a ratio of settings; for a level the figure at the default configuration."""
        row = self.row
        if row.form is Form.RATIO and row.against_quantity is None:
            return 1.0
        point = {name: v for name, v in row.settings()[0].items() if name in ARGUMENTS}
        value = self._one(point, row.quantity).value
        if row.against_quantity is None:
            return value * row.multiply_by
        return value / self._one(point, row.against_quantity).value

    def _values(self) -> list[Estimate]:
        points, quantity = self.row.settings(), asked_quantity(self.row.quantity, self.row.host)
        if quantity in KNOWN:
            return [self._one(point, quantity) for point in points]
        by_device: dict[str, list[Point]] = {}
        for point in points:
            by_device.setdefault(str(point["device"]), []).append(point)
        return [self._bench(d).estimate(quantity, own) for d, own in by_device.items()]

    def _one(self, point: Point, quantity: str) -> Estimate:
        bench = self._bench(str(point["device"]))
        if quantity in KNOWN:
            found = bench.estimator.estimates([point], [quantity], self.row.scope)[0]
            return self._counted(found, quantity, point)
        return bench.estimate(quantity, [point])

    def _counted(self, one: Estimate, quantity: str, point: Point) -> Estimate:
        """As the paper counts it."""
        times = jobs_counted(self.row.fact_id, self.row.section, quantity, point)
        return replace(one, value=one.value * times)

    def _pair(self, a: Point, b: Point) -> tuple[Estimate, Estimate]:
        first, second = self.row.quantity, self.row.against_quantity or self.row.quantity
        if a["device"] == b["device"] and first in KNOWN and second in KNOWN:
            bench = self._bench(str(a["device"]))
            one, other = bench.estimator.estimates([a, b], [first, second], self.row.scope)
            return self._counted(one, first, a), self._counted(other, second, b)
        return self._one(a, first), self._one(b, second)

    def _bench(self, device: str) -> Facts:
        key = (device, self.gone)
        if key not in self._benches:
            profile: DeviceProfile | None = self.profiles.profile_for(device, self.gone)
            if profile is None:
                raise UnansweredError(f"a profile of {device}")
            self._benches[key] = Facts(
                Estimator(profile, standing(self.row.fact_id, self.row.section), self.gone),
                drive_without(device, self.gone),
                self.gone,
            )
        return self._benches[key]


def _scaled(one: Spread, factor: float) -> Spread:
    return Spread(one.value * factor, one.low * factor, one.high * factor)


def _evidence(every: Sequence[Estimate]) -> str:
    return EVIDENCE[max(one.evidence for one in every)]


def asked_rows(rows: Iterable[Row]) -> Iterator[Row]:
    """The rows that are asked, disputed ones among them."""
    return (row for row in rows if row.asked)


def counted_rows(rows: Iterable[Row]) -> Iterator[Row]:
    """The rows that count."""
    return (row for row in asked_rows(rows) if not row.disputed)
