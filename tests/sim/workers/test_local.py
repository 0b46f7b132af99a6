"""Processes of this machine: the same results, whatever becomes of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from iojoule.sim.errors import ConfigError, WorkersLostError
from iojoule.sim.workers import open_pool
from tests.sim.workers import work

ITEMS = list(range(20))


@pytest.mark.parametrize("processes", [1, 2, 3])
@pytest.mark.parametrize("seconds", [None, [0.01] * 20, [float(each) for each in ITEMS]])
def test_results_are_in_the_order_of_the_items_and_told_of_once_each(
    processes: int, seconds: list[float] | None
) -> None:
    told: dict[int, int] = {}

    def done(index: int, result: int) -> None:
        assert index not in told
        told[index] = result

    with open_pool(processes) as pool:
        found = pool.map(work.power, ITEMS, shared=3, seconds=seconds, done=done)
        assert found == [each**3 for each in ITEMS]
        assert told == dict(enumerate(found))
        # the same processes, other work
        assert pool.map(work.power, ITEMS, shared=2) == [each**2 for each in ITEMS]
        assert pool.map(work.power, [], shared=2) == []


def test_one_process_is_this_one_and_two_are_two_others() -> None:
    with open_pool(1) as pool:
        assert set(pool.map(work.pid, ITEMS, shared=0.0)) == {os.getpid()}
    with open_pool(2) as pool:
        others = set(pool.map(work.pid, ITEMS, shared=0.01))
    assert len(others) == 2
    assert os.getpid() not in others
    assert not any(Path(f"/proc/{each}").exists() for each in others)


def test_what_was_lost_with_a_process_is_done_again(tmp_path: Path) -> None:
    for seconds in (None, [0.01] * 20):
        where = tmp_path / str(seconds is None)
        where.mkdir()
        with open_pool(2) as pool:
            found = pool.map(work.once_killed, ITEMS, shared=str(where), seconds=seconds)
        assert found == [each**2 for each in ITEMS]
        assert (where / "3").exists()


def test_an_item_that_ends_every_process_is_named() -> None:
    with open_pool(2) as pool, pytest.raises(WorkersLostError, match=r"item 3 .*SIGKILL"):
        pool.map(work.always_killed, ITEMS, shared=None)


def test_a_failure_is_raised_as_it_is_and_calls_the_others_off(tmp_path: Path) -> None:
    with open_pool(2) as pool:
        with pytest.raises(ConfigError, match=r"^two$") as caught:
            pool.map(work.refused, ITEMS[1:], shared=str(tmp_path))
        assert caught.value.field == "seed"
        (other,) = (int(each.name) for each in tmp_path.iterdir())
        assert not Path(f"/proc/{other}").exists()
        # and the pool begins anew
        assert pool.map(work.power, ITEMS, shared=1) == ITEMS


def test_an_error_that_cannot_be_sent_is_told_in_words_and_where_it_was() -> None:
    with open_pool(2) as pool, pytest.raises(RuntimeError, match=r"OddError: \d+ and 0") as caught:
        pool.map(work.odd, ITEMS, shared=None)
    assert "work.py" in "".join(caught.value.__notes__)


def test_programs_that_are_started_there_get_the_variables_of_the_caller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for value in (None, "yes"):
        if value is not None:
            monkeypatch.setenv("PYTHONSAFEPATH", value)
        with open_pool(2) as pool:
            assert pool.map(work.variable, [1, 2], shared="PYTHONSAFEPATH") == [value] * 2


def test_numerical_libraries_keep_to_one_thread() -> None:
    with open_pool(2) as pool:
        found = pool.map(work.threads, [1, 2], shared=None)
    assert {each for one in found for each in one} == {1}
