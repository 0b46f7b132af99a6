"""Sweeps in other processes and on a Dask cluster give the results that they give here."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from iojoule.sim.engines import RunOptions
from iojoule.sim.engines.embedded import EmbeddedEngine
from iojoule.sim.errors import TraceError
from iojoule.sim.formats.files import read_drive
from iojoule.sim.presets import preset_path
from iojoule.sim.result import ScenarioResult
from iojoule.sim.sweep import Axis, Job, TraceFiles, combinations, job_keys, run_jobs, with_values
from iojoule.sim.workers import Pool, open_pool
from iojoule.sim.workers.checkpoint import Kept
from iojoule.sim.workload import FlowConfig, FlowKind, Scenario
from tests.cluster import Cluster

DRIVE = read_drive(preset_path("samsung-980-pro-1tb")).device
ASKED = Scenario(flows=(FlowConfig(read_percent=70, stop_ns=2_000_000),))
AXES = (Axis("flows.queue_depth", (1, 4, 16)), Axis("channels", (4, 8)), Axis("seed", (1, 2)))
JOBS = [Job(*with_values(DRIVE, ASKED, values)) for values in combinations(AXES)]
COSTS = {"run_user_seconds", "run_wall_seconds", "peak_bytes"}


def told(results: list[ScenarioResult]) -> list[dict[str, Any]]:
    """All that they say but what the run cost."""
    return [each.model_dump(exclude=COSTS) for each in results]


@pytest.fixture(scope="module")
def here() -> list[dict[str, Any]]:
    return told(run_jobs(JOBS, EmbeddedEngine()))


def test_other_processes_give_the_same_to_the_bit(here: list[dict[str, Any]]) -> None:
    with open_pool(2) as pool:
        assert told(run_jobs(JOBS, EmbeddedEngine(), pool=pool)) == here


def test_a_dask_cluster_gives_the_same_to_the_bit(
    here: list[dict[str, Any]], two_workers: str
) -> None:
    with open_pool(dask=two_workers) as pool:
        assert told(run_jobs(JOBS, EmbeddedEngine(), pool=pool)) == here
        assert told(run_jobs(JOBS[:1], EmbeddedEngine(), pool=pool)) == here[:1]


def test_also_with_a_worker_ended_in_the_middle(
    here: list[dict[str, Any]], cluster: Cluster
) -> None:
    cluster.scheduler()
    first, second = cluster.worker(), cluster.worker()
    done: list[int] = []

    def watch(index: int, share: float) -> None:
        done.append(index)
        if len(done) == 2:
            first.kill()

    with open_pool(dask=cluster.address) as pool:
        while pool.slots < 2:
            time.sleep(0.05)
        assert told(run_jobs(JOBS, EmbeddedEngine(), pool=pool, watch=watch)) == here
    assert first.wait() < 0
    assert second.poll() is None
    assert sorted(done) == list(range(len(JOBS)))


def trace_jobs(folder: Path) -> list[Job]:
    """Replays of two traces, the second of which has a fault in its last line."""
    lines = [f"{1000 * n} 0 {64 * (n * 7 % 100)} 8 1\n" for n in range(200)]
    good, bad = folder / "good.trace", folder / "bad.trace"
    good.write_text("".join(lines))
    bad.write_text("".join(lines) + "1 2\n")
    return [
        Job(DRIVE, Scenario(flows=(FlowConfig(kind=FlowKind.TRACE, trace_path=str(path)),)))
        for path in (good, bad)
    ]


class Blind:
    """A cluster whose workers cannot see the traces: they are gone once they are sent."""

    remote = True
    slots = 2

    def __init__(self, pool: Pool, folder: Path) -> None:
        self.pool, self.folder = pool, folder

    def map(self, function: Any, items: Any, *, shared: Any, **said: Any) -> Any:
        engine, options, traces = shared
        sent = traces.__getstate__()
        moved = self.folder.rename(self.folder.with_name("moved"))
        try:
            copies = TraceFiles(())
            copies.__setstate__(sent)
            return self.pool.map(function, items, shared=(engine, options, copies), **said)
        finally:
            moved.rename(self.folder)

    def close(self) -> None:
        """Whoever opened the pool closes it."""


def test_traces_travel_with_the_work_and_are_named_as_before(
    two_workers: str, tmp_path: Path
) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    good, bad = trace_jobs(folder)
    expected = told(run_jobs([good], EmbeddedEngine()))
    with pytest.raises(TraceError) as refused:
        run_jobs([bad], EmbeddedEngine())
    with open_pool(dask=two_workers) as pool:
        blind = Blind(pool, folder)
        assert told(run_jobs([good, good], EmbeddedEngine(), pool=blind)) == expected * 2
        with pytest.raises(TraceError) as refused_there:
            run_jobs([good, bad], EmbeddedEngine(), pool=blind)
    for name in ("message", "path", "line", "field"):
        assert getattr(refused_there.value, name) == getattr(refused.value, name)
    assert str(refused_there.value) == str(refused.value)


def test_copies_of_traces_go_with_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(elsewhere))
    (tmp_path / "a.trace").write_text("1")
    copy = TraceFiles(())
    copy.__setstate__(TraceFiles([str(tmp_path / "a.trace"), "missing"]).__getstate__())
    assert [path.read_text() for path in elsewhere.glob("*/*")] == ["1"]
    del copy
    assert not list(elsewhere.iterdir())


def test_a_sweep_goes_on_with_what_was_kept(here: list[dict[str, Any]], tmp_path: Path) -> None:
    options = RunOptions()
    keys = job_keys(JOBS, EmbeddedEngine(), options)
    assert len(set(keys)) == len(JOBS)
    kept = Kept(tmp_path, ScenarioResult)
    first = run_jobs(JOBS[:5], EmbeddedEngine(), kept=kept)
    kept.close()

    class OnlyTheRest(EmbeddedEngine):
        def run(self, *asked: Any) -> ScenarioResult:
            ran.append(asked)
            return super().run(*asked)

    ran: list[Any] = []
    kept = Kept(tmp_path, ScenarioResult)
    OnlyTheRest.__name__ = "EmbeddedEngine"
    found = run_jobs(JOBS, OnlyTheRest(), kept=kept)
    assert told(found) == here
    assert found[:5] == first  # with what they cost then
    assert len(ran) == len(JOBS) - 5
    kept.close()


def test_a_trace_that_was_written_again_is_run_again(tmp_path: Path) -> None:
    job, _ = trace_jobs(tmp_path)
    path = tmp_path / "good.trace"
    before = job_keys([job], EmbeddedEngine(), RunOptions())
    assert job_keys([job], EmbeddedEngine(), RunOptions()) == before
    os.utime(path, ns=(1, 1))
    assert job_keys([job], EmbeddedEngine(), RunOptions()) != before
