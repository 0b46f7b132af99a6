"""A fair split of joules: its axioms as properties, and its rules on small examples."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from iojoule.datasets.errors import InputError
from iojoule.meter.attribution import (
    ENDED,
    Attributor,
    Count,
    DriveIntervals,
    GroupCounts,
    IdlePolicy,
    Part,
    RestPolicy,
    Shares,
)
from tests.meter.shapley import exact_shapley

Floats = NDArray[np.float64]
MIB = 1 << 20


def intervals(
    joules: Sequence[float],
    counts: Sequence[float],
    weights: Sequence[float] = (1e-5, 1e-9, 1e-5, 2e-9, 1e-3),
    seconds: float = 1.0,
    **other: Any,
) -> DriveIntervals:
    """One drive, "d"; parts that are not stated are 0."""
    joules = [*joules, *[0.0] * (len(Part) - len(joules))]
    rows = (np.array([values], dtype=float) for values in (joules, counts, weights))
    return DriveIntervals(("d",), np.array([seconds]), *rows, **other)


def submitted(counts: dict[Hashable, Sequence[float]]) -> GroupCounts:
    """By groups of drive 0."""
    table = np.array(list(counts.values()), dtype=float).reshape(-1, len(Count))
    return GroupCounts(np.zeros(len(counts), dtype=np.intp), tuple(counts), table)


def joules_of(shares: Shares, group: Hashable, part: Part | None = None) -> float:
    rows = [row for row, key in enumerate(shares.groups) if key == group]
    chosen = shares.joules[rows]
    return float(chosen.sum() if part is None else chosen[:, part].sum())


def whole(shares: Shares, drives: int = 1) -> Floats:
    """What all series of each drive sum to."""
    sums = np.zeros(drives)
    np.add.at(sums, shares.drive, shares.joules.sum(axis=1))
    dynamic = shares.unattributed.sum(axis=1) + shares.ended.sum(axis=1)
    return np.asarray(sums + dynamic + shares.idle)


VALUES = st.floats(0.0, 1e9, allow_subnormal=False)


@st.composite
def steps(draw: st.DrawFn) -> tuple[int, list[tuple[DriveIntervals, GroupCounts]]]:
    """Some intervals of some drives; counts of groups and of drives need not agree."""
    drives, groups = draw(st.integers(1, 3)), draw(st.integers(0, 4))

    def table(rows: int, columns: int, most: float = 1e9) -> Floats:
        values = st.floats(0.0, most, allow_subnormal=False)
        return draw(arrays.arrays(np.float64, (rows, columns), elements=values, fill=st.just(0.0)))

    found = []
    for _ in range(draw(st.integers(1, 3))):
        rows = drives * groups
        merged = table(drives, 2) if draw(st.booleans()) else None
        interval = DriveIntervals(
            tuple(f"d{number}" for number in range(drives)),
            np.full(drives, draw(st.floats(0.0, 10.0))),
            table(drives, len(Part), 1e4),
            table(drives, 5),
            table(drives, 5, 1.0),
            merged,
            load=table(drives, 5, 1e-3) if draw(st.booleans()) else None,
            core_seconds=table(drives, 5, 1e-3) if draw(st.booleans()) else None,
        )
        index = np.repeat(np.arange(drives), groups)
        names = tuple(f"g{number % max(groups, 1)}" for number in range(rows))
        found.append((interval, GroupCounts(index, names, table(rows, 5))))
    return drives, found


POLICIES = st.tuples(
    st.sampled_from([IdlePolicy.SEPARATE, IdlePolicy.BY_USE]), st.sampled_from(RestPolicy)
)


@given(steps(), POLICIES, st.booleans())
def test_series_sum_to_the_drive_and_none_is_negative(
    drawn: tuple[int, list[tuple[DriveIntervals, GroupCounts]]],
    policies: tuple[IdlePolicy, RestPolicy],
    one_ends: bool,
) -> None:
    drives, sequence = drawn
    attributor = Attributor(*policies)
    for interval, counts in sequence:
        shares = attributor.step(interval, counts)
        assert whole(shares, drives) == pytest.approx(interval.joules.sum(axis=1), rel=1e-9)
        for values in (shares.joules, shares.unattributed, shares.ended, shares.idle):
            assert (values >= 0).all()
        if one_ends:
            attributor.end(["g0"])


@given(steps())
def test_a_group_without_io_pays_nothing(
    drawn: tuple[int, list[tuple[DriveIntervals, GroupCounts]]],
) -> None:
    attributor = Attributor(IdlePolicy.BY_USE, RestPolicy.BY_WRITES)
    for interval, counts in drawn[1]:
        quiet = np.array([group == "g1" for group in counts.groups], dtype=bool)
        table = np.where(quiet[:, None], 0.0, counts.counts)
        shares = attributor.step(interval, GroupCounts(counts.drive, counts.groups, table))
        assert joules_of(shares, "g1") == 0.0


@given(steps())
def test_equal_io_pays_equally_whatever_the_names(
    drawn: tuple[int, list[tuple[DriveIntervals, GroupCounts]]],
) -> None:
    one, other = Attributor(), Attributor()
    for interval, counts in drawn[1]:
        twins = tuple(f"twin {group}" for group in counts.groups)
        drive = np.concatenate([counts.drive, counts.drive])
        table = np.concatenate([counts.counts, counts.counts])
        order = np.argsort(np.arange(len(drive)) % 3, kind="stable")
        names = (*counts.groups, *twins)
        straight = one.step(interval, GroupCounts(drive, names, table))
        mixed = other.step(
            interval,
            GroupCounts(drive[order], tuple(f"x{names[row]}" for row in order), table[order]),
        )
        for group in counts.groups:
            share = joules_of(straight, group)
            assert joules_of(straight, f"twin {group}") == pytest.approx(share, rel=1e-9)
            assert joules_of(mixed, f"x{group}") == pytest.approx(share, rel=1e-9)


@given(
    arrays.arrays(
        np.float64, (3, 5), elements=st.floats(0.0, 1e6, width=32, allow_subnormal=False)
    ),
    arrays.arrays(np.float64, 5, elements=st.floats(0.0, 100.0, width=32, allow_subnormal=False)),
    st.booleans(),
)
def test_two_halves_are_the_whole_at_constant_load(
    counts: Floats, joules: Floats, merges: bool
) -> None:
    merged = np.array([[7.0, 9.0]]) if merges else None
    total = counts.sum(axis=0) * 1.5  # some I/O is of no group
    names = ("a", "b", "c")
    index = np.zeros(3, dtype=np.intp)

    def shares_of(part: float, attributor: Attributor) -> Shares:
        interval = intervals(
            list(joules * part),
            list(total * part),
            seconds=part,
            merged=None if merged is None else merged * part,
        )
        return attributor.step(interval, GroupCounts(index, names, counts * part))

    halves = Attributor()
    first, second = shares_of(0.5, halves), shares_of(0.5, halves)
    together = shares_of(1.0, Attributor())
    for name in names:
        found = joules_of(first, name) + joules_of(second, name)
        assert found == pytest.approx(joules_of(together, name), rel=1e-9, abs=1e-12)


@given(
    arrays.arrays(np.float64, (4, 2), elements=st.floats(0.0, 1e6, allow_subnormal=False)),
)
def test_of_a_linear_cost_it_is_the_shapley_value(load: Floats) -> None:
    weights = np.array([2e-5, 3e-9])
    value = load @ weights
    counts = np.zeros((4, 5))
    counts[:, [Count.READS, Count.READ_BYTES]] = load
    interval = intervals([0, value.sum(), 0, 0, 0], list(counts.sum(axis=0)), [2e-5, 3e-9, 0, 0, 0])
    shares = Attributor().step(interval, submitted(dict(enumerate(counts.tolist()))))
    fair = exact_shapley(lambda members: float(value[members].sum()), 4)
    found = [joules_of(shares, group) for group in range(4)]
    assert found == pytest.approx(list(fair), rel=1e-9, abs=1e-12)


@given(
    st.lists(st.floats(0.0, 1e5, allow_subnormal=False), min_size=1, max_size=5),
    st.floats(0.05, 5.0),
)
def test_who_keeps_the_drive_awake_pays_the_shapley_value(reads: list[float], load: float) -> None:
    """The last group is not among those that are seen: it is unattributed."""
    commands = np.array(reads)
    total = commands.sum()
    if total < 1e-300:  # load / total would be infinite
        return

    def value(members: NDArray[np.bool_]) -> float:
        linear, share = 2e-5 * commands[members].sum(), commands[members].sum() / total
        return float(linear - 5 * np.expm1(-load * share))

    fair = exact_shapley(value, len(reads))
    interval = intervals(
        [1, 2e-5 * total, 0, 0, 0, fair.sum() - 2e-5 * total],
        (total, 0, 0, 0, 0),
        load=np.array([[load / total, 0, 0, 0, 0]]),
    )
    seen = {number: (count, 0, 0, 0, 0) for number, count in enumerate(reads[:-1])}
    shares = Attributor().step(interval, submitted(seen))
    found = [joules_of(shares, number) for number in range(len(reads) - 1)]
    found.append(float(shares.unattributed.sum()))
    assert found == pytest.approx(list(fair), rel=1e-6, abs=1e-9)


def test_reads_and_writes_keep_the_drive_awake_together() -> None:
    counts = {"reader": (300.0, 0, 0, 0, 0), "writer": (0, 0, 100.0, 0, 0)}
    interval = intervals(
        [1, 0, 0, 0, 0, 2], (300, 0, 100, 0, 0), load=np.array([[2e-3, 0, 6e-3, 0, 0]])
    )
    shares = Attributor().step(interval, submitted(counts))
    assert joules_of(shares, "reader") == pytest.approx(1.0)
    assert joules_of(shares, "writer", Part.AWAKE) == pytest.approx(1.0)


def test_three_users_by_commands() -> None:
    counts = {name: (1000.0 * n, 0, 0, 0, 0) for name, n in zip("abc", (90, 9, 1), strict=True)}
    interval = intervals([2, 4.867, 0, 0, 0], (100e3, 0, 0, 0, 0))
    shares = Attributor().step(interval, submitted(counts))
    assert [joules_of(shares, name) for name in "abc"] == pytest.approx(
        [4.380, 0.438, 0.049], abs=5e-4
    )
    assert shares.idle == pytest.approx([2.0])


def test_commands_of_a_drive_that_merges_are_scaled_to_it() -> None:
    # 256 sequential writes of 4 KiB become 16
    counts = {"a": (0, 0, 192, 192 * 4096, 0), "b": (0, 0, 64, 64 * 4096, 0)}
    weights = (0, 0, 1e-3, 0, 0)
    for merged in (None, np.array([[0.0, 240.0]])):
        interval = intervals([0, 0, 1.6, 0, 0], (0, 0, 16, MIB, 0), weights, merged=merged)
        shares = Attributor().step(interval, submitted(counts))
        assert joules_of(shares, "a") == pytest.approx(1.2)
        assert joules_of(shares, "b") == pytest.approx(0.4)


def test_a_journal_is_unattributed_and_is_spread_on_request() -> None:
    # 50 x 4 KiB write and fsync on ext4: the group sees 50 of 158 writes and no flush
    interval = intervals([0, 0, 1.08, 0.5, 0], (0, 0, 108, 1064 * 1024, 50), (0, 0, 0, 1e-6, 1e-2))
    counts = submitted({"a": (0, 0, 50, 200 * 1024, 0)})
    shares = Attributor().step(interval, counts)
    assert joules_of(shares, "a") == pytest.approx(1.08 * 200 / 1064)
    assert shares.unattributed.sum() == pytest.approx(1.58 - 1.08 * 200 / 1064)
    assert shares.unattributed[0, Part.FLUSH] == pytest.approx(0.5)
    spread = Attributor(rest=RestPolicy.BY_WRITES).step(interval, counts)
    assert joules_of(spread, "a") == pytest.approx(1.58)
    assert spread.unattributed.sum() == 0.0
    unknown = Attributor(rest=RestPolicy.BY_FLUSHES).step(interval, counts)
    assert unknown.unattributed == pytest.approx(shares.unattributed)


def test_passthrough_is_unattributed() -> None:
    interval = intervals([0, 3, 0, 0, 0], (300, 300 * 4096, 0, 0, 0))
    shares = Attributor().step(interval, submitted({"a": (100, 100 * 4096, 0, 0, 0)}))
    assert joules_of(shares, "a") == pytest.approx(1.0)
    assert shares.unattributed[0, Part.READ] == pytest.approx(2.0)


def test_background_work_is_charged_to_earlier_writers() -> None:
    attributor = Attributor()
    writes = intervals([0, 0, 1, 0, 0], (0, 0, 100, 4 * MIB, 0))
    attributor.step(writes, submitted({"a": (0, 0, 75, 3 * MIB, 0), "b": (0, 0, 25, MIB, 0)}))
    folding = intervals([0, 1, 0, 0, 2], (100, MIB, 0, 0, 0))
    shares = attributor.step(folding, submitted({"reader": (100, MIB, 0, 0, 0)}))
    assert joules_of(shares, "a", Part.BACKGROUND) == pytest.approx(1.5)
    assert joules_of(shares, "b", Part.BACKGROUND) == pytest.approx(0.5)
    assert joules_of(shares, "reader") == pytest.approx(1.0)


def test_earlier_writers_are_forgotten_with_the_memory_of_the_drive() -> None:
    attributor = Attributor()
    memory = {"memory_seconds": np.array([10.0])}
    one = intervals([0, 0, 0, 0, 0], (0, 0, 1, MIB, 0), seconds=1.0, **memory)
    attributor.step(one, submitted({"a": (0, 0, 1, MIB, 0)}))
    later = intervals([0, 0, 0, 0, 1], (0, 0, 1, MIB, 0), seconds=10.0, **memory)
    shares = attributor.step(later, submitted({"b": (0, 0, 1, MIB, 0)}))
    expected = np.exp(-1) / (1 + np.exp(-1))
    assert joules_of(shares, "a", Part.BACKGROUND) == pytest.approx(expected)


def test_what_an_ended_group_wrote_is_charged_to_ended() -> None:
    attributor = Attributor()
    writes = intervals([0, 0, 1, 0, 0], (0, 0, 2, 2 * MIB, 0))
    shares = attributor.step(writes, submitted({"a": (0, 0, 1, MIB, 0), ENDED: (0, 0, 1, MIB, 0)}))
    assert joules_of(shares, "a") == pytest.approx(0.5)
    assert shares.ended.sum() == pytest.approx(0.5)
    attributor.end(["a"])
    shares = attributor.step(intervals([0, 0, 0, 0, 2], (0,) * 5), submitted({}))
    assert shares.groups == ()
    assert shares.ended[0, Part.BACKGROUND] == pytest.approx(2.0)


def test_a_pair_keeps_its_number_until_its_group_ends_and_leaves_nothing_to_the_next() -> None:
    attributor = Attributor()
    writes = intervals([0, 0, 1, 0, 1], (0, 0, 2, 2 * MIB, 0))
    one = (0, 0, 1, MIB, 0)
    before = attributor.step(writes, submitted({"a": one, "b": one}))
    freed = attributor.end(["a"])
    assert freed == [before.rows[before.groups.index("a")]]
    after = attributor.step(writes, submitted({"b": one, "c": one}))
    number = dict(zip(after.groups, after.rows.tolist(), strict=True))
    assert number["b"] == before.rows[before.groups.index("b")]
    assert number["c"] not in (number["b"], -1)
    # background work of 4 MiB so far: 2 by b, 1 by c, 1 by the group that has ended
    background = {name: joules_of(after, name, Part.BACKGROUND) for name in "bc"}
    assert background["b"] == pytest.approx(2 * background["c"], rel=0.01)
    assert after.ended[0, Part.BACKGROUND] == pytest.approx(background["c"], rel=0.01)


def test_what_is_in_flight_is_charged_when_the_drive_completes_it() -> None:
    attributor = Attributor()
    half = intervals([0, 1, 0, 0, 0], (50, 50 * 4096, 0, 0, 0))
    first = attributor.step(half, submitted({"a": (100, 100 * 4096, 0, 0, 0)}))
    second = attributor.step(half, submitted({"b": (50, 50 * 4096, 0, 0, 0)}))
    third = attributor.step(half, submitted({}))
    assert joules_of(first, "a") == pytest.approx(1.0)
    assert joules_of(second, "a") == pytest.approx(1.0)
    assert joules_of(second, "b") == 0.0
    assert joules_of(third, "b") == pytest.approx(1.0)


def test_idle_by_use_and_by_provision() -> None:
    interval = intervals([6, 3, 0, 0, 0], (100, 100 * 4096, 0, 0, 0))
    counts = submitted({"a": (50, 50 * 4096, 0, 0, 0), "b": (25, 25 * 4096, 0, 0, 0)})
    use = Attributor(IdlePolicy.BY_USE).step(interval, counts)
    assert joules_of(use, "a", Part.IDLE) == pytest.approx(3.0)
    assert use.unattributed[0, Part.IDLE] == pytest.approx(1.5)
    quiet = Attributor(IdlePolicy.BY_USE).step(intervals([6, 0, 0, 0, 0], (0,) * 5), submitted({}))
    assert quiet.idle == pytest.approx([6.0])
    claims = submitted({"a": (0, 1, 0, 0, 0), "absent": (0, 2, 0, 0, 0)})
    provisioned = Attributor(IdlePolicy.PROVISIONED).step(interval, counts, claims)
    assert joules_of(provisioned, "absent", Part.IDLE) == pytest.approx(4.0)
    assert provisioned.idle == pytest.approx([0.0])
    with pytest.raises(InputError):
        Attributor(IdlePolicy.PROVISIONED).step(interval, counts)


def test_unknown_power_gives_unknown_shares_of_that_drive_only() -> None:
    interval = DriveIntervals(
        ("known", "unknown"),
        np.ones(2),
        np.array([[1, 1, 0, 0, 0, 0, 0], [np.nan] * len(Part)]),
        np.array([[1, 4096, 0, 0, 0]] * 2, dtype=float),
        np.array([[1e-5, 0, 0, 0, 0]] * 2),
    )
    counts = GroupCounts(np.array([0, 1]), ("a", "a"), np.array([[1, 4096, 0, 0, 0]] * 2) * 1.0)
    shares = Attributor().step(interval, counts)
    by_drive = {
        int(drive): row.sum() for drive, row in zip(shares.drive, shares.joules, strict=True)
    }
    assert by_drive[0] == pytest.approx(1.0)
    assert np.isnan(by_drive[1])


def test_drives_that_come_and_go_keep_their_writers() -> None:
    attributor = Attributor()
    attributor.step(
        intervals([0, 0, 1, 0, 0], (0, 0, 1, MIB, 0)), submitted({"a": (0, 0, 1, MIB, 0)})
    )
    none = np.empty((0, 5))
    attributor.step(
        DriveIntervals((), np.empty(0), np.empty((0, len(Part))), none, none), submitted({})
    )
    shares = attributor.step(intervals([0, 0, 0, 0, 1], (0,) * 5), submitted({}))
    assert joules_of(shares, "a") == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("seconds", np.array([-1.0])),
        ("counts", np.full((1, 5), np.nan)),
        ("joules", np.full((1, len(Part)), -1.0)),
        ("weights", np.full((1, 4), 1.0)),
    ],
)
def test_what_cannot_be_is_refused_by_its_name(field: str, values: Floats) -> None:
    valid: dict[str, Any] = {
        "seconds": np.ones(1),
        "joules": np.ones((1, len(Part))),
        "counts": np.ones((1, 5)),
        "weights": np.ones((1, 5)),
    }
    with pytest.raises(InputError) as refused:
        DriveIntervals(("d",), **{**valid, field: values})
    assert refused.value.field == field
