"""The loads of a calibration: what runs for how long under which settings."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Literal

from iojoule.datasets.errors import InputError
from iojoule.datasets.vocabulary import Engine
from iojoule.measure.host_calibration.settings import HostControls

Kind = Literal["idle", "burn", "wake", "copy", "null", "engine"]

SETTLE_SECONDS = 1.0
"""A load runs so long before its window begins."""

SHORTEST_SECONDS = 1.5
"""A window of less says little of a counter that is read ten times a second."""

READINGS = 32
"""A meter's mean needs thirty fresh readings (`recording.power`)."""

DEEP = 32
"""Depth of the second run of an engine: wake-ups are rare there."""

DUTIES = (0.05, 0.2, 0.5)
WAKE_RATES = (500.0, 3000.0)
ENGINES = (Engine.PSYNC, Engine.LIBAIO, Engine.IO_URING)


@dataclass(frozen=True)
class Step:
    """One load.

    Attributes:
        kind: What runs; idle: nothing.
        cpus: How many CPUs it runs on.
        amount: Share of the time that burning takes, or wake-ups a second.
        hertz: CPUs are held at or below this frequency.
        sleep_limit: CPUs are kept from deeper sleep states.
        engine: Of fio.
        depth: Of fio.
    """

    kind: Kind
    cpus: int = 0
    amount: float = 1.0
    hertz: float | None = None
    sleep_limit: int | None = None
    engine: Engine | None = None
    depth: int = 1

    @property
    def words(self) -> str:
        """What people call it."""
        what = {
            "idle": "idle",
            "burn": f"{self.cpus} CPUs busy" + (f" {self.amount:.0%}" if self.amount < 1 else ""),
            "wake": f"{self.amount:g} wake-ups a second",
            "copy": "copying memory",
            "null": "fio without a drive",
            "engine": f"fio {self.engine} depth {self.depth}",
        }[self.kind]
        if self.hertz is not None:
            what += f" at {self.hertz / 1e9:.2g} GHz"
        if self.sleep_limit is not None:
            what += f", no sleep deeper than state {self.sleep_limit}"
        return what


@dataclass(frozen=True)
class Plan:
    """Steps in the order in which they are made, and the length of a window."""

    steps: tuple[Step, ...]
    window_seconds: float

    @property
    def seconds(self) -> float:
        """How long all of it takes."""
        return len(self.steps) * (self.window_seconds + 2 * SETTLE_SECONDS)


def plan(
    cpus: int,
    controls: HostControls,
    minutes: float,
    slowest_hertz: float,
    *,
    target: bool,
    seed: int = 1,
) -> Plan:
    """What to run on so many CPUs within about so many minutes.

    Idle comes first, in the middle and last, so that a drift shows; the rest in random order, so
    that a drift does not look like an effect.

    Args:
        cpus: CPUs that this process may use.
        controls: What can be set.
        minutes: The time to aim at; a slow meter takes longer.
        slowest_hertz: Readings a second of the slowest meter of power.
        target: Whether there is a file for real engines.
        seed: Of the order.

    Raises:
        InputError: The time is too short for the steps.
    """
    loads = _loads(cpus, target)
    loads += _frequencies(cpus, controls) + _sleep(controls)
    random.Random(seed).shuffle(loads)
    half = len(loads) // 2
    idle = Step("idle")
    steps = (idle, *loads[:half], idle, *loads[half:], idle)
    each = minutes * 60.0 / len(steps) - 2 * SETTLE_SECONDS
    if each < SHORTEST_SECONDS:
        needed = len(steps) * (SHORTEST_SECONDS + 2 * SETTLE_SECONDS) / 60.0
        raise InputError(
            f"--minutes {minutes:g}: {len(steps)} loads need at least {needed:.1f} minutes",
            field="minutes",
        )
    return Plan(steps, max(each, READINGS / slowest_hertz))


def _loads(cpus: int, target: bool) -> list[Step]:
    counts = sorted({1, min(2, cpus), cpus // 2 or 1, cpus})
    loads = [Step("burn", count) for count in counts]
    loads += [Step("burn", 1, duty) for duty in DUTIES]
    loads.append(Step("burn", cpus, 0.5))
    loads += [Step("wake", 1, rate) for rate in WAKE_RATES]
    loads += [Step("copy", 1), Step("null", 1)]
    if target:
        loads += [
            Step("engine", 1, engine=engine, depth=depth)
            for engine in ENGINES
            for depth in ((1,) if engine is Engine.PSYNC else (1, DEEP))
        ]
    return loads


def _frequencies(cpus: int, controls: HostControls) -> list[Step]:
    """A light and a full load of one CPU and a full one of all, at the lowest and in the middle."""
    span = controls.frequency_range_hertz()
    if span is None or not controls.may_set_frequency() or span[1] <= span[0]:
        return []
    low, high = span
    return [
        replace(load, hertz=hertz)
        for hertz in (low, 0.5 * (low + high))
        for load in (Step("burn", 1, 0.2), Step("burn", 1), Step("burn", cpus))
    ]


def _sleep(controls: HostControls) -> list[Step]:
    """Idle under every limit but the deepest."""
    if not controls.may_set_sleep():
        return []
    return [Step("idle", sleep_limit=limit) for limit in range(len(controls.sleep_states()) - 1)]
