"""What is known of one drive model: facts with a unit and a source, and its power-state table.

A declared cap is not a measured power. `max_power_watts` is what the drive's descriptor
promises never to exceed; what it draws is a fact of its own whose metric begins with
`measured_`. The Samsung 980 PRO declares 8.49 W in its first state and peaks at 6 W; it
declares 0.04 W asleep and draws 1.2 W.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    field_validator,
    model_validator,
)

from iojoule.datasets.links import Medium

Interface = Literal["nvme", "sata", "sas", "unknown"]
DriveClass = Literal["consumer", "datacentre", "industrial", "emulated", "unknown"]
Unit = Literal[
    "W", "J", "V", "A", "s", "bytes", "bytes/s", "IOPS", "1/d", "count", "fraction", "celsius",
    "rpm", "text",
    "MB/s",  # only where the published megabyte is ambiguous, so that converting would invent
]  # fmt: skip

Text = Annotated[StrictStr, Field(min_length=1, pattern=r"\S")]
Watts = Annotated[float, Field(ge=0, strict=True)]
Microseconds = Annotated[int, Field(ge=0, strict=True)]
Rank = Annotated[int, Field(ge=0, le=31, strict=True)]
"""Relative performance rank, 0 best; five bits in the descriptor (NVMe Base, Identify)."""


class Record(BaseModel):
    """Common rules: unknown keys, NaN and infinities are refused, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Fact(Record):
    """One published or measured figure of a drive.

    Attributes:
        metric: What the figure is, in snake case. Figures measured by somebody other than the
            vendor begin with `measured_`.
        value: A number in `unit`, or text where `unit` is "text".
        unit: SI unit (bytes stay bytes); the published spelling is in `note` if it was converted.
        source: Where the figure is published.
        note: Conditions, bounds ("up to") and contradictions.
    """

    metric: Annotated[StrictStr, Field(pattern=r"^[a-z][a-z0-9]*(_[a-z0-9]+)*$")]
    value: StrictInt | StrictFloat | StrictStr
    unit: Unit
    source: Text
    note: Text | None = None

    @model_validator(mode="after")
    def _value_fits_unit(self) -> Self:
        if isinstance(self.value, str):
            if self.unit != "text":
                raise ValueError(f"value is text but unit is {self.unit}; write a bare number")
        elif self.unit == "text":
            raise ValueError("value is a number but unit is text; name the unit of the number")
        elif self.value < 0 and self.unit != "celsius":
            raise ValueError(f"value {self.value} {self.unit} is negative; no such quantity is")
        return self


class PowerState(Record):
    """One NVMe power-state descriptor, as the drive declares it.

    What drives declare is kept as it is, also where it cannot be true: active power of 0 or
    above the cap, equal caps in every state, ranks all 0, long latencies of operational states.

    Attributes:
        index: Number of the state, 0 to 31 (NVMe Base specification).
        max_power_watts: Declared cap; not a measured power.
        operational: Whether the drive serves I/O in this state.
        entry_latency_us: Declared time to enter, microseconds; absent where not published.
        exit_latency_us: Declared time to leave, microseconds; absent where not published.
        relative_read_throughput: Rank of the state, 0 best; the three others alike.
        idle_power_watts: Declared idle power.
        active_power_watts: Declared active power.
        firmware: Firmware that declares this table, where the source says so.
    """

    index: Annotated[int, Field(ge=0, le=31, strict=True)]
    max_power_watts: Watts
    operational: StrictBool
    entry_latency_us: Microseconds | None = None
    exit_latency_us: Microseconds | None = None
    relative_read_throughput: Rank | None = None
    relative_read_latency: Rank | None = None
    relative_write_throughput: Rank | None = None
    relative_write_latency: Rank | None = None
    idle_power_watts: Watts | None = None
    active_power_watts: Watts | None = None
    firmware: Text | None = None
    source: Text
    note: Text | None = None


_RISING_WATTS = ("standby_power", "idle_power", "operating_power")
"""Facts of a disk whose watts cannot fall from one to the next: what spins draws more than what
stands still, and what seeks more than what only spins."""

_OF_PCIE = ("pcie_generation", "pcie_lanes")


class Drive(Record):
    """Everything the catalogue knows of one drive model.

    Attributes:
        id: Name for the command line and of the file, a lower-case slug.
        model: Full name.
        aliases: Other spellings: identify strings, part numbers, names used in the data.
        medium: Flash and other memories without moving parts, or the platters of a hard disk.
        drive_class_source: What the class rests on.
        facts: In order of preference where one metric occurs more than once.
        power_states: Declared states; empty where no table is known.
    """

    id: Annotated[StrictStr, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
    model: Text
    aliases: tuple[Text, ...] = ()
    vendor: Text
    interface: Interface
    medium: Medium = "solid_state"
    drive_class: DriveClass
    drive_class_source: Text
    note: Text | None = None
    facts: tuple[Fact, ...] = ()
    power_states: tuple[PowerState, ...] = ()

    @field_validator("power_states")
    @classmethod
    def _one_row_per_state(cls, states: tuple[PowerState, ...]) -> tuple[PowerState, ...]:
        twice = [index for index, n in Counter(s.index for s in states).items() if n > 1]
        if twice:
            raise ValueError(f"index {twice[0]} occurs more than once; keep one row per state")
        return states

    @model_validator(mode="after")
    def _fits_its_interface(self) -> Self:
        """A drive that speaks no NVMe has no NVMe power states, and a disk no PCIe link."""
        if self.power_states and (self.medium == "disk" or self.interface in ("sata", "sas")):
            kind = "a hard disk" if self.medium == "disk" else f"attached by {self.interface}"
            raise ValueError(
                f"power_states: {self.model} is {kind}, which has no NVMe power states; state its "
                "standby, idle and link power as facts"
            )
        if self.medium != "disk":
            return self
        if self.interface == "nvme":
            raise ValueError(
                f"interface: {self.model} is a hard disk; disks are attached by sata or sas"
            )
        link = next(filter(None, map(self.fact, _OF_PCIE)), None)
        if link is not None:
            raise ValueError(f"facts: {self.model} is a hard disk, which has no {link.metric}")
        stated = [fact for fact in map(self.fact, _RISING_WATTS) if fact is not None]
        for lower, higher in pairwise(stated):
            if float(lower.value) > float(higher.value):
                raise ValueError(
                    f"facts: {lower.metric} {lower.value} W of {self.model} is above its "
                    f"{higher.metric} {higher.value} W; correct one of them"
                )
        return self

    def fact(self, metric: str) -> Fact | None:
        """Return the preferred fact of that metric, or None where nothing is known."""
        return next((fact for fact in self.facts if fact.metric == metric), None)

    def facts_of(self, metric: str) -> tuple[Fact, ...]:
        """Return every fact of that metric, the preferred one first (runs, contradictions)."""
        return tuple(fact for fact in self.facts if fact.metric == metric)

    @property
    def operational_states(self) -> tuple[PowerState, ...]:
        """The states in which the drive serves I/O, by index."""
        states = (state for state in self.power_states if state.operational)
        return tuple(sorted(states, key=lambda state: state.index))
