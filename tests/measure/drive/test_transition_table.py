"""Tables of transitions: bytes as the specification has them, and the table that Linux builds."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iojoule.measure.drive.transition_table import (
    LinuxRule,
    SleepLatency,
    Transition,
    chain_from,
    decode,
    encode,
    linux_chain,
    table_of,
)
from iojoule.measure.errors import DriveError

SAMSUNG_980 = (SleepLatency(3, 210, 1200), SleepLatency(4, 1000, 9000))

moves = st.dictionaries(
    st.integers(0, 31), st.tuples(st.integers(0, 31), st.integers(1, 0xFFFFFF)), max_size=32
)


def test_an_entry_has_its_fields_where_the_specification_says() -> None:
    data = encode([Transition(2, 4, 1500)])
    assert len(data) == 256
    assert struct.unpack_from("<Q", data, 16) == (4 << 3 | 1500 << 8,)


@given(moves)
def test_what_is_encoded_is_decoded(table: dict[int, tuple[int, int]]) -> None:
    wanted = tuple(Transition(state, *move) for state, move in sorted(table.items()))
    assert decode(encode(wanted)) == wanted


@pytest.mark.parametrize(
    "move", [Transition(0, 32, 1), Transition(0, 3, 0), Transition(0, 3, 1 << 24)]
)
def test_what_does_not_fit_is_refused(move: Transition) -> None:
    with pytest.raises(DriveError):
        encode([move])


def test_a_table_of_another_size_is_refused() -> None:
    with pytest.raises(DriveError):
        decode(bytes(255))


def test_a_chain_becomes_a_table_and_comes_back() -> None:
    chain = ((3, 100), (4, 2000))
    table = table_of((0, 1, 2), chain)
    assert [(one.from_state, one.to_state) for one in table] == [(0, 3), (1, 3), (2, 3), (3, 4)]
    assert chain_from(table, 0, (3, 4)) == chain
    assert chain_from(table, 0, (3,)) == ((3, 100),)
    assert table_of((0,), ()) == ()


def test_a_table_that_goes_round_ends() -> None:
    table = (Transition(0, 3, 1), Transition(3, 4, 1), Transition(4, 3, 1))
    assert chain_from(table, 0, (3, 4)) == ((3, 1), (4, 1))


@pytest.mark.parametrize(
    ("tolerance", "rule", "chain"),
    [
        (100000, LinuxRule(), ((4, 100),)),  # both within 15 ms: the deepest
        (5000, LinuxRule(), ((3, 100),)),
        (0, LinuxRule(), ()),
        (100000, LinuxRule(primary_latency_us=5000), ((3, 100), (4, 2000))),
        (100000, LinuxRule(primary_timeout_ms=0), ((3, 71), (4, 500))),  # wake-up / 20
    ],
)
def test_the_table_of_linux(
    tolerance: int, rule: LinuxRule, chain: tuple[tuple[int, int], ...]
) -> None:
    assert linux_chain(SAMSUNG_980, tolerance, rule) == chain
