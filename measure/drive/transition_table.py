"""The table of autonomous power state transitions (APST) of an NVMe controller: FID 0Ch.

Layout: NVM Express Base Specification 2.1, Autonomous Power State Transition: 32 entries of 8
bytes, one for each power state; target state in bits 7:3, idle time in milliseconds in bits 31:8.
The idle time is that in the current power state: of a state that was entered it counts from the
entry. An idle time of 0 disables the transition.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from iojoule.measure.errors import DriveError

TABLE_BYTES = 256
MOST_MILLISECONDS = 0xFFFFFF

_ENTRIES = struct.Struct("<32Q")


@dataclass(frozen=True, order=True)
class Transition:
    """After so many milliseconds of idle time in one power state, to another one."""

    from_state: int
    to_state: int
    idle_milliseconds: int


@dataclass(frozen=True)
class SleepLatency:
    """Declared latencies of a non-operational power state, microseconds.

    Attributes:
        state: Its number.
        entry_us: Time to enter; a command that comes meanwhile waits for the rest of it.
        exit_us: Time to leave.
    """

    state: int
    entry_us: int
    exit_us: int

    @property
    def wake_us(self) -> int:
        """The longest wait of a command: it comes as the drive begins to enter."""
        return self.entry_us + self.exit_us


@dataclass(frozen=True)
class LinuxRule:
    """Parameters of nvme_core by which Linux builds a table (drivers/nvme/host/core.c)."""

    primary_timeout_ms: int = 100
    secondary_timeout_ms: int = 2000
    primary_latency_us: int = 15000
    secondary_latency_us: int = 100000


def decode(data: bytes) -> tuple[Transition, ...]:
    """The transitions of a table, by state.

    Raises:
        DriveError: It has not 256 bytes.
    """
    if len(data) != TABLE_BYTES:
        raise DriveError(f"the table of transitions has {len(data)} bytes instead of {TABLE_BYTES}")
    return tuple(
        Transition(state, entry >> 3 & 0x1F, entry >> 8 & MOST_MILLISECONDS)
        for state, entry in enumerate(_ENTRIES.unpack(data))
        if entry >> 8 & MOST_MILLISECONDS
    )


def encode(transitions: Iterable[Transition]) -> bytes:
    """The 256 bytes of a table. Raises DriveError if a number does not fit its field."""
    entries = [0] * 32
    for move in transitions:
        fits = 0 < move.idle_milliseconds <= MOST_MILLISECONDS
        if not (fits and 0 <= move.from_state < 32 and 0 <= move.to_state < 32):
            raise DriveError(f"{move} does not fit into a table of transitions")
        entries[move.from_state] = move.to_state << 3 | move.idle_milliseconds << 8
    return _ENTRIES.pack(*entries)


def table_of(
    operational: Sequence[int], chain: Sequence[tuple[int, int]]
) -> tuple[Transition, ...]:
    """Transitions from every operational state along a chain of sleep states.

    Args:
        operational: States in which the drive serves I/O.
        chain: State, and milliseconds in the state before; shallow states first.
    """
    if not chain:
        return ()
    first, milliseconds = chain[0]
    moves = [Transition(state, first, milliseconds) for state in operational if state < first]
    for (state, _), (deeper, wait) in pairwise(chain):
        moves.append(Transition(state, deeper, wait))
    return tuple(sorted(moves))


def chain_from(
    transitions: Iterable[Transition], state: int, known: Iterable[int]
) -> tuple[tuple[int, int], ...]:
    """Sleep states that the drive passes from `state` on, and milliseconds before each.

    Ends at a state that is not in `known`, and at a state that was passed before.
    """
    by_state = {move.from_state: move for move in transitions}
    sleeps, chain, passed = set(known), [], {state}
    while (move := by_state.get(state)) is not None and move.to_state in sleeps - passed:
        chain.append((move.to_state, move.idle_milliseconds))
        state = move.to_state
        passed.add(state)
    return tuple(chain)


def linux_chain(
    sleeps: Sequence[SleepLatency], most_exit_us: int, rule: LinuxRule
) -> tuple[tuple[int, int], ...]:
    """The chain that Linux would set (nvme_configure_apst, 5.15 and later), without quirks.

    What a drive really has is read back from it: quirks leave states out.

    Args:
        sleeps: Non-operational states.
        most_exit_us: Latency tolerance of the controller; 0 switches APST off.
        rule: Parameters of nvme_core.
    """
    if most_exit_us == 0:
        return ()
    chain: list[tuple[int, int]] = []
    group = 3
    for sleep in sorted(sleeps, key=lambda sleep: sleep.state, reverse=True):
        if sleep.exit_us > most_exit_us:
            continue
        if not rule.primary_timeout_ms:
            wait = min((sleep.wake_us + 19) // 20, MOST_MILLISECONDS)
        elif sleep.wake_us <= rule.primary_latency_us and group > 1:
            group, wait = 1, rule.primary_timeout_ms
        elif (
            rule.secondary_timeout_ms
            and rule.primary_latency_us < sleep.wake_us <= rule.secondary_latency_us
            and group > 2
        ):
            group, wait = 2, rule.secondary_timeout_ms
        else:
            continue
        if wait:
            chain.insert(0, (sleep.state, wait))
    return tuple(chain)
