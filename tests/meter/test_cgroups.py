"""Counters of control groups: both layouts, groups that come and go, and their texts' variants."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from iojoule.meter.attribution import ENDED, Attributor, Count, DriveIntervals, Part
from iojoule.meter.cgroup_text import COLUMNS, Parser
from iojoule.meter.cgroups import (
    GroupInterval,
    GroupReader,
    Layout,
    find_hierarchy,
)

DRIVES = {"259:0": "nvme0n1", "8:0": "sda"}


def line(device: str, **counts: int) -> str:
    return " ".join([device, *(f"{name}={counts.get(name, 0)}" for name in COLUMNS)]) + "\n"


class Tree:
    """A hierarchy of cgroup v2 made of files."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("cgroup.controllers", "cgroup.subtree_control"):
            (root / name).write_text("cpu io memory\n")

    def group(self, path: str, text: str = "", *, hands_down: bool = False) -> None:
        folder = self.root / path
        folder.mkdir(exist_ok=True)
        (folder / "cgroup.type").write_text("domain\n")
        (folder / "cgroup.subtree_control").write_text("io\n" if hands_down else "\n")
        (folder / "io.stat").write_text(text)

    def remove(self, path: str) -> None:
        shutil.rmtree(self.root / path)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


@pytest.fixture
def reader(tree: Tree) -> Iterator[GroupReader]:
    with GroupReader(find_hierarchy(tree.root), DRIVES) as opened:
        yield opened


def counts(interval: GroupInterval, column: str = "rbytes") -> dict[tuple[object, str], int]:
    """By path of the group and drive."""
    sums: dict[tuple[object, str], int] = {}
    for group, drive, values in zip(interval.groups, interval.drives, interval.counts, strict=True):
        name = getattr(group, "path", group)
        value = int(values[COLUMNS.index(column)])
        sums[name, drive] = sums.get((name, drive), 0) + value
    return {key: value for key, value in sums.items() if value}


def test_a_name_of_any_bytes_is_told_as_utf_8(tree: Tree, reader: GroupReader) -> None:
    tree.group(os.fsdecode(b"\xff"))
    reader.read()
    tree.group(os.fsdecode(b"\xff"), line("259:0", rbytes=10))
    interval = reader.read()
    assert interval.counts[0, 0] == 10
    assert str(interval.groups[0]).encode() == rb"/\xff"


def test_differences_since_the_last_reading(tree: Tree, reader: GroupReader) -> None:
    tree.group("a", line("259:0", rbytes=1000, wbytes=1, rios=2, wios=3, dbytes=4, dios=5))
    assert counts(reader.read()) == {}
    tree.group("a", line("259:0", rbytes=1500, wbytes=11, rios=4, wios=6, dbytes=8, dios=10))
    interval = reader.read()
    assert interval.counts.tolist() == [[500, 10, 2, 3, 4, 5]]
    assert counts(interval) == {("/a", "nvme0n1"): 500}
    assert counts(reader.read()) == {}
    submitted = interval.submitted(["sda", "nvme0n1"])
    assert submitted.drive.tolist() == [1]
    expected = {Count.READS: 2, Count.READ_BYTES: 500, Count.WRITES: 3, Count.WRITE_BYTES: 10}
    assert submitted.counts[0].tolist() == [expected.get(column, 0) for column in Count]
    assert len(interval.submitted([]).groups) == 0


def test_a_parent_counts_without_its_children(tree: Tree, reader: GroupReader) -> None:
    for total, one, other in ((100, 60, 40), (1000, 500, 300)):
        tree.group("s", line("259:0", rbytes=total), hands_down=True)
        tree.group("s/one", line("259:0", rbytes=one))
        tree.group("s/other", line("259:0", rbytes=other))
        interval = reader.read()
    assert counts(interval) == {
        ("/s/one", "nvme0n1"): 440,
        ("/s/other", "nvme0n1"): 260,
        (ENDED, "nvme0n1"): 200,
    }


