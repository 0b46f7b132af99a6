"""Why a recommendation saves: what each knob that changes brings, alone, last, and fairly shared.

Knobs interact: what depth brings depends on the engine. The fair share of a knob is its Shapley
value (Shapley, A value for n-person games, Contributions to the Theory of Games II, 1953): what it
adds to those that changed before it, averaged over all orders in which the knobs can be changed one
after the other. The shares add up to the whole saving, whatever interacts, and of at most
`MOST_PLAYERS` knobs every order counts.

Some orders lead through configurations that cannot exist, such as libaio with polled completions.
Then the average runs over the orders that lead through none of them (Faigle and Kern, The Shapley
value for cooperative games under precedence constraints, International Journal of Game Theory 21,
1992; Lange and Grabisch, Values on regular games under Kirchhoff's laws, Mathematical Social
Sciences 58, 2009). Where no order is left, knobs that only change together count as one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.vocabulary import impossible
from iojoule.model.evaluate.columns import HOST
from iojoule.model.evaluate.frame import COMPLETIONS, ENGINES, SCHEDULERS, Frame
from iojoule.model.evaluate.operating_point import HostPaths, code_of
from iojoule.recommender.space import knobs
from iojoule.recommender.workload import Free

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
Flags = NDArray[np.bool_]

MOST_PLAYERS = 8
"""So many knobs make 256 configurations."""

ROUTE = ("engine", "completion", "submission_polling", "scheduler")
CONCURRENCY = ("queue_depth", "jobs")

TOO_MANY = "more requests in flight than the application has"
UNKNOWN = "a path through the host that the profile does not know"


@dataclass(frozen=True)
class Between:
    """The configurations between today's and the recommended one.

    Attributes:
        players: The knobs that change; those that only change together stand in one tuple.
        sets: Which players have changed, as a bit mask, for each row of `frame`; without the first
            (nobody) and the last (everybody).
        frame: Those configurations.
        weights: Fair share of a player in energies by mask, shape (players, 2^players): energy
            saved = weights @ energy.
        orders: In how many orders the players can be changed one after the other.
        impossible: How many configurations between the two cannot exist, by reason.
    """

    players: tuple[tuple[str, ...], ...]
    sets: Rows
    frame: Frame
    weights: Floats
    orders: int
    impossible: dict[str, int]


def between(today: Frame, best: Frame, paths: HostPaths, most_bytes: float) -> Between:
    """Lay out what lies between two configurations, each a frame of one row; they differ.

    Args:
        today: The one; `best` the other.
        best: The other.
        paths: Paths through the host that the profile knows.
        most_bytes: Useful bytes that the application can have in flight.
    """
    differs = (knobs(today) != knobs(best))[0]
    changed = [name for name, by in zip(Free.model_fields, differs, strict=True) if by]
    for players in _groupings(changed):
        frame = _mixed(today, best, players)
        reasons = _reasons(frame, paths, most_bytes)
        reasons[0] = reasons[-1] = ""
        exists = np.array([not reason for reason in reasons])
        found = fair_weights(len(players), exists)
        if found is not None:
            kept = np.flatnonzero(exists)[1:-1]
            without = dict(Counter(reason for reason in reasons if reason))
            return Between(players, kept, frame.take(kept), found[0], found[1], without)
    raise AssertionError("all knobs at once are always one step")


def _groupings(changed: Sequence[str]) -> Iterator[tuple[tuple[str, ...], ...]]:
    """Knobs one by one; then those of the route as one, with those of concurrency, and all."""
    for together in ((), ROUTE, ROUTE + CONCURRENCY, tuple(changed)):
        group = tuple(name for name in changed if name in together)
        players: tuple[tuple[str, ...], ...] = tuple(
            (name,) for name in changed if name not in group
        )
        players += (group,) if group else ()
        if len(players) <= MOST_PLAYERS:
            yield players


def _mixed(today: Frame, best: Frame, players: Sequence[tuple[str, ...]]) -> Frame:
    """Every combination of old and new, row m with the players whose bit is set in m changed."""
    count = 1 << len(players)
    masks = np.arange(count)
    rows = today.take(np.zeros(count, dtype=np.intp))
    taken = {}
    host = rows.host.copy()
    for bit, name in chain.from_iterable(
        ((bit, name) for name in names) for bit, names in enumerate(players)
    ):
        new = (masks >> bit & 1).astype(bool)
        if name in HOST:
            host[new, HOST.index(name)] = best.host[0, HOST.index(name)]
            continue
        taken[name] = np.where(new, getattr(best, name)[0], getattr(today, name)[0])
        if name == "power_state":
            state = "background_state"
            taken[state] = np.where(new, getattr(best, state)[0], getattr(today, state)[0])
    return replace(rows, host=host, **taken)


def _reasons(frame: Frame, paths: HostPaths, most_bytes: float) -> list[str]:
    """Why each row cannot exist; empty where it can."""
    codes = code_of(frame)
    found = []
    for row in range(len(frame)):
        depth, jobs = int(frame.queue_depth[row]), int(frame.jobs[row])
        why = impossible(
            ENGINES[frame.engine[row]],
            COMPLETIONS[frame.completion[row]],
            queue_depth=depth,
            scheduler=SCHEDULERS[frame.scheduler[row]],
            submission_polling=bool(frame.submission_polling[row]),
        )
        if why is not None:
            found.append(why[1].split(";")[0].split(":")[0])
        elif not paths.keys[codes[row]]:
            found.append(UNKNOWN)
        elif depth * jobs * float(frame.request_bytes[row]) > most_bytes:
            found.append(TOO_MANY)
        else:
            found.append("")
    return found


def fair_weights(players: int, exists: Flags) -> tuple[Floats, int] | None:
    """Weights of the Shapley value over the orders that exist, and how many these are.

    Args:
        players: How many.
        exists: Whether the configuration with the players of a bit mask changed can exist, shape
            (2^players,).

    Returns:
        Shape (players, 2^players), such that `weights @ energy` is what each player saves; None
        where no order exists.
    """
    return _fair_weights(players, exists.tobytes())


@lru_cache(maxsize=64)
def _fair_weights(players: int, exists: bytes) -> tuple[Floats, int] | None:
    """As `fair_weights`.

    With f orders from nobody to S and g from S to everybody, f(S) g(S + i) orders of all change i
    right after S.
    """
    count, bits = 1 << players, [1 << bit for bit in range(players)]
    there = np.frombuffer(exists, dtype=bool)
    to, onward = [0] * count, [0] * count
    to[0] = onward[-1] = 1
    for mask in range(1, count):
        if there[mask]:
            to[mask] = sum(to[mask ^ bit] for bit in bits if mask & bit)
    for mask in reversed(range(count - 1)):
        if there[mask]:
            onward[mask] = sum(onward[mask | bit] for bit in bits if not mask & bit)
    orders = to[-1]
    if not orders:
        return None
    weights = np.zeros((players, count))
    for place, bit in enumerate(bits):
        for mask in range(count):
            if mask & bit or not (there[mask] and there[mask | bit]):
                continue
            share = to[mask] * onward[mask | bit] / orders
            weights[place, mask] += share
            weights[place, mask | bit] -= share
    return weights, orders


def alone(players: int, exists: Flags) -> tuple[Floats, Flags]:
    """Weights of each player changed first, from today's configuration, and whether that exists."""
    weights = np.zeros((players, 1 << players))
    steps = np.array([1 << bit for bit in range(players)])
    weights[:, 0] = 1.0
    weights[np.arange(players), steps] = -1.0
    return weights, exists[steps]


def last(players: int, exists: Flags) -> tuple[Floats, Flags]:
    """Weights of each player changed last, and whether what is before that step exists."""
    everybody = (1 << players) - 1
    weights = np.zeros((players, 1 << players))
    before = np.array([everybody ^ (1 << bit) for bit in range(players)])
    weights[np.arange(players), before] = 1.0
    weights[:, everybody] -= 1.0
    return weights, exists[before]
