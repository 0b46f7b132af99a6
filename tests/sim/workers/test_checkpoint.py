"""Kept results: work that was cut short goes on where it ended, and nothing is mixed up."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel

import iojoule.sim.workers.checkpoint as module
from iojoule.datasets.errors import InputError
from iojoule.sim.errors import WorkersLostError
from iojoule.sim.workers.checkpoint import Kept, key_of, map_kept
from iojoule.sim.workers.local import HERE


class Root(BaseModel):
    value: float


ITEMS = [1.0, 4.0, 9.0, 2.0]
KEYS = [key_of("root", item) for item in ITEMS]


def root(computed: list[float], item: float) -> Root:
    computed.append(item)
    return Root(value=item**0.5)


def fails_at_nine(computed: list[float], item: float) -> Root:
    if item == 9.0:
        raise WorkersLostError("gone")
    return root(computed, item)


def test_what_is_kept_is_not_computed_again(tmp_path: Path) -> None:
    first: list[float] = []
    kept = Kept(tmp_path / "new", Root)
    with pytest.raises(WorkersLostError, match=r"gone; 2 of 4 results are kept in .*new, from"):
        map_kept(HERE, fails_at_nine, ITEMS, shared=first, kept=kept, keys=KEYS)
    kept.close()
    second: list[float] = []
    kept = Kept(tmp_path / "new", Root)
    told: dict[int, Root] = {}
    found = map_kept(
        HERE,
        root,
        ITEMS,
        shared=second,
        kept=kept,
        keys=KEYS,
        seconds=[1.0] * 4,
        done=told.__setitem__,
    )
    assert (first, second) == ([1.0, 4.0], [9.0, 2.0])
    assert found == [Root(value=each**0.5) for each in ITEMS]  # to the bit, the root of 2 as well
    assert told == dict(enumerate(found))
    kept.close(delete=True)
    assert not (tmp_path / "new").exists()


def test_half_a_line_and_lines_of_others_are_computed_once_more(tmp_path: Path) -> None:
    kept = Kept(tmp_path, Root)
    for key in KEYS[:2]:
        kept.keep(key, Root(value=7.0))
    kept.close()
    file = tmp_path / "results.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(lines[0] + b"[]\n" + b'{"schema_version": 99}\n' + lines[1][:-20])
    kept = Kept(tmp_path, Root)
    assert kept[KEYS[0]] == Root(value=7.0)
    assert kept[KEYS[1]] is None
    kept.keep(KEYS[1], Root(value=8.0))
    kept.close()
    kept = Kept(tmp_path, Root)
    assert kept[KEYS[1]] == Root(value=8.0)
    kept.close()


def test_another_build_has_other_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    assert key_of("root", 1.0) == KEYS[0]
    assert len(set(KEYS)) == len(KEYS)
    monkeypatch.setattr(module, "build", lambda: {"iojoule": "9.9"})
    assert key_of("root", 1.0) != KEYS[0]


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"file/results\.jsonl: cannot be used .*another folder"):
        Kept(tmp_path / "file", Root)
