"""Questions and plans put together."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from iojoule.api.application.adaptive_campaign import (
    adaptive_conduct,
    adaptive_options,
    candidates_of,
)
from iojoule.datasets.errors import InputError
from iojoule.measure.campaign.folder import CampaignFolder, CampaignOptions, RunRecord, Status
from iojoule.measure.campaign.plan import parse_plan
from iojoule.measure.campaign.runs import Abilities, Run, expand
from iojoule.recommender.adaptive.aims import Candidate
from iojoule.recommender.request import parse_workload
from tests.recommender.adaptive.analytic import measured

PLAN = """
schema_version = 1
name = "p"
[[sweep]]
name = "reads"
operation = "read"
request_bytes = ["4KiB", "16KiB", "64KiB"]
queue_depth = [1, 8, 64]
jobs = [1, 4]
[[sweep]]
name = "mix"
operation = "mixed"
read_fraction = [0.5, 0.7]
request_bytes = "4KiB"
"""
QUESTION = """
[workload]
operation = "read"
useful_request_bytes = 4096
request_bytes_coalescible = 16384
demand_operations_per_second = 20000
[sla]
latency_p99_ns_max = 500000
"""


@pytest.fixture(scope="module")
def runs() -> tuple[Run, ...]:
    return expand(parse_plan(PLAN, "plan"), Abilities()).runs


def found(runs: tuple[Run, ...], workload: dict[str, Any], **more: Any) -> list[Run]:
    return candidates_of(runs, parse_workload({"workload": workload, **more}))


def test_each_point_of_the_question_is_a_candidate_once(runs: tuple[Run, ...]) -> None:
    assert len(found(runs, {"operation": "read"})) == 3 * 3 * 2
    assert len(found(runs, {"operation": "mixed", "read_fraction": 0.7})) == 1


def test_what_the_question_does_not_leave_free_is_no_candidate(runs: tuple[Run, ...]) -> None:
    reads = {"operation": "read"}
    assert len(found(runs, reads, concurrency_max=8)) == 3 * 3
    assert len(found(runs, reads | {"useful_request_bytes": 16384})) == 2 * 6
    assert len(found(runs, reads, free={"queue_depth": [1, 8], "jobs": "all"})) == 3 * 2 * 2
    assert len(found(runs, reads, current={"jobs": 4}, free={"queue_depth": "all"})) == 3 * 3


def test_the_demand_is_put_into_the_points_in_bytes_of_their_requests(
    runs: tuple[Run, ...],
) -> None:
    rates = {
        run.point.configuration.request_bytes: run.point.workload.demand_bytes_per_second
        for run in found(
            runs,
            {
                "operation": "read",
                "useful_request_bytes": 4096,
                "request_bytes_coalescible": 16384,
                "demand_operations_per_second": 1000.0,
            },
        )
    }
    # of 64 KiB only 16 are useful, so four times as many bytes are moved
    assert rates == {4096: 4096e3, 16384: 4096e3, 65536: 4 * 4096e3}


def test_a_plan_without_the_question_is_refused(runs: tuple[Run, ...]) -> None:
    with pytest.raises(InputError, match="the plan sweeps no point"):
        found(runs, {"operation": "write"})


def test_the_question_is_kept_in_the_campaigns_folder(tmp_path: Path) -> None:
    (tmp_path / "question.toml").write_text(QUESTION)
    options, question = adaptive_options(tmp_path / "question.toml", 2.0, 0.03)
    folder = CampaignFolder(tmp_path / "campaign")
    folder.create(PLAN, CampaignOptions(drive="/dev/x", serial="S", adaptive=options))
    kept = folder.options().adaptive
    assert kept == options
    assert parse_workload(kept.question) == question
    adaptive_conduct(kept)


class AnalyticBench:
    """Every run takes 40 s and obeys formulas."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.source = np.random.default_rng(1)

    def prepare(self, state: object, store: object) -> None: ...

    def before(self, run: Run, state: object, store: object) -> None: ...

    def finish(self, state: object, store: object) -> None: ...

    def begin(self, run: Run, done: int, total: int, seconds_left: float) -> None: ...

    def end(self, run: Run, record: RunRecord) -> None: ...

    def perform(self, run: Run, folder: Path, state: object) -> RunRecord:
        self.seconds += 40.0
        point = Candidate(run.point.workload, run.point.configuration, 40.0)
        return RunRecord(
            number=run.number,
            sweep=run.sweep,
            repeat=run.repeat,
            point=run.point.key,
            status=Status.DONE,
            started_utc=datetime.now(UTC),
            wall_seconds=40.0,
            measurement=measured([point], self.source).measurements()[0],
        )


def test_a_campaign_conducted_by_a_question_ends_with_the_answer(tmp_path: Path) -> None:
    asked = QUESTION.replace("demand_operations_per_second = 20000\n", "")
    (tmp_path / "question.toml").write_text(asked)
    options, _ = adaptive_options(tmp_path / "question.toml", 2.0, 0.1)
    folder = CampaignFolder(tmp_path / "campaign")
    folder.create(PLAN, CampaignOptions(drive="/dev/x", serial="S", adaptive=options))
    plan, bench = parse_plan(PLAN, "plan"), AnalyticBench()
    way = adaptive_conduct(options)
    explanation = way(
        plan, expand(plan, Abilities()).runs, folder, bench, bench, clock=lambda: bench.seconds
    ).explanation
    assert "within 10.0% of the best" in explanation
    assert "request_bytes=16384" in explanation
    assert bench.seconds < 3600
