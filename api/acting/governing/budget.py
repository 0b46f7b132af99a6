"""Where the budget of watts comes from: a number, or the fleet planner of a service."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from iojoule.datasets.errors import InputError, IojouleError
from iojoule.recommender.fleet.document import Fleet, load_fleet
from iojoule.recommender.fleet.plan import Plan


class Budget(Protocol):
    """What all governed drives of this host may draw."""

    def watts(self) -> float | None:
        """Now; None for any."""


@dataclass(frozen=True)
class FixedBudget:
    """A number of watts, or None for any."""

    value: float | None

    def watts(self) -> float | None:
        """Always the same."""
        return self.value


@dataclass(frozen=True)
class FleetShare:
    """Which part of a fleet this host is.

    Attributes:
        file: The fleet file; read again at every request, so that a new budget in it counts.
        group: Its drive group in which the drives of this host are.
        drives: How many of them this host has.
    """

    file: Path
    group: str
    drives: int

    def fleet(self) -> Fleet:
        """The fleet.

        Raises:
            InputError: The file cannot be read, or has no such group of so many drives.
        """
        fleet = load_fleet(self.file)
        counts = {group.name: group.count for group in fleet.drives}
        if counts.get(self.group, 0) < self.drives:
            raise InputError(
                f"{self.file}: has no group {self.group} of at least {self.drives} drives; its "
                "groups are " + ", ".join(f"{name} ({count})" for name, count in counts.items())
            )
        return fleet


def watts_of_plan(plan: Plan, share: FleetShare) -> float:
    """What the plan lets the drives of this host draw.

    The drives of a group are interchangeable and the plan does not say which host has which: each
    host has its share of the group's watts, at the fleet's confidence.

    Raises:
        InputError: It is no plan for this host.
    """
    for group in plan.groups:
        total = sum(one.drives * one.watts_bound for one in group.assignments)
        if group.name == share.group and group.count >= share.drives and total >= 0:
            return total * share.drives / group.count
    raise InputError(
        f"its plan has no watts for {share.drives} drives of group {share.group}; look at the "
        "service's version and at the fleet file"
    )


class PlannedBudget:
    """Asks the planner again and again, in a thread of its own; used in a `with` statement.

    Args:
        share: Which part of the fleet this host is.
        ask: Sends a fleet to the service; returns the plans of its budgets.
        otherwise: Watts while no answer is younger than `hold_seconds`.
        every_seconds: Between two requests.
        hold_seconds: For so long an answer holds when no other follows.
        say: Told when the service goes away and when it is back.
        clock: Never goes back, s.

    Raises:
        InputError: The fleet file cannot be used.
    """

    def __init__(
        self,
        share: FleetShare,
        ask: Callable[[Fleet], list[Plan]],
        otherwise: float,
        *,
        every_seconds: float = 60.0,
        hold_seconds: float = 600.0,
        say: Callable[[str], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        share.fleet()
        self._share, self._ask, self._otherwise = share, ask, otherwise
        self._every, self._hold, self._say, self._clock = every_seconds, hold_seconds, say, clock
        self._begin = clock()
        self._last: tuple[float, float] | None = None
        self._failing = False
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="budget", daemon=True)

    def __enter__(self) -> PlannedBudget:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()

    def watts(self) -> float:
        """The last answer while it holds, else what was stated for that case."""
        if self._last is None or self._clock() - self._last[0] > self._hold:
            return self._otherwise
        return self._last[1]

    def refresh(self) -> None:
        """Ask once; an answer that does not come leaves the last one."""
        try:
            plans = self._ask(self._share.fleet())
            passed = self._clock() - self._begin
            begun = [plan for plan in plans if plan.from_seconds <= passed]
            if not plans:
                raise InputError("it has no plan; look at the service's version")
            watts = watts_of_plan((begun or plans)[-1 if begun else 0], self._share)
        except IojouleError as error:
            if not self._failing:
                self._say(
                    f"no budget from the fleet planner: {error.message}; the last one holds for "
                    f"{self._hold:g} s, then {self._otherwise:g} W"
                )
            self._failing = True
            return
        if self._failing:
            self._say(f"the fleet planner answers again: {watts:.4g} W")
        self._failing = False
        self._last = self._clock(), watts

    def _run(self) -> None:
        """Also the first request: nobody waits for a service that hangs."""
        self.refresh()
        while not self._ending.wait(self._every):
            self.refresh()