def test_a_parent_that_lags_is_never_negative(tree: Tree, reader: GroupReader) -> None:
    found = []
    for total, child in ((0, 0), (50, 100), (100, 100), (130, 110)):
        tree.group("s", line("259:0", rbytes=total), hands_down=True)
        tree.group("s/a", line("259:0", rbytes=child))
        interval = reader.read()
        assert (interval.counts >= 0).all()
        found.append(counts(interval).get((ENDED, "nvme0n1"), 0))
    assert found == [0, 0, 0, 20]


def test_a_group_that_comes_and_goes_within_an_interval(tree: Tree, reader: GroupReader) -> None:
    tree.group("s", line("259:0", rbytes=10), hands_down=True)
    reader.read()
    tree.group("s/short", line("259:0", rbytes=90))
    tree.group("s", line("259:0", rbytes=100), hands_down=True)
    tree.remove("s/short")
    assert counts(reader.read()) == {(ENDED, "nvme0n1"): 90}


def test_the_last_interval_of_a_group_that_ends(tree: Tree, reader: GroupReader) -> None:
    tree.group("s", line("259:0", rbytes=100))
    tree.group("s/a", line("259:0", rbytes=100))
    reader.read()
    tree.group("s", line("259:0", rbytes=150))
    tree.remove("s/a")
    interval = reader.read()
    assert [key.path for key in interval.ended] == ["/s/a"]
    assert counts(interval) == {(ENDED, "nvme0n1"): 50}
    assert reader.read().ended == ()


def test_the_same_name_again_is_another_group(tree: Tree, reader: GroupReader) -> None:
    tree.group("a", line("259:0", rbytes=5000))
    reader.read()
    (tree.root / "a").rename(tree.root / "away")
    tree.group("a", line("259:0", rbytes=30))
    shutil.rmtree(tree.root / "away")
    interval = reader.read()
    [ended] = interval.ended
    [present] = interval.groups
    assert counts(interval) == {("/a", "nvme0n1"): 30}
    assert present != ended


def test_a_group_whose_counters_are_enabled_later(tree: Tree, reader: GroupReader) -> None:
    (tree.root / "a").mkdir()
    reader.read()
    tree.group("a", line("259:0", rbytes=30))
    found = [counts(reader.read()) for _ in range(12)]
    assert [each for each in found if each] == [{("/a", "nvme0n1"): 30}]


def test_a_new_group_below_one_without_children_is_found(tree: Tree, reader: GroupReader) -> None:
    tree.group("s", line("259:0"))
    reader.read()
    tree.group("s/a", line("259:0", rbytes=30))
    tree.group("s", line("259:0", rbytes=30), hands_down=True)
    found = [counts(reader.read()) for _ in range(12)]
    assert [each for each in found if each] == [{("/s", "nvme0n1"): 30}]
    tree.group("s/a", line("259:0", rbytes=100))
    tree.group("s", line("259:0", rbytes=100), hands_down=True)
    assert counts(reader.read()) == {("/s/a", "nvme0n1"): 70}


def test_counters_that_restart_count_from_zero(tree: Tree, reader: GroupReader) -> None:
    tree.group("a", line("259:0", rbytes=5000, rios=7))
    reader.read()
    tree.group("a", line("259:0", rbytes=40, rios=9))
    interval = reader.read()
    assert interval.counts[0].tolist() == [40, 0, 9, 0, 0, 0]


def test_lines_of_any_kind(tree: Tree, reader: GroupReader) -> None:
    tree.group("a")
    tree.group("b", "259:1 \n259:0 \n")
    reader.read()
    tree.group(
        "a",
        "254:0 rbytes=9 wbytes=9 rios=9 wios=9 dbytes=9 dios=9\n"
        "8:0 rbytes=70 wbytes=1 rios=1 wios=1 dbytes=0 dios=0 cost.usage=12.5 cost.wait=3\n"
        "259:0 \n",
    )
    tree.group("b", "259:1 \n259:0 cost.vrate=100.00 rbytes=5\n(unknown) rbytes=3\n7:0\n")
    assert counts(reader.read()) == {("/a", "sda"): 70, ("/b", "nvme0n1"): 5}


def test_text_longer_than_the_first_reading(tree: Tree) -> None:
    drives = {f"259:{number}": f"d{number}" for number in range(300)}
    with GroupReader(find_hierarchy(tree.root), drives) as reader:
        for bytes_read in (1, 11):
            text = "".join(line(device, rbytes=bytes_read) for device in drives)
            tree.group("a", text)
            interval = reader.read()
    assert counts(interval) == {("/a", name): 10 for name in drives.values()}


