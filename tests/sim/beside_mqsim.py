"""Random drives beside the user's MQSim, counted by kind.

IOJOULE_MQSIM=... python -m tests.sim.beside_mqsim --cases 1000 --first 0 --table FILE
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from iojoule.datasets.errors import IojouleError
from iojoule.sim.compare import compare_results
from iojoule.sim.engines import Limits, RunOptions
from iojoule.sim.engines.embedded import EmbeddedEngine
from iojoule.sim.engines.mqsim import MqsimEngine
from tests.sim.random_inputs import KINDS, draw_case

HARMLESS = frozenset(
    {
        "channel_rate_rounded",
        "cmt_shared_is_not",
        "sata_one_stream",
        "wear_levelling_fixed",
        "suspension_dead",
    }
)
"""Warnings of what both engines compute alike: they explain no difference."""
OF_ENDS = frozenset(
    {
        "gc_loses_requests",
        "gc_policy_unsafe",
        "gc_reads_many_blocks",
        "planes_past_the_dies",
        "preconditioning_unplaceable",
        "priority_strands",
        "requests_lost",
    }
)
"""Warnings that MQSim may end or lose requests: where it ended well, they explain no difference."""


@dataclass(frozen=True)
class Outcome:
    """How one case went: equal, different or ended (MQSim did); what warned of it."""

    kind: str
    seed: int
    state: str
    causes: tuple[str, ...]
    detail: str


def _names(warnings: tuple[str, ...]) -> tuple[str, ...]:
    names = (warning.rpartition("[")[2].rstrip("]") for warning in warnings)
    return tuple(sorted({name for name in names if name not in HARMLESS}))


def run_case(seed: int, wall_seconds: float = 8) -> Outcome:
    """Run both engines on the case of `seed`."""
    with tempfile.TemporaryDirectory() as folder:
        case = draw_case(seed, Path(folder))
        options = RunOptions(limits=Limits(wall_seconds=wall_seconds))
        ours, refused = None, ""
        try:
            ours = EmbeddedEngine().run(case.device, case.scenario, options)
        except IojouleError as error:
            refused = f"{type(error).__name__}: {error}"
        causes = _names(ours.warnings) if ours else ("refused",)
        try:
            theirs = MqsimEngine(tolerate_lost=True).run(case.device, case.scenario, options)
        except IojouleError as error:
            return Outcome(case.kind, seed, "ended", causes, f"{error} | ours: {refused or 'ran'}")
        if ours is None:
            return Outcome(case.kind, seed, "different", causes, refused)
        compared = compare_results(ours, theirs)
        unequal = [
            f"{q.name} {q.embedded:.10g} {q.mqsim:.10g}"
            for q in compared.quantities()
            if not q.equal
        ]
        state = "different" if unequal else "equal"
        causes = tuple(name for name in causes if name not in OF_ENDS)
        return Outcome(case.kind, seed, state, causes, "; ".join(unequal[:6]))


def run_cases(seeds: range) -> Iterator[Outcome]:
    """All of them, on the cores that there are."""
    with ProcessPoolExecutor() as pool:
        yield from pool.map(run_case, seeds, chunksize=4)


COLUMNS = (
    "kind",
    "cases",
    "mqsim_ended",
    "ended_without_cause",
    "compared",
    "equal",
    "different_with_cause",
    "different_without_cause",
)


def table(outcomes: list[Outcome]) -> list[dict[str, object]]:
    """Counts by kind, then over all."""
    rows: list[dict[str, object]] = []
    for kind in (*KINDS, "all"):
        count: Counter[str] = Counter()
        for outcome in outcomes:
            if kind in (outcome.kind, "all"):
                count[outcome.state] += 1
                count[f"{outcome.state} without"] += not outcome.causes
        compared = count["equal"] + count["different"]
        values = (
            kind,
            compared + count["ended"],
            count["ended"],
            count["ended without"],
            compared,
            count["equal"],
            count["different"] - count["different without"],
            count["different without"],
        )
        rows.append(dict(zip(COLUMNS, values, strict=True)))
    return rows


def say(*words: object) -> None:
    """A line on standard output, at once."""
    sys.stdout.write("\t".join(map(str, words)) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Run the cases, print those that are not equal, write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="the seed of the first case")
    parser.add_argument("--table", type=Path)
    asked = parser.parse_args()
    if not os.environ.get("IOJOULE_MQSIM"):
        parser.error("IOJOULE_MQSIM does not name MQSim's binary")
    outcomes = []
    for outcome in run_cases(range(asked.first, asked.first + asked.cases)):
        outcomes.append(outcome)
        if outcome.state != "equal":
            say(
                outcome.seed,
                outcome.kind,
                outcome.state,
                *outcome.causes,
                "|",
                outcome.detail,
            )
    rows = table(outcomes)
    for row in rows:
        say(*row.values())
    if asked.table:
        with asked.table.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
