"""Workers of a Dask cluster, real ones on loopback: the same results, whatever becomes of them."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from iojoule.sim.errors import ConfigError, WorkerDiffersError, WorkersLostError
from iojoule.sim.workers import open_pool
from iojoule.sim.workers.dask import compare
from iojoule.sim.workers.pool import build
from tests.cluster import ROOT, Cluster
from tests.sim.workers import work

ITEMS = list(range(20))


@pytest.mark.parametrize("seconds", [None, [0.01] * 20])
def test_results_are_in_the_order_of_the_items_and_told_of_once_each(
    two_workers: str, seconds: list[float] | None
) -> None:
    told: dict[int, int] = {}

    def done(index: int, result: int) -> None:
        assert index not in told
        told[index] = result

    with open_pool(dask=two_workers) as pool:
        assert pool.slots == 2
        found = pool.map(work.power, ITEMS, shared=3, seconds=seconds, done=done)
        assert found == [each**3 for each in ITEMS]
        assert told == dict(enumerate(found))
        assert pool.map(work.power, [], shared=2) == []
        others = set(pool.map(work.pid, ITEMS, shared=0.05))
    assert len(others) == 2
    assert os.getpid() not in others


def test_a_failure_is_raised_as_it_is(two_workers: str, tmp_path: Path) -> None:
    (tmp_path / "begun").touch()
    with open_pool(dask=two_workers) as pool:
        with pytest.raises(ConfigError, match=r"^two$") as caught:
            pool.map(work.refused, [2], shared=str(tmp_path))
        assert caught.value.field == "seed"
        with pytest.raises(RuntimeError, match="OddError"):
            pool.map(work.odd, ITEMS, shared=None)


def test_numerical_libraries_keep_to_one_thread(two_workers: str) -> None:
    with open_pool(dask=two_workers) as pool:
        found = pool.map(work.threads, [1, 2], shared=None)
    assert {each for one in found for each in one} == {1}


def test_what_was_lost_with_a_worker_is_done_again(cluster: Cluster) -> None:
    cluster.scheduler()
    first, second = cluster.worker(), cluster.worker()
    done: dict[int, int] = {}

    def kill_the_first(index: int, result: int) -> None:
        done[index] = result
        if len(done) == 5:
            first.kill()

    with open_pool(dask=cluster.address) as pool:
        found = pool.map(work.pid, ITEMS, shared=0.05, done=kill_the_first)
    assert first.wait() < 0
    assert second.poll() is None
    assert len(done) == len(found) == len(ITEMS)
    assert second.pid in found[-1:]


def test_a_lost_scheduler_is_an_error_and_what_was_done_is_told(cluster: Cluster) -> None:
    scheduler = cluster.scheduler()
    cluster.worker()
    done: dict[int, int] = {}

    def kill(index: int, result: int) -> None:
        done[index] = result
        if len(done) == 3:
            scheduler.kill()

    said = r"lost, with \d+ of 20 items done"
    lost = pytest.raises(WorkersLostError, match=said)
    with open_pool(dask=cluster.address) as pool, lost as caught:
        pool.map(work.pid, ITEMS, shared=0.1, done=kill)
    assert 3 <= len(done) < 20
    assert f"with {len(done)} of 20" in str(caught.value)


def test_where_no_scheduler_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    import iojoule.sim.workers.dask as module

    monkeypatch.setattr(module, "CONNECT_SECONDS", 0.5)
    for address in ("tcp://127.0.0.1:9", "nonsense://"):
        said = f"^{address}: no Dask scheduler"
        with pytest.raises(WorkersLostError, match=said), open_pool(dask=address):
            pass


def test_another_build_is_refused_and_what_differs_is_named(
    cluster: Cluster, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text("import iojoule; iojoule.__version__ = '9.9'")
    cluster.scheduler()
    cluster.worker(PYTHONPATH=f"{tmp_path}:{ROOT}")
    said = r"tcp://\S+: runs another build .*: iojoule 9\.9 there and \S+ here\. Install"
    with pytest.raises(WorkerDiffersError, match=said), open_pool(dask=cluster.address):
        pass


def test_another_build_that_joins_later_is_refused_too(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import iojoule; iojoule.__version__ = '9.9'")
    cluster.scheduler()
    cluster.worker()
    with open_pool(dask=cluster.address) as pool:
        cluster.worker(PYTHONPATH=f"{tmp_path}:{ROOT}")
        while pool.slots < 2:
            time.sleep(0.05)
        with pytest.raises(WorkerDiffersError, match=r"iojoule 9\.9 there"):
            pool.map(work.pid, ITEMS, shared=0.05)


def test_a_worker_without_iojoule_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['iojoule'] = None")
    cluster.scheduler()
    cluster.worker(PYTHONPATH=str(tmp_path))
    said = "install the same iojoule there"
    with pytest.raises(WorkerDiffersError, match=said), open_pool(dask=cluster.address):
        pass


@pytest.mark.parametrize("name", build())
def test_every_part_of_a_build_counts(name: str) -> None:
    compare(build(), dict(build()), "tcp://there")
    with pytest.raises(WorkerDiffersError, match=f"tcp://there: .*{name} other there and "):
        compare(build(), build() | {name: "other"}, "tcp://there")
