"""The candidates as arrays: laid out block by block, taken apart and put together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import isnan, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.schema import Configuration
from iojoule.datasets.vocabulary import Completion, Engine, Scheduler
from iojoule.model.evaluate.background_work import Balance
from iojoule.model.evaluate.bands import Codes
from iojoule.model.evaluate.columns import (
    CSTATE,
    FREQUENCY,
    GOVERNOR,
    GOVERNORS,
    HOST,
    JOB_NODE,
    LINK,
    STANDBY,
    row_of,
)
from iojoule.model.evaluate.frame import COMPLETIONS, ENGINES, SCHEDULERS, Frame
from iojoule.model.evaluate.latency import alone_of
from iojoule.model.evaluate.sata_link import POLICIES
from iojoule.recommender.request import Current, Free

Floats = NDArray[np.float64]

BLOCK_ROWS = 8_192
"""Candidates evaluated at a time: their arrays fit the caches, and memory stays bounded."""


@dataclass(frozen=True)
class Path:
    """One way through the host: codes as in `model.evaluate.frame`."""

    engine: int
    completion: int
    submission_polling: bool
    scheduler: int


@dataclass(frozen=True)
class Candidates:
    """All candidates as axes, laid out block by block so that memory stays bounded.

    The power state varies fastest: `states` consecutive rows differ in nothing else.

    Attributes:
        combos: Route, queue depth, jobs, host settings and request bytes of every combination that
            can exist, shape (c, 5); routes and settings as rows of `routes` and `hosts`.
        routes: Codes of engine, completion, submission polling and scheduler, shape (r, 4).
        hosts: Settings of the host as in `model.evaluate.columns`, shape (h, 8).
        states: Power states, those that stand for a limit among them.
        limits: Power limit by power state, W; 0 is none, NaN where nobody asks for any.
        current: The current configuration with every default filled in.
        defaults_used: What was left out, and the default it took.
        excluded: Combinations left out, by reason.
        free: The knobs that vary.
        facts: Read fraction, pattern code, bytes written: the same in every row.
        collecting: Share of collecting by power state, NaN where bytes written decide.
        balance: Where the demand leads to, by power state; None where the state is stated.
        habits: Fields of the frame that say how the work arrives and what was done to the drive;
            the same in every row.
    """

    combos: Codes
    routes: Codes
    hosts: Floats
    states: Codes
    limits: Floats
    current: Configuration
    defaults_used: dict[str, Any]
    excluded: dict[str, int]
    free: tuple[str, ...]
    facts: tuple[float, int, float]
    collecting: Floats
    balance: Balance | None
    habits: dict[str, float]

    @property
    def state_now(self) -> int:
        """Power state of the current configuration, or that which stands for its limit."""
        (limited,) = np.nonzero(self.limits == (self.current.power_limit_watts or nan))
        return int(limited[0]) if len(limited) else int(self.current.power_state or 0)

    @property
    def after(self) -> int | None:
        """Power state that the host sets after writes; None keeps that of the row."""
        return self.current.post_write_power_state

    @property
    def count(self) -> int:
        """Number of candidates."""
        return len(self.combos) * len(self.states)

    def blocks(self, rows: int | None = None) -> Iterator[tuple[slice, Frame]]:
        """The candidates in order, about `rows` (`BLOCK_ROWS`) at a time, in runs of power states.

        Each block comes with its places among all candidates.
        """
        run = len(self.states)
        step = max(1, (rows or BLOCK_ROWS) // run)
        for start in range(0, len(self.combos), step):
            part = self.combos[start : start + step]
            at = slice(start * run, (start + len(part)) * run)
            yield at, self._frame(np.repeat(part, run, axis=0).T, np.tile(self.states, len(part)))

    def alone(self) -> tuple[Frame, Codes]:
        """Every different configuration with a single request in flight, and by candidate which.

        Most candidates differ in depth and jobs only, so these are few.
        """
        single = self.combos.copy()
        single[:, 1:3] = 1
        size = np.unique(single[:, 4], return_inverse=True)[1]
        key = (single[:, 0] * len(self.hosts) + single[:, 3]) * (size.max() + 1) + size
        _, first, which = np.unique(key, return_index=True, return_inverse=True)
        run = len(self.states)
        frame = alone_of(
            self._frame(np.repeat(single[first], run, axis=0).T, np.tile(self.states, len(first)))
        )
        return frame, (which[:, None] * run + np.arange(run)).ravel()

    def current_frame(self) -> Frame:
        """The current configuration as one row."""
        route = path_of(self.current)
        row = (route.engine, route.completion, int(route.submission_polling), route.scheduler)
        alone = replace(
            self,
            routes=np.array([row], dtype=np.intp),
            hosts=row_of(self.current.model_dump())[None, :],
        )
        return alone._frame(
            np.array(
                [
                    [0],
                    [self.current.queue_depth],
                    [self.current.jobs],
                    [0],
                    [self.current.request_bytes],
                ],
                dtype=np.intp,
            ),
            np.array([self.state_now]),
        )

    def _frame(self, combos: Codes, states: Codes) -> Frame:
        rows = len(states)
        engine, completion, polling, scheduler = self.routes.T[:, combos[0]]
        fraction, pattern, written = self.facts
        return Frame(
            read_fraction=np.full(rows, fraction),
            pattern=np.full(rows, pattern, dtype=np.intp),
            request_bytes=combos[4].astype(float),
            queue_depth=combos[1].astype(float),
            jobs=combos[2].astype(float),
            engine=engine,
            completion=completion,
            submission_polling=polling.astype(bool),
            scheduler=scheduler,
            power_state=states,
            power_limit_watts=self.limits[states],
            collecting=self.collecting[states],
            bytes_written=np.full(rows, written),
            background_state=states if self.after is None else np.full(rows, self.after),
            **{name: np.full(rows, value) for name, value in self.habits.items()},
            cores=np.full(rows, np.inf),
            host=self.hosts[combos[3]],
        )


def join(frames: Sequence[Frame]) -> Frame:
    """Frames below each other."""
    return Frame(
        **{
            name: np.concatenate([getattr(frame, name) for frame in frames])
            for name in Frame.__dataclass_fields__
        }
    )


def knobs(frame: Frame) -> Floats:
    """What tells configurations apart, one row each; -1 where nothing is said."""
    return np.stack([_knob(frame, name) for name in Free.model_fields], axis=1)


def _knob(frame: Frame, name: str) -> Floats:
    values = frame.host[:, HOST.index(name)] if name in HOST else getattr(frame, name)
    known = values.astype(float)
    return np.where(np.isnan(known), -1.0, known)


def path_of(configuration: Configuration | Current) -> Path:
    """The way through the host that a fully stated configuration takes."""
    return Path(
        ENGINES.index(str(configuration.engine)),
        COMPLETIONS.index(str(configuration.completion)),
        bool(configuration.submission_polling),
        SCHEDULERS.index(str(configuration.scheduler)),
    )


def code_of_path(path: Path) -> int:
    """As `host_paths.code_of`, for one path."""
    return ((path.engine * 2 + path.completion) * 2 + int(path.submission_polling)) * len(
        SCHEDULERS
    ) + path.scheduler


def configuration_of(frame: Frame, row: int) -> Configuration:
    """One row of a frame as a configuration."""
    governor, clock, limit, node, link, timer = frame.host[
        row, [GOVERNOR, FREQUENCY, CSTATE, JOB_NODE, LINK, STANDBY]
    ].tolist()
    watts = float(frame.power_limit_watts[row])
    return Configuration(
        request_bytes=int(frame.request_bytes[row]),
        queue_depth=int(frame.queue_depth[row]),
        jobs=int(frame.jobs[row]),
        engine=Engine(ENGINES[frame.engine[row]]),
        completion=Completion(COMPLETIONS[frame.completion[row]]),
        submission_polling=bool(frame.submission_polling[row]),
        scheduler=Scheduler(SCHEDULERS[frame.scheduler[row]]),
        power_state=None if watts > 0 else int(frame.power_state[row]),
        power_limit_watts=None if isnan(watts) else watts,
        cpu_governor=None if isnan(governor) else GOVERNORS[int(governor)],
        cpu_frequency_max_hertz=None if isnan(clock) else clock,
        cstate_limit=None if isnan(limit) else int(limit),
        job_numa_node=None if isnan(node) else int(node),
        link_power_policy=None if isnan(link) else POLICIES[int(link)],
        standby_timer_seconds=None if isnan(timer) else timer,
    )
