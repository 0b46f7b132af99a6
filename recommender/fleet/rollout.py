"""How to get from one plan to the next without exceeding a limit on the way.

Changes go out in stages that take the same share of every group, so that no domain is the first
to be changed as a whole and a fault of the change shows in few drives of each (Xie et al.,
HotStorage'24, section 4.1). Within a stage the drives whose power falls go first: the power of a
domain then never exceeds the larger of its values before and after.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from iojoule.datasets.errors import InputError
from iojoule.datasets.schema import Section
from iojoule.recommender.fleet.plan import Assignment, GroupPlan, Plan

SHARES = (0.01, 0.1, 0.5, 1.0)
"""Share of the changes that is done after each stage."""


class Move(Section):
    """Drives of a group that change from one assignment to another.

    Attributes:
        peak_watts_change: Of one drive; negative where its power falls.
    """

    group: str
    domain: str
    drives: int
    before: Assignment
    after: Assignment
    peak_watts_change: float


class Stage(Section):
    """Moves that go out together, falling power first.

    Attributes:
        share: Of all changes that is done after this stage.
        peak_watts: Most that each domain's drives draw while it runs, all peaking together; by
            domain of the drives, bases and domains above left out.
    """

    share: float
    moves: list[Move]
    peak_watts: dict[str, float]


def rollout(before: Plan, after: Plan, shares: Sequence[float] = SHARES) -> list[Stage]:
    """Stages from one plan to another of the same fleet.

    Args:
        before: What runs.
        after: What shall run.
        shares: Rising shares of the changes, the last one 1.

    Raises:
        InputError: The plans are of different drives, or the shares do not rise to 1.
    """
    if list(shares) != sorted(set(shares)) or not shares or shares[0] <= 0 or shares[-1] != 1.0:
        raise InputError(f"stages: shares must rise from above 0 to 1, not {list(shares)}")
    now = {group.name: group for group in before.groups}
    every: list[Move] = []
    for group in after.groups:
        old = now.pop(group.name, None)
        if old is None or (old.count, old.domain) != (group.count, group.domain):
            raise InputError(
                f"drives {group.name}: the plans differ in how many there are or where; plan the "
                "fleet that runs, then the one that shall run"
            )
        every += _moves(old, group)
    if now:
        raise InputError(f"drives {', '.join(sorted(now))}: only the first plan has them")
    every.sort(key=lambda move: move.peak_watts_change)
    drawn = dict.fromkeys((group.domain for group in before.groups), 0.0)
    for group in before.groups:
        drawn[group.domain] += sum(a.drives * a.peak_watts for a in group.assignments)
    stages: list[Stage] = []
    done = [0] * len(every)
    for share in shares:
        moves = []
        most = dict(drawn)
        for place, move in enumerate(every):
            drives = ceil(share * move.drives) - done[place]
            if drives <= 0:
                continue
            done[place] += drives
            moves.append(move.model_copy(update={"drives": drives}))
            drawn[move.domain] += drives * move.peak_watts_change
            most[move.domain] = max(most[move.domain], drawn[move.domain])
        if moves:
            stages.append(Stage(share=share, moves=moves, peak_watts=most))
    if stages:  # few changes are done before the shares are
        stages[-1] = stages[-1].model_copy(update={"share": 1.0})
    return stages


@dataclass
class _Open:
    """Drives that still need a partner."""

    assignment: Assignment
    drives: int


def _moves(before: GroupPlan, after: GroupPlan) -> list[Move]:
    """Pair what runs too often with what runs too seldom, the least change of power first."""
    have = _counted(before)
    want = _counted(after)
    surplus, missing = _beyond(have, want), _beyond(want, have)
    found = []
    while surplus and missing:
        here, there = surplus[0], missing[0]
        drives = min(here.drives, there.drives)
        found.append(
            Move(
                group=after.name, domain=after.domain, drives=drives,
                before=here.assignment, after=there.assignment,
                peak_watts_change=there.assignment.peak_watts - here.assignment.peak_watts,
            )
        )  # fmt: skip
        here.drives -= drives
        there.drives -= drives
        surplus = [o for o in surplus if o.drives]
        missing = [o for o in missing if o.drives]
    return found


def _counted(group: GroupPlan) -> dict[tuple[object, ...], _Open]:
    """Drives by what they are set to; the load of a drive is not a setting."""
    found: dict[tuple[object, ...], _Open] = {}
    for one in group.assignments:
        key = (one.doing, one.workload_class, one.part, one.configuration, one.power_state)
        found.setdefault(key, _Open(one, 0)).drives += one.drives
    return found


def _beyond(
    have: dict[tuple[object, ...], _Open], want: dict[tuple[object, ...], _Open]
) -> list[_Open]:
    """What there is more of than wanted, by rising power."""
    found = [
        _Open(one.assignment, one.drives - (want[key].drives if key in want else 0))
        for key, one in have.items()
    ]
    more = (one for one in found if one.drives > 0)
    return sorted(more, key=lambda one: one.assignment.peak_watts)
