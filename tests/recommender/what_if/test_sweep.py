"""Sweeps: each point as it would be by itself, stored, gone on with, and where answers change."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from iojoule.datasets.errors import InputError, SchemaVersionError
from iojoule.datasets.profile import DeviceProfile
from iojoule.recommender.what_if.compare import Answerer
from iojoule.recommender.what_if.situation import Situation
from iojoule.recommender.what_if.sweep import (
    Record,
    Sweep,
    answer_of,
    record,
    run,
    thresholds,
)
from iojoule.recommender.what_if.sweep_file import read_sweep, write_sweep
from iojoule.sim.sweep import Axis
from iojoule.sim.workers import open_pool
from tests.errors import having

AXES = (Axis("drives", (1, 2)), Axis("growth", (0.5, 1.0, 4.0, 64.0)))


def nobody(named: str) -> DeviceProfile:
    raise AssertionError(named)


@pytest.fixture(scope="module")
def sweep(situation: Situation) -> Sweep:
    return Sweep.over(situation, AXES, {"sla": "p99 < 2 ms"})


@pytest.fixture(scope="module")
def records(sweep: Sweep) -> list[Record]:
    with open_pool(1) as pool:
        return run(sweep, nobody, pool)


def test_a_point_is_to_the_bit_what_it_is_by_itself(
    sweep: Sweep, records: list[Record], situation: Situation
) -> None:
    assert len(sweep.points) == 8
    for point, told in zip(sweep.points, records, strict=True):
        assert told == record(Answerer(situation, nobody).ask(point))


@pytest.mark.slow
def test_processes_give_the_same_to_the_bit(sweep: Sweep, records: list[Record]) -> None:
    with open_pool(2) as pool:
        assert run(sweep, nobody, pool) == records


def test_a_stored_sweep_reads_back_to_the_bit(
    sweep: Sweep, records: list[Record], tmp_path: Path
) -> None:
    path = tmp_path / "s.parquet"
    write_sweep(sweep, dict(enumerate(records)), path)
    assert read_sweep(sweep, path) == dict(enumerate(records))
    schema = pq.read_schema(path)
    told = {key.decode(): value.decode() for key, value in schema.metadata.items()}
    assert told["iojoule.what_if.schema_version"] == "2"
    assert told["iojoule.what_if.answered"] == told["iojoule.what_if.points"] == "8"
    assert told["iojoule.what_if.device"] == sweep.base.profile.device
    assert schema.field("power_watts_low").metadata[b"unit"] == b"W"
    assert [path.name for path in tmp_path.iterdir()] == ["s.parquet"]


def test_what_is_known_is_not_computed_again(sweep: Sweep, records: list[Record]) -> None:
    known = {0: records[0], 5: records[5]}
    told: list[int] = []
    with open_pool(1) as pool:
        found = run(sweep, nobody, pool, known=known, done=lambda place, _: told.append(place))
    assert sorted(told) == [1, 2, 3, 4, 6, 7]
    assert found == records


def test_another_sweep_s_file_is_not_gone_on_with(
    sweep: Sweep, records: list[Record], tmp_path: Path, situation: Situation
) -> None:
    path = tmp_path / "s.parquet"
    write_sweep(sweep, {0: records[0]}, path)
    other = Sweep.over(situation, AXES, {"sla": "p99 < 1 ms"})
    with pytest.raises(InputError, match="holds another sweep"):
        read_sweep(other, path)
    path.write_bytes(b"PAR1 and nothing more")
    with pytest.raises(InputError, match="no sweep that could be gone on with"):
        read_sweep(sweep, path)


@pytest.mark.parametrize("version", ["1", "99"])
def test_a_file_of_another_version_is_refused(
    sweep: Sweep, records: list[Record], tmp_path: Path, version: str
) -> None:
    path = tmp_path / "s.parquet"
    write_sweep(sweep, {0: records[0]}, path)
    table = pq.read_table(path)
    newer = {**table.schema.metadata, b"iojoule.what_if.schema_version": version.encode()}
    pq.write_table(table.replace_schema_metadata(newer), path)
    with pytest.raises(SchemaVersionError, match=version):
        read_sweep(sweep, path)


def test_a_point_without_an_answer_says_why_and_the_others_go_on(situation: Situation) -> None:
    odd = Sweep.over(situation, [Axis("mix", (0.5, 2.0, 1.0))], {})
    with open_pool(1) as pool:
        found = run(odd, nobody, pool)
    assert [each["problem"] is None for each in found] == [True, False, True]
    assert "share of reads" in found[1]["problem"]


def test_an_unknown_axis_is_refused_before_anything_runs(situation: Situation) -> None:
    with pytest.raises(InputError, check=having(field="colour")):
        Sweep.over(situation, [Axis("colour", (1, 2))], {})


@pytest.mark.slow
def test_a_threshold_parts_two_answers(situation: Situation) -> None:
    axis = Sweep.over(situation, [Axis("growth", (0.25, 1.0, 64.0))], {})
    answerer = Answerer(situation, nobody)

    def ask(point: object) -> Record:
        return record(answerer.ask(point))  # type: ignore[arg-type]

    with open_pool(1) as pool:
        found = thresholds(axis.points, run(axis, nobody, pool), axis.axes, ask)
    assert found
    assert found[-1].after == "nothing meets the SLA"
    for each in found:
        assert each.below < each.above <= each.below * 1.006
        assert answer_of(ask({"growth": each.below})) == each.before
        assert answer_of(ask({"growth": each.above})) == each.after
    assert all(one.after == two.before for one, two in pairwise(found))
