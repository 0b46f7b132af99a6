"""Asks random questions about simulated drives and judges what is picked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from iojoule.api.validating.campaign import RUNS, fitted
from iojoule.api.validating.chance import simulator
from iojoule.api.validating.drives import KINDS, draw_drives
from iojoule.api.validating.judging import PICKERS, Outcome, judge
from iojoule.api.validating.questions import draw_question
from iojoule.api.validating.truth import WORKS, Grid, Tick, Work, tables
from iojoule.recommender.recommend import Recommender
from iojoule.sim.workers import cores, open_pool


def validate(
    cases: int,
    seed: int,
    *,
    drives: int = len(KINDS),
    grid: Grid | None = None,
    works: Sequence[Work] = WORKS,
    runs: int = RUNS,
    every: bool = False,
    kept: Path | None = None,
    tick: Tick | None = None,
) -> list[Outcome]:
    """All pickers' answers to so many questions, the drives in turn.

    Args:
        cases: Questions.
        seed: Of drives, measurement noise and questions; the same seed gives the same outcomes.
        drives: How many drives, at most those of `drives.KINDS`; no more than there are questions.
        grid: Configurations whose truth is simulated; None takes all of `truth.Grid`.
        works: Kinds of work that are asked about.
        runs: Measured runs of each kind of work, at every other size and depth.
        every: Measure every configuration once instead.
        kept: Folder in which simulated truth is kept for the next time.
        tick: Told of the simulations' progress.
    """
    drives = min(drives, cases)
    drawn = draw_drives(seed, drives)
    truth = tables(drawn, works, grid or Grid(), kept=kept, tick=tick)
    recommenders: list[Recommender] = []
    found: list[Outcome] = []
    with open_pool(cores()) as pool:
        simulate = simulator(kept, pool)
        for place, drive in enumerate(drawn):
            own = {work: truth[place, work] for work in works}
            source = np.random.default_rng([seed, 2, place])
            profile = fitted(drive, own, source, runs=runs, every=every, simulate=simulate)
            recommenders.append(Recommender(profile))
            if tick is not None:
                tick("fitting profiles", place + 1, drives)
        for number in range(cases):
            place = number % drives
            work = works[int(np.random.default_rng([seed, 4, number]).integers(len(works)))]
            asked = draw_question(truth[place, work], number, seed, simulate)
            found += [judge(recommenders[place], asked, picker) for picker in PICKERS]
            if tick is not None:
                tick("asking", number + 1, cases)
    return found