def test_files_that_do_not_stay_open_read_the_same(tree: Tree) -> None:
    with GroupReader(find_hierarchy(tree.root), DRIVES, descriptors=1) as reader:
        for bytes_read in (1, 11):
            for name in "abc":
                tree.group(name, line("259:0", rbytes=bytes_read))
            interval = reader.read()
    assert counts(interval) == {(f"/{name}", "nvme0n1"): 10 for name in "abc"}


def test_a_drive_that_is_added_counts_from_then(tree: Tree, reader: GroupReader) -> None:
    tree.group("a", line("259:0", rbytes=5) + line("259:3", rbytes=1000))
    reader.read()
    reader.set_drives({**DRIVES, "259:3": "nvme3n1"})
    assert counts(reader.read()) == {}
    tree.group("a", line("259:0", rbytes=5) + line("259:3", rbytes=1200))
    assert counts(reader.read()) == {("/a", "nvme3n1"): 200}


def test_a_text_with_a_missing_number_does_not_shift_the_others() -> None:
    valid = line("259:0", rbytes=1, wbytes=2).encode()
    broken = valid.replace(b"rbytes=1", b"rbytes=")
    for texts in ([(0, valid), (1, broken)], [(1, broken), (0, valid)]):
        found = {
            int(number): dict(zip(parsed.columns, row.tolist(), strict=True))
            for parsed in Parser().parse(texts)
            for number, row in zip(parsed.numbers, parsed.values, strict=True)
        }
        assert found[0] == {0: 1, 1: 2, 2: 0, 3: 0, 4: 0, 5: 0}
        assert found[1] == {1: 2, 2: 0, 3: 0, 4: 0, 5: 0}


def write_v1(folder: Path, read: int, reads: int) -> None:
    folder.mkdir(exist_ok=True)
    for name, value in (("io_service_bytes", read), ("io_serviced", reads)):
        lines = [f"8:0 {kind} {value}" for kind in ("Read", "Write", "Sync", "Async", "Discard")]
        (folder / f"blkio.throttle.{name}").write_text(
            "\n".join([*lines, f"8:0 Total {2 * value}", f"Total {2 * value}", ""])
        )


def test_v1_counts_each_group_by_itself(tmp_path: Path) -> None:
    blkio = tmp_path / "blkio"
    write_v1(blkio, 0, 0)
    hierarchy = find_hierarchy(tmp_path)
    assert hierarchy.layout is Layout.V1
    with GroupReader(hierarchy, DRIVES) as reader:
        for factor in (1, 2):
            write_v1(blkio / "docker", 500 * factor, 5 * factor)
            write_v1(blkio / "docker" / "one", 300 * factor, 3 * factor)
            interval = reader.read()
    rows = {getattr(group, "path", None): row for row, group in enumerate(interval.groups)}
    assert interval.counts[rows["/docker"]].tolist() == [500, 500, 5, 5, 500, 5]
    assert interval.counts[rows["/docker/one"]].tolist() == [300, 300, 3, 3, 300, 3]


def test_v1_without_any_count_says_so(tmp_path: Path) -> None:
    for folder in (tmp_path / "blkio", tmp_path / "blkio" / "a"):
        folder.mkdir()
        for name in ("io_service_bytes", "io_serviced"):
            (folder / f"blkio.throttle.{name}").write_text("Total 0\n")
    hierarchy = find_hierarchy(tmp_path)
    with GroupReader(hierarchy, DRIVES) as reader:
        assert len(reader.read().remarks) == len(hierarchy.remarks) + 1


