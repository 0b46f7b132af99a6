"""What the outcomes of many questions say: broken SLAs, regret, caution, coverage of savings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from scipy.stats import binomtest

from iojoule.api.validating.judging import PICKERS, Outcome, Picker
from iojoule.api.validating.questions import POISSON
from iojoule.datasets.schema import Section

MOST_REGRET = 0.03
"""The mean regret that is asked for."""
MOST_DECLINED = 0.10
"""The share of possible questions that may be declined."""
HEADROOMS = (0.1, 0.25, 0.5)
"""Ends of the ranges of headroom that are told apart."""
SURE = 0.95
"""Of the intervals of shares."""


class Share(Section):
    """How often something happened; the interval is Clopper and Pearson's (95 %)."""

    count: int
    of: int
    share: float | None
    low: float
    high: float


class Broken(Section):
    """How often one bound was broken, against the share in which it may be."""

    bound: str
    share: Share
    stated: float


class Regret(Section):
    """True objective of picks over the best that keeps all, minus 1; cheaper counts as 0.

    Attributes:
        cases: Picks where something could keep demand and bounds.
        mean: Likewise median, 90 % quantile and worst.
        mean_kept: Over the picks that break nothing.
        mean_broken_as_twice: Where a pick that breaks a bound counts as costing twice the best.
    """

    cases: int
    mean: float
    median: float
    p90: float
    worst: float
    mean_kept: float
    mean_broken_as_twice: float


class Part(Section):
    """One kind of question: of an objective, of a way to arrive, or with bounds as near.

    Attributes:
        part: What they share, as "objective watts" or "arrivals poisson".
        asked: Questions of this kind.
        picked: Of them answered with a configuration.
        violated: Picks that break at least one bound.
        stated: Mean over the picks of the share in which their least sure bound may be broken.
        declined_possible: Nothing was picked although something keeps all.
        regret: None where nothing was picked.
    """

    part: str
    asked: int
    picked: int
    violated: Share
    stated: float
    declined_possible: Share
    regret: Regret | None


class Summary(Section):
    """One picker over many questions.

    Attributes:
        picker: `intervals` is the recommender, `measured` the same told of today's latency,
            `points` the same without margins.
        asked: Questions.
        picked: Of them answered with a configuration, today's among them.
        kept_today: Picks that keep today's configuration.
        declined_possible: Nothing was picked although something keeps all: the cost of caution.
        declined_reasons: Reason codes of those, and how often.
        picked_impossible: Something was picked although nothing keeps all.
        violated: Picks that break at least one bound (the demand is one).
        stated: Mean over the picks of the share in which their least sure bound may be broken.
        bounds: By bound, and the sum of all.
        regret: None where nothing was picked.
        parts: The same by objective and by the way in which demands arrive.
        changes_that_save: Changes from a configuration that was shown to keep all, and that truly
            take less of the objective.
        savings_covered: True savings inside their 90 % interval, of picks that change anything.
        false_savings: Savings called proven or expected that are none.
        saving_width_percentage_points: Median width of the interval.
    """

    picker: Picker
    asked: int
    picked: int
    kept_today: int
    declined_possible: Share
    declined_reasons: dict[str, int]
    picked_impossible: Share
    violated: Share
    stated: float
    bounds: list[Broken]
    regret: Regret | None
    parts: list[Part]
    changes_that_save: Share
    savings_covered: Share
    false_savings: Share
    saving_width_percentage_points: float | None

    @property
    def keeps_the_sla(self) -> bool:
        """Whether no more picks break the SLA than stated."""
        return (self.violated.share or 0.0) <= self.stated

    @property
    def regret_is_small(self) -> bool:
        """Whether the mean regret is at most `MOST_REGRET`."""
        return self.regret is None or self.regret.mean <= MOST_REGRET

    @property
    def declines_little(self) -> bool:
        """Whether at most `MOST_DECLINED` of the possible questions are declined."""
        return (self.declined_possible.share or 0.0) <= MOST_DECLINED


def summaries(outcomes: Sequence[Outcome]) -> list[Summary]:
    """One for each picker."""
    return [
        _summary(picker, [one for one in outcomes if one.picker == picker]) for picker in PICKERS
    ]


