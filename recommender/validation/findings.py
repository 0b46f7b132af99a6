"""Every finding of the frozen list beside what the models say, each judged without itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from iojoule.datasets.catalogue import Drive, load_catalogue
from iojoule.datasets.errors import InputError, UnknownDeviceError
from iojoule.datasets.findings import Asked, Finding, Form, OutOfScope, Paper
from iojoule.datasets.profile import DeviceProfile
from iojoule.model.evaluate.bands import EVIDENCE
from iojoule.model.fit.build import Rebuilder
from iojoule.model.recipe import load_recipe, shipped_recipes
from iojoule.recommender.validation.finding_estimates import (
    ARGUMENTS,
    KNOWN,
    UNANSWERED,
    Estimate,
    Estimator,
    Spread,
    UnansweredError,
    Verdict,
    asked_quantity,
    difference,
    jobs_counted,
    judge,
    judge_order,
    ratio,
    standing,
)
from iojoule.recommender.validation.finding_facts import Facts, by_author, expected_of

__all__ = [
    "DISPUTED",
    "Profiles",
    "Row",
    "Share",
    "Spread",
    "Verdict",
    "expected_of",
    "findings_table",
    "judge",
    "judge_order",
    "shares",
]


FromCatalogue = Callable[[str, Drive | None, frozenset[str]], DeviceProfile | None]
"""Builds a profile of a drive that nobody measured, from its name, what the catalogue says of it,
and the findings that must not help."""


def nothing_known(
    device: str, drive: Drive | None, without: frozenset[str]
) -> DeviceProfile | None:
    """No profile: what to say of a drive with neither measurements nor a learned prior."""
    return None


class Profiles:
    """Answers which profile judges a finding.

    Args:
        folder: The public measurements that recipes name.
        from_catalogue: What to ask for a drive without a recipe.
    """

    def __init__(self, folder: Path, from_catalogue: FromCatalogue = nothing_known) -> None:
        self._folder = folder
        self._from_catalogue = from_catalogue
        self._recipes = set(shipped_recipes())
        self._rebuilders: dict[str, Rebuilder] = {}
        self._others: dict[tuple[str, frozenset[str]], DeviceProfile | None] = {}

    def profile_for(self, device: str, without: Collection[str] = ()) -> DeviceProfile | None:
        """The profile of a drive without these findings; None where nothing is known of it.

        Raises:
            InputError: The measurements of its recipe are not there.
        """
        gone = frozenset(without)
        if device in self._recipes:
            if device not in self._rebuilders:
                self._rebuilders[device] = Rebuilder(load_recipe(device), self._folder)
            return self._rebuilders[device].profile(gone)
        key = (device, gone)
        if key not in self._others:
            drive = drive_without(device, gone)
            self._others[key] = self._from_catalogue(device, drive, gone)
        return self._others[key]

    def left_out(self, device: str, without: Collection[str]) -> frozenset[str]:
        """Those of the findings that the drive's recipe rests on."""
        rebuilder = self._rebuilders.get(device)
        return rebuilder.used(without) if rebuilder is not None else frozenset()


def drive_without(device: str, facts: Collection[str]) -> Drive | None:
    """The catalogue's entry less the facts whose source names one of the findings."""
    try:
        drive = load_catalogue().get(device)
    except UnknownDeviceError:
        return None
    kept = tuple(one for one in drive.facts if not _rests_on(one.source, facts))
    return drive.model_copy(update={"facts": kept})


def _rests_on(source: str, facts: Collection[str]) -> bool:
    """Whether a fact is one of the findings, or may be: the same paper, and no finding named."""
    if re.search(r"\d{3}-\d{3}", source):
        return any(fact in source for fact in facts)
    return by_author(source, facts)


_WATTS = "CPU watts of libaio by RAPL alone, at a lower clock; no wall meter saw them"
_CLOCK = "a lower CPU clock with libaio, which no engine sets: the likelier cause of its watts"
_RANK = "ranks libaio by joules that rest on its CPU watts by RAPL alone"
_BESIDE = "joules beside those of libaio, which rest on its CPU watts by RAPL alone"

DISPUTED: Mapping[str, str] = {
    "000-171": _RANK,
    "000-172": _RANK,
    "000-173": _BESIDE,
    "000-174": _BESIDE,
    "000-176": _BESIDE,
    "000-178": _BESIDE,
    "000-179": _WATTS,
    "000-180": _BESIDE,
    "000-181": _BESIDE,
    "000-182": _BESIDE,
    "000-183": _BESIDE,
    "000-185": _CLOCK,
}
"""Finding -> why it does not count."""


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
        "fact_id": row.fact_id,
        "paper": paper,
        "section": row.section,
        "class_": row.class_,
    }
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


DISPUTED_GROUP = "disputed, not counted"
"""Group of the rows of `findings.disputed`."""


class Share(BaseModel):
    """Counts of one group of rows; percentages are of `rows`, answered or not."""

    model_config = ConfigDict(frozen=True)

    group: str
    rows: int
    answered: int
    direction_right: int
    magnitude_right: int
    baseline_direction_right: int
    baseline_magnitude_right: int

    @property
    def direction_percent(self) -> float:
        """Share of right directions."""
        return 100.0 * self.direction_right / max(self.rows, 1)

    @property
    def magnitude_percent(self) -> float:
        """Share of magnitudes within the interval."""
        return 100.0 * self.magnitude_right / max(self.rows, 1)


def shares(rows: Iterable[Row]) -> list[Share]:
    """All rows that count, then by paper, by class and by evidence; last what is disputed."""
    every = list(asked_rows(rows))
    asked = list(counted_rows(every))
    kinds: Sequence[tuple[str, Callable[[Row], str]]] = (
        ("paper", lambda row: row.paper),
        ("class", lambda row: row.class_),
        ("evidence", lambda row: row.evidence or "not answered"),
    )
    found = [_share("all", asked)]
    for kind, key in kinds:
        for name in sorted({key(row) for row in asked}):
            own = [row for row in asked if key(row) == name]
            found += [_share(f"{kind} {name}", own)]
    found.append(_share(DISPUTED_GROUP, [row for row in every if row.disputed]))
    return found


def _share(group: str, rows: Sequence[Row]) -> Share:
    return Share(
        group=group,
        rows=len(rows),
        answered=sum(row.answered for row in rows),
        direction_right=sum(row.direction_right for row in rows),
        magnitude_right=sum(row.magnitude_right for row in rows),
        baseline_direction_right=sum(row.baseline_direction_right for row in rows),
        baseline_magnitude_right=sum(row.baseline_magnitude_right for row in rows),
    )