def test_layouts(tmp_path: Path) -> None:
    assert find_hierarchy(tmp_path).layout is Layout.NONE
    write_v1(tmp_path / "blkio", 0, 0)
    assert find_hierarchy(tmp_path).layout is Layout.V1
    unified = tmp_path / "unified"
    unified.mkdir()
    (unified / "cgroup.controllers").write_text("\n")
    assert find_hierarchy(tmp_path).layout is Layout.HYBRID_V1
    Tree(unified)
    assert find_hierarchy(tmp_path).layout is Layout.HYBRID_V2
    assert find_hierarchy(tmp_path).folder == unified
    (tmp_path / "cgroup.controllers").write_text("cpu\n")
    assert find_hierarchy(tmp_path).layout is Layout.NONE
    Tree(tmp_path)
    assert find_hierarchy(tmp_path).layout is Layout.V2
    assert find_hierarchy(tmp_path).remarks == ()


def test_a_root_that_is_not_the_hosts_is_named(tree: Tree) -> None:
    (tree.root / "cgroup.type").write_text("domain\n")
    assert len(find_hierarchy(tree.root).remarks) == 1


def test_a_host_without_counters_reads_nothing(tmp_path: Path) -> None:
    with GroupReader(find_hierarchy(tmp_path), DRIVES) as reader:
        assert reader.read().groups == ()


def test_many_groups_in_random_order_sum_to_their_parents(tree: Tree) -> None:
    generator = np.random.default_rng(5)
    totals = np.zeros(20, dtype=int)
    removed = 0
    with GroupReader(find_hierarchy(tree.root), DRIVES) as reader:
        seen = 0
        for step in range(15):
            alive = [row for row in range(20) if (row + step) % 7 or step < 2]
            for row in range(20):
                path = f"s/g{row}"
                if row not in alive and (tree.root / path).exists():
                    tree.remove(path)
                    removed += totals[row]
                    totals[row] = 0
            totals[alive] += generator.integers(0, 1000, len(alive))
            text = line("259:0", rbytes=int(totals.sum() + removed))
            tree.group("s", text, hands_down=True)
            for row in alive:
                tree.group(f"s/g{row}", line("259:0", rbytes=int(totals[row])))
            found = sum(counts(reader.read()).values())
            if step == 0:
                seen = int(totals.sum())
            seen += found
            assert seen == totals.sum() + removed


def test_joules_of_groups_that_write_and_end(tree: Tree, reader: GroupReader) -> None:
    """From the files to joules: the reader's output is the attribution's input."""
    attributor = Attributor()

    def step(joules: list[float], written: float) -> tuple[dict[object, float], float]:
        interval = reader.read()
        shares = attributor.step(
            DriveIntervals(
                ("nvme0n1",),
                np.ones(1),
                np.array([joules]),
                np.array([[0.0, 0.0, written / 4096, written, 0.0]]),
                np.array([[0.0, 0.0, 1e-5, 1e-9, 0.0]]),
            ),
            interval.submitted(["nvme0n1"]),
        )
        attributor.end(interval.ended)
        paths = [getattr(group, "path", group) for group in shares.groups]
        return dict(zip(paths, shares.joules.sum(axis=1), strict=True)), shares.ended.sum()

    def write(group: str, commands: int) -> None:
        tree.group(group, line("259:0", wbytes=4096 * commands, wios=commands))

    write("a", 0)
    write("b", 0)
    step([0.0] * len(Part), 0)
    write("a", 3000)
    write("b", 1000)
    joules, ended = step([1.0, 0, 4.0, 0, 0, 0, 0], 4000 * 4096)
    assert joules == pytest.approx({"/a": 3.0, "/b": 1.0})
    assert ended == 0.0
    tree.remove("a")
    step([0.0] * len(Part), 0)
    joules, ended = step([1.0, 0, 0, 0, 8.0, 0, 0], 0)
    assert joules == pytest.approx({"/b": 2.0})
    assert ended == pytest.approx(6.0)


def test_what_a_group_did_before_it_was_found_is_charged_once(
    tree: Tree, reader: GroupReader
) -> None:
    tree.group("s", line("259:0", rbytes=10))
    reader.read()
    total = 0
    for step in range(1, 15):
        tree.group("s/a", line("259:0", rbytes=100 * step), hands_down=True)
        tree.group("s/a/b", line("259:0", rbytes=70 * step))
        tree.group("s", line("259:0", rbytes=10 + 100 * step))
        found = counts(reader.read())
        total += sum(found.values())
        assert total == 100 * step
    assert found == {("/s/a/b", "nvme0n1"): 70, (ENDED, "nvme0n1"): 30}
