"""What a table of autonomous transitions (APST) saves in the observed gaps, and what it costs.

In a gap of g seconds the drive falls along a chain of sleep states k = 1 .. n. It enters state k
after the idle time a_k in the state before, which takes the entry latency e_k, in which it is
charged with the watts of the state before:

    t_k = t_(k-1) + a_k + e_k
    E(g) = descent(P_awake, P_idle, P_1 .. P_n; settle, t_1 .. t_n; g) + x_k (P_awake - P_k)

(`model.evaluate.idle_gaps.descent_joules`), with the exit latency x_k of the deepest state whose
entry had begun: the drive is awake for so long, and rests for as much less. The wait of a command
is at most e_k + x_k. Declared latencies are bounds, so that this energy is one, too; the other end
of the interval has none of their cost.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.vocabulary import Evidence
from iojoule.measure.drive.transition_table import SleepLatency
from iojoule.model.evaluate.bands import Floats, Interval
from iojoule.model.evaluate.idle_gaps import descent_joules
from iojoule.model.evaluate.quantities import NORMAL_90

Chain = tuple[tuple[int, int], ...]
"""Sleep states in the order in which the drive falls, each with milliseconds in the one before."""

IDLE_MILLISECONDS = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000)
"""Idle times of tables that are considered."""

TIE = 0.01
"""Savings within this share of the largest are equal; the fewest wake-ups decide then."""

TIE_WATTS = 1e-3
"""Likewise within so many watts: for less no table is changed."""


@dataclass(frozen=True)
class Sleep:
    """A non-operational state and what it draws less than idle.

    Attributes:
        latency: Its number, entry and exit latency.
        saved_watts: Idle watts less those of the state; with a 90 % interval.
    """

    latency: SleepLatency
    saved_watts: Interval


@dataclass(frozen=True)
class Rest:
    """What a drive draws without requests.

    Attributes:
        awake_watts: Until it settles, and while it wakes.
        idle_watts: After that in an operational state; with a 90 % interval.
        settle_seconds: Seconds awake after the last request.
        operational: Numbers of the operational states.
        sleeps: The others, shallow ones first.
        evidence: Weakest that watts rest on.
        sources: Where watts come from.
    """

    awake_watts: float
    idle_watts: Interval
    settle_seconds: float
    operational: tuple[int, ...]
    sleeps: tuple[Sleep, ...]
    evidence: Evidence
    sources: tuple[str, ...]


@dataclass(frozen=True)
class Descent:
    """Levels that a drive falls through while it rests under a table.

    Attributes:
        watts: Of each level, the awake one first; with 90 % intervals.
        after: Seconds since the last request at which each but the first is reached.
    """

    watts: tuple[Interval, ...]
    after: tuple[float, ...]


@dataclass(frozen=True)
class Gaps:
    """Gaps without I/O that were observed in a watch.

    Attributes:
        seconds: Length of each, shape (n,).
        watch_seconds: Length of the watch.
        begun_before: Whether the first one had begun when the watch did.
        ends_after: Whether the last one had not ended when the watch did.
    """

    seconds: Floats
    watch_seconds: float
    begun_before: bool = False
    ends_after: bool = False

    @property
    def only_rest(self) -> bool:
        """Whether no I/O was observed at all."""
        return len(self.seconds) == 1 and self.begun_before and self.ends_after

    @property
    def ended(self) -> NDArray[np.bool_]:
        """Which gaps ended in a request, shape (n,)."""
        ended = np.ones(len(self.seconds), dtype=bool)
        if self.ends_after and len(ended):
            ended[-1] = False
        return ended

    @property
    def rest_share(self) -> float:
        """Share of the watch without I/O."""
        return float(self.seconds.sum()) / self.watch_seconds if self.watch_seconds else math.nan


@dataclass(frozen=True)
class Outcome:
    """What a table does in the observed gaps.

    Attributes:
        chain: The table, from an operational state on; empty: switched off.
        saving_watts: Mean saving over the watch against another table, with a 90 % interval.
        wakes_per_hour: Wake-ups from a sleep state by I/O.
        exit_us: Exit latency of the deepest state.
        wake_us: Longest wait of a command: entry and exit of the slowest state.
        asleep_share: Share of the watch in a sleep state or entering one.
    """

    chain: Chain
    saving_watts: Interval
    wakes_per_hour: float
    exit_us: int
    wake_us: int
    asleep_share: float


def gap_joules(rest: Rest, chain: Chain, gap: Floats, *, ended: bool | NDArray[np.bool_]) -> Floats:
    """Energy of gaps under a table, J, shape (n,).

    Args:
        rest: The drive.
        chain: The table.
        gap: Seconds, shape (n,).
        ended: Which end in a request that wakes the drive.
    """
    watts, after, begun = _descent(rest, chain)
    joules = descent_joules(watts, after, gap)
    passed = 0.0
    for (state, _), asleep, begin in zip(chain, watts[2:], begun, strict=True):
        leave = _sleep(rest, state).latency.exit_us / 1e6 * (rest.awake_watts - asleep)
        # the exit of the deepest state counts, that of those before it does not
        joules = joules + (leave - passed) * (ended & (gap > begin))
        passed = leave
    return np.asarray(joules)


def descent(rest: Rest, chain: Chain) -> Descent:
    """What a drive draws at rest under a table, level by level."""
    watts, after, _ = _descent(rest, chain)
    saved = [_sleep(rest, state).saved_watts for state, _ in chain]
    idle = rest.idle_watts
    asleep = (
        Interval(value, max(idle.low - one.high, 0.0), idle.high - one.low)
        for value, one in zip(watts[2:], saved, strict=True)
    )
    awake = Interval(rest.awake_watts, rest.awake_watts, rest.awake_watts)
    return Descent((awake, idle, *asleep), tuple(after))


def _descent(rest: Rest, chain: Chain) -> tuple[list[float], list[float], list[float]]:
    """Watts of each level, when each is reached, and when the entry of each sleep begins."""
    idle = rest.idle_watts.value
    watts, after, begun = [rest.awake_watts, idle], [rest.settle_seconds], []
    now = 0.0
    for state, milliseconds in chain:
        sleep = _sleep(rest, state)
        begin = max(now + milliseconds / 1e3, rest.settle_seconds)
        now = begin + sleep.latency.entry_us / 1e6
        watts.append(idle - sleep.saved_watts.value)
        after.append(now)
        begun.append(begin)
    return watts, after, begun


def _sleep(rest: Rest, state: int) -> Sleep:
    return next(sleep for sleep in rest.sleeps if sleep.latency.state == state)


def saving(rest: Rest, gaps: Gaps, chain: Chain, instead_of: Chain = ()) -> Interval:
    """Mean watts that a table saves against another one, with a 90 % interval.

    The interval holds how well the watts of the states are known, that entry and exit may cost
    nothing, how few gaps there are (ratio estimator over gaps), and that the first gap may have
    begun long before the watch. Without any I/O the drive is taken to rest on.
    """
    if chain == instead_of or not len(gaps.seconds):
        return Interval(0.0, 0.0, 0.0)
    value = _mean_saving(rest, gaps, chain, instead_of)
    ends = [value]
    for bound in ("low", "high"):
        for free in (False, True):
            at_end = replace(rest, sleeps=tuple(_at(sleep, bound, free) for sleep in rest.sleeps))
            ends.append(_mean_saving(at_end, gaps, chain, instead_of))
    if gaps.begun_before:
        # at rest long enough the drive was in the last state of either table
        deepest = replace(rest, sleeps=tuple(_at(sleep, "high", True) for sleep in rest.sleeps))
        ends += [
            _mean_saving(drive, gaps, chain, instead_of, rested=True) for drive in (rest, deepest)
        ]
    if gaps.only_rest:
        # what it is if the rest began with the watch
        ends.append(_observed_saving(rest, gaps, chain, instead_of))
    spread = NORMAL_90 * _sampling_sd(rest, gaps, chain, instead_of)
    return Interval(
        value,
        value - math.hypot(value - min(ends), spread),
        value + math.hypot(max(ends) - value, spread),
    )


def _at(sleep: Sleep, bound: str, free: bool) -> Sleep:
    """A state at one end of what is known: of its watts, and of what its latencies cost."""
    saved = getattr(sleep.saved_watts, bound)
    latency = SleepLatency(sleep.latency.state, 0, 0) if free else sleep.latency
    return Sleep(latency, Interval(saved, saved, saved))


def _mean_saving(
    rest: Rest, gaps: Gaps, chain: Chain, instead_of: Chain, *, rested: bool = False
) -> float:
    if gaps.only_rest:
        return _deepest_saved(rest, chain) - _deepest_saved(rest, instead_of)
    if not rested:
        return _observed_saving(rest, gaps, chain, instead_of)
    later = replace(gaps, seconds=gaps.seconds[1:], begun_before=False)
    first = float(gaps.seconds[0])
    saved = first * (_deepest_saved(rest, chain) - _deepest_saved(rest, instead_of))
    return saved / gaps.watch_seconds + _observed_saving(rest, later, chain, instead_of)


def _deepest_saved(rest: Rest, chain: Chain) -> float:
    return _sleep(rest, chain[-1][0]).saved_watts.value if chain else 0.0


def _observed_saving(rest: Rest, gaps: Gaps, chain: Chain, instead_of: Chain) -> float:
    saved = _saved_joules(rest, gaps, chain, instead_of)
    return float(saved.sum()) / gaps.watch_seconds


def _saved_joules(rest: Rest, gaps: Gaps, chain: Chain, instead_of: Chain) -> Floats:
    now = gap_joules(rest, instead_of, gaps.seconds, ended=gaps.ended)
    return now - gap_joules(rest, chain, gaps.seconds, ended=gaps.ended)


def _sampling_sd(rest: Rest, gaps: Gaps, chain: Chain, instead_of: Chain) -> float:
    """Standard deviation of the mean saving over gaps that come at random.

    Each gap and the work around it is one cycle of a renewal process; the variance is that of the
    ratio estimator, n / (n - 1) sum (s_i - R l_i)^2 / T^2, with the saving s_i and length l_i of a
    cycle and R = sum s_i / T.
    """
    count = len(gaps.seconds)
    if gaps.only_rest:
        return 0.0  # nothing ends this gap: the ends of the interval say what else may be
    saved = _saved_joules(rest, gaps, chain, instead_of)
    if count < 2:
        return abs(float(saved.sum())) / gaps.watch_seconds
    work = (gaps.watch_seconds - float(gaps.seconds.sum())) / count
    apart = saved - float(saved.sum()) / gaps.watch_seconds * (gaps.seconds + work)
    total = float((apart**2).sum()) * count / (count - 1)
    return math.sqrt(total) / gaps.watch_seconds


def outcome(rest: Rest, gaps: Gaps, chain: Chain, instead_of: Chain = ()) -> Outcome:
    """What a table does in these gaps, and what it saves against another one."""
    _, _, begun = _descent(rest, chain)
    latencies = [_sleep(rest, state).latency for state, _ in chain]
    asleep = 0.0
    if begun:
        asleep = float(np.maximum(gaps.seconds - begun[0], 0.0).sum()) / gaps.watch_seconds
        asleep = 1.0 if gaps.only_rest else asleep
    return Outcome(
        chain=chain,
        saving_watts=saving(rest, gaps, chain, instead_of),
        wakes_per_hour=3600.0 * _wakes(rest, gaps, chain) / gaps.watch_seconds,
        exit_us=latencies[-1].exit_us if latencies else 0,
        wake_us=max((latency.wake_us for latency in latencies), default=0),
        asleep_share=asleep,
    )


def _wakes(rest: Rest, gaps: Gaps, chain: Chain) -> int:
    """Gaps that end in a request while the drive sleeps or begins to."""
    _, _, begun = _descent(rest, chain)
    return int(np.count_nonzero(gaps.ended & (gaps.seconds > begun[0]))) if begun else 0


def chains(rest: Rest, most_wake_us: int) -> Iterator[Chain]:
    """Tables whose slowest wake-up keeps the bound, that without transitions first.

    Every subset of the sleep states, with every combination of `IDLE_MILLISECONDS`.
    """
    latencies = [sleep.latency for sleep in rest.sleeps]
    usable = [latency.state for latency in latencies if latency.wake_us <= most_wake_us]
    yield ()
    for count in range(1, min(len(usable), 2) + 1):
        for states in itertools.combinations(usable, count):
            for times in itertools.product(IDLE_MILLISECONDS, repeat=count):
                yield tuple(zip(states, times, strict=True))


def best_chain(rest: Rest, gaps: Gaps, most_wake_us: int, instead_of: Chain | None) -> Chain:
    """The table that saves most in these gaps and keeps the bound of the wake-up.

    Savings within 1 % or 1 mW of the largest are equal: then the table in force wins, then the
    fewest wake-ups, then the longest idle times. Without a saving it is the table in force, or,
    where that breaks the bound or is not known, no transition.

    Args:
        rest: The drive.
        gaps: What was observed.
        most_wake_us: Longest wait of a command.
        instead_of: The table in force; None: not known.
    """
    candidates = list(chains(rest, most_wake_us))
    kept = instead_of is not None and all(
        _sleep(rest, state).latency.wake_us <= most_wake_us for state, _ in instead_of
    )
    if instead_of is not None and kept and instead_of not in candidates:
        candidates.append(instead_of)
    values = [
        _mean_saving(rest, gaps, chain, ()) if len(gaps.seconds) else 0.0 for chain in candidates
    ]
    best = max(values)
    least = best - max(TIE * abs(best), TIE_WATTS)
    equal = [chain for chain, value in zip(candidates, values, strict=True) if value >= least]
    if instead_of in equal:
        return instead_of or ()
    if () in equal:
        return ()
    wakes = {chain: _wakes(rest, gaps, chain) for chain in equal}
    return min(equal, key=lambda chain: (wakes[chain], _eagerness(chain)))


def _eagerness(chain: Chain) -> tuple[int, ...]:
    return (len(chain), *(-milliseconds for _, milliseconds in chain))


def recommended(
    rest: Rest, gaps: Gaps, most_wake_us: int, in_force: Chain | None, linux: Chain | None
) -> list[Outcome]:
    """A short list of tables: the best, the best of one state, Linux' own, that in force, none.

    Savings are against the table in force, or where it is not known against none.
    """
    best = best_chain(rest, gaps, most_wake_us, in_force)
    listed = [best]
    for sleep in rest.sleeps:
        if sleep.latency.wake_us <= most_wake_us:
            only = replace(rest, sleeps=(sleep,))
            listed.append(best_chain(only, gaps, most_wake_us, None))
    listed += [linux] if linux is not None else []
    listed += [in_force] if in_force is not None else []
    listed.append(())
    return [outcome(rest, gaps, chain, in_force or ()) for chain in dict.fromkeys(listed)]
