"""What the drive draws, and how what was written changes its state."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from iojoule.datasets.profile.numbers import Parameter
from iojoule.datasets.schema import Section
from iojoule.datasets.vocabulary import Evidence


class StatePower(Section):
    """What a lower power state draws instead: base and background watts of its own.

    The sd of `base_watts` is that of its difference from PS0: what is unsure of both cancels.
    """

    power_state: Annotated[int, Field(ge=1)]
    base_watts: Parameter
    background_watts: Parameter


class DevicePower(Section):
    """Watts of the drive: a linear law in its parameters, with their covariance.

    Parameter order of `parameters` and of both axes of `covariance`: base_watts,
    read_joules_per_byte, read_joules_per_operation, write_joules_per_byte,
    write_joules_per_operation, background_watts. Joules of bytes and operations are the same in
    every power state; `states` has base and background watts of those that runs were seen in.
    `session_sd_watts` is by how much the base differs between days and hosts of one drive model.
    """

    parameters: list[Parameter]
    covariance: list[list[float]]
    states: list[StatePower] = Field(default_factory=list)
    session_sd_watts: Annotated[float, Field(ge=0)] = 0.0
    idle_watts: list[Parameter]
    cap_watts: list[float]
    peak_watts: Parameter
    measured_read_operations_per_second_max: float
    measured_bytes_per_second_max: float
    relative_sd: float
    condition: str

    @property
    def is_expected(self) -> bool:
        """Whether the law is that of drives with the same facts: nobody measured this one."""
        return all(one.evidence is Evidence.DATASHEET for one in self.parameters) and (
            not self.measured_bytes_per_second_max
        )


class WriteCache(Section):
    """How many bytes the drive takes before it slows down.

    The fixed part is always there; the rest borrows free cells at one bit each, so that it
    shrinks once fewer than its size times `bits_per_cell` bytes are free. The sd of
    `capacity_bytes`, the size on an empty drive, is in log units.
    """

    capacity_bytes: Parameter
    static_bytes: Parameter
    bits_per_cell: Annotated[int, Field(ge=1, le=8)]


class BackgroundWork(Section):
    """What the drive does on its own behalf after sequential writes, in one power state.

    The sd of `seconds_per_byte` (by bytes that the host wrote) is in log units.
    """

    power_state: int
    seconds_per_byte: Parameter
    watts_above_idle: Parameter


class LongWrites(Section):
    """Random writes past the full cache, as a series showed them (`model.evaluate.device_state`).

    Attributes:
        recovered_bytes_per_second: Rate at which collecting is over and the cache takes writes.
        seen_bytes: Written in the longest spell that was seen.
        spell_bytes: Written in a spell of collecting, from spell to spell; None where none ended
            in the series. Its sd is in log units.
        again_share: Share of the cache that is free after it; sd in log units.
        spells_seen: How many spells ended in the series: what they have in common is known the
            better the more they are.
        spell_watts: Drawn in a spell, at PS0.
        second_log_sd: By how much one second's rate differs from the trend, log units; `watts_sd`
            likewise of the watts, W.
        correlation_seconds: For how long such a difference lasts.
    """

    recovered_bytes_per_second: Parameter
    seen_bytes: Parameter
    spell_bytes: Parameter | None = None
    again_share: Parameter
    spells_seen: Annotated[int, Field(ge=0)] = 0
    spell_watts: Parameter
    second_log_sd: Parameter
    watts_sd: Parameter
    correlation_seconds: Parameter


class WriteState(Section):
    """How the drive's state follows from the bytes written since it was purged.

    `background_joules_per_byte` holds at PS0; `background` has it by power state. The sd of
    `random_factor`, background work after random writes over that after sequential ones, is in
    log units, and so are those of the collecting rates and of `overwriting_seconds`: how long each
    request in flight waits between two random writes to places that already hold data.
    """

    cached_bytes: Parameter
    transition_bytes: Parameter
    collecting_bytes_per_second: Parameter
    recovery_bytes_per_second_per_byte: Parameter
    background_joules_per_byte: Parameter
    background_seconds_after_write: dict[int, Parameter]
    cache: WriteCache | None = None
    background: list[BackgroundWork] = Field(default_factory=list)
    random_factor: Parameter | None = None
    sequential_collecting_bytes_per_second: Parameter | None = None
    overwriting_seconds: Parameter | None = None
    long_writes: LongWrites | None = None


class FlushCost(Section):
    """What a flush of the volatile write cache costs a job that waits for it.

    Between its flushes a job issues as if there were none; then nothing of it is in flight for
    `seconds` (whose sd is in log units). Holds for flushes from `every_writes[0]` to
    `every_writes[1]` writes apart, as they were measured.
    """

    seconds: Parameter
    every_writes: tuple[int, int]


class StateTransition(Section):
    """One row of the power-state table: how long the drive takes into a state and out of it."""

    power_state: int
    operational: bool
    entry_seconds: float | None
    exit_seconds: float | None


class LinkPower(Section):
    """What the drive saves while its SATA link sleeps (ALPM).

    Attributes:
        slumber_watts: Idle power with the link in Slumber.
        exit_seconds: Until the link carries data again; the sd is in log units.
    """

    slumber_watts: Parameter
    exit_seconds: Parameter


class Standby(Section):
    """A disk whose platters stand still.

    Attributes:
        watts: While they do.
        entry_seconds: Until they stand still; the sd is in log units, as of the next two.
        exit_seconds: Until the disk serves again.
        spin_up_watts: Mean power meanwhile.
        cycles_rated: Starts and stops that the disk is rated for.
    """

    watts: Parameter
    entry_seconds: Parameter
    exit_seconds: Parameter
    spin_up_watts: Parameter
    cycles_rated: Parameter


class IdleBehaviour(Section):
    """What the drive does when no request comes.

    It stays awake for `settle_seconds`, then falls to the idle power of its state; the next
    request waits `wake_seconds`. With autonomous transitions it goes on to `apst_state` after
    `apst_idle_seconds`, of whose saving a gap brings `apst_share`. The sds of the times are in
    log units.

    Attributes:
        aspm_policy: Link policy under which idle and sleep power were measured; None: unknown.
        link: Of a SATA drive: what its link does when the host lets it sleep.
        standby: Of a hard disk: what standing still saves and costs.
    """

    settle_seconds: Parameter
    wake_seconds: Parameter
    apst_idle_seconds: Parameter | None = None
    apst_state: int | None = None
    apst_share: Parameter | None = None
    transitions: list[StateTransition] = Field(default_factory=list)
    aspm_policy: str | None = None
    link: LinkPower | None = None
    standby: Standby | None = None