def _summary(picker: Picker, outcomes: list[Outcome]) -> Summary:
    picks = [one for one in outcomes if one.picked]
    possible = [one for one in outcomes if one.possible]
    changes = [one for one in picks if one.saving_covered is not None]
    widths = [one.saving_width for one in changes if one.saving_width is not None]
    claims = [one for one in changes if one.saving_proven]
    return Summary(
        picker=picker,
        asked=len(outcomes),
        picked=len(picks),
        kept_today=sum(one.action == "no change" for one in picks),
        declined_possible=share(not one.picked for one in possible),
        declined_reasons=dict(Counter(str(one.reason_code) for one in possible if not one.picked)),
        picked_impossible=share(one.picked for one in outcomes if not one.possible),
        violated=share(bool(one.broken) for one in picks),
        stated=_mean([max(one.stated.values()) for one in picks]),
        bounds=_bounds(picks),
        regret=_regret([one for one in picks if one.regret is not None]),
        parts=[
            *_parts("objective", outcomes, lambda one: one.objective),
            *_parts("arrivals", outcomes, lambda one: one.arrivals),
            *_parts("headroom", possible, _headroom),
            *_parts(
                "poisson, headroom", [one for one in possible if one.arrivals == POISSON], _headroom
            ),
        ],
        changes_that_save=share(bool(one.cheaper) for one in picks if one.optional),
        savings_covered=share(bool(one.saving_covered) for one in changes),
        false_savings=share((one.saving_percent or 0.0) <= 0.0 for one in claims),
        saving_width_percentage_points=float(np.median(widths)) if widths else None,
    )


def _headroom(one: Outcome) -> str:
    """How far the bounds leave the best candidate, in words that sort."""
    place = int(np.searchsorted(HEADROOMS, one.headroom, side="right"))
    low = 0.0 if place == 0 else HEADROOMS[place - 1]
    if place == len(HEADROOMS):
        return f"{low:.0%} and more"
    return f"{low:.0%} to {HEADROOMS[place]:.0%}".rjust(12)


def _parts(kind: str, outcomes: list[Outcome], key: Callable[[Outcome], str]) -> list[Part]:
    found = []
    for name in sorted({key(one) for one in outcomes}):
        own = [one for one in outcomes if key(one) == name]
        picks = [one for one in own if one.picked]
        found.append(
            Part(
                part=f"{kind} {name.strip()}",
                asked=len(own),
                picked=len(picks),
                violated=share(bool(one.broken) for one in picks),
                stated=_mean([max(one.stated.values()) for one in picks]),
                declined_possible=share(not one.picked for one in own if one.possible),
                regret=_regret([one for one in picks if one.regret is not None]),
            )
        )
    return found


def _bounds(picks: list[Outcome]) -> list[Broken]:
    names = list(dict.fromkeys(name for one in picks for name in one.stated))
    found = []
    for name in sorted(names):
        own = [one for one in picks if name in one.stated]
        found.append(
            Broken(
                bound=name,
                share=share(name in one.broken for one in own),
                stated=_mean([one.stated[name] for one in own]),
            )
        )
    every = [(name in one.broken, stated) for one in picks for name, stated in one.stated.items()]
    total = share(broken for broken, _ in every)
    found.append(Broken(bound="all", share=total, stated=_mean([stated for _, stated in every])))
    return found


def _regret(picks: list[Outcome]) -> Regret | None:
    if not picks:
        return None
    values = np.maximum([one.regret or 0.0 for one in picks], 0.0)
    broken = np.array([bool(one.broken) for one in picks])
    return Regret(
        cases=len(picks),
        mean=float(values.mean()),
        median=float(np.median(values)),
        p90=float(np.quantile(values, 0.9)),
        worst=float(values.max()),
        mean_kept=_mean(list(values[~broken])),
        mean_broken_as_twice=float(np.where(broken, 1.0, values).mean()),
    )


def share(happened: Iterable[bool]) -> Share:
    """How often it did, with its interval; 0 of 0 says nothing: 0 to 1."""
    every = list(happened)
    count, of = sum(every), len(every)
    if not of:
        return Share(count=0, of=0, share=None, low=0.0, high=1.0)
    within = binomtest(count, of).proportion_ci(SURE, method="exact")
    return Share(
        count=count, of=of, share=count / of, low=float(within.low), high=float(within.high)
    )


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else 0.0
