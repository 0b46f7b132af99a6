"""Fitted parameters of a drive: performance surfaces, power, write state, simulated tables."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from iojoule.datasets.schema import Section
from iojoule.datasets.vocabulary import Evidence, Operation, Pattern, is_assumption


def refuse_unequal(section: Section, *names: str) -> None:
    """Refuse lists of a section that are not equally long; raises ValueError."""
    lengths = {len(getattr(section, name)) for name in names}
    if len(lengths) > 1:
        raise ValueError(f"columns of unequal length: {', '.join(names)}")


def refuse_other_shape(covariance: Sequence[Sequence[float]], parameters: int) -> None:
    """Refuse a covariance that is not one of so many parameters; raises ValueError."""
    if {len(covariance), *map(len, covariance)} != {parameters}:
        raise ValueError(f"covariance must have {parameters} rows of {parameters} entries")


def _ascending(knots: list[float]) -> list[float]:
    if any(low >= high for low, high in pairwise(knots)):
        raise ValueError("knots must ascend")
    return knots


Knots = Annotated[list[float], Field(min_length=1), AfterValidator(_ascending)]
"""Places on an axis between which is interpolated."""


class Grounded(Section):
    """What has a source, and evidence that follows from it: an assumption is "assumed"."""

    evidence: Evidence
    source: str

    @model_validator(mode="before")
    @classmethod
    def _assumptions_say_so(cls, data: Any) -> Any:
        """Label assumptions as such, also those of profiles that named them something better."""
        if isinstance(data, dict) and is_assumption(str(data.get("source", ""))):
            return data | {"evidence": Evidence.ASSUMED}
        return data


class Parameter(Grounded):
    """One fitted or published number with its standard deviation and where it comes from."""

    name: str
    value: float
    sd: Annotated[float, Field(ge=0)]
    unit: str


class StatePower(Section):
    """What a lower power state draws instead: base and background watts of its own.

    The sd of `base_watts` is that of its difference from PS0: what is unsure of both cancels.
    """

    power_state: Annotated[int, Field(ge=1)]
    base_watts: Parameter
    background_watts: Parameter


DEVICE_POWER_PARAMETERS = 6


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
    idle_watts: Annotated[list[Parameter], Field(min_length=1)]
    cap_watts: Annotated[list[float], Field(min_length=1)]
    peak_watts: Parameter
    measured_read_operations_per_second_max: float
    measured_bytes_per_second_max: float
    relative_sd: float
    condition: str

    @model_validator(mode="after")
    def _shapes_match(self) -> Self:
        if len(self.parameters) != DEVICE_POWER_PARAMETERS:
            raise ValueError(f"the law has {DEVICE_POWER_PARAMETERS} parameters")
        refuse_other_shape(self.covariance, DEVICE_POWER_PARAMETERS)
        return self

    @property
    def is_expected(self) -> bool:
        """Whether the law is that of drives with the same facts: this one was not measured."""
        return all(parameter.evidence is Evidence.DATASHEET for parameter in self.parameters) and (
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


class WorkAfterWrites(Section):
    """What runs left behind at PS0, seen while idle power came back, so what began at once.

    `most_joules` is what any run left at the most. The sd of `joules_per_byte`, of all that the
    host wrote, is in log units.
    """

    joules_per_byte: Parameter
    watts_above_idle: Parameter
    most_joules: Parameter


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
    `background_delay_seconds` is how long the drive waits after its last request before it begins
    that work; where it is unknown, the settle time counts. A cache that ran full leaves
    `full_work_joules` above idle, work that waits for no rest and goes on beside requests; None
    where no run showed it.
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
    background_delay_seconds: Parameter | None = None
    full_work_joules: Parameter | None = None
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


Rung = Literal["datasheet", "published", "few_measurements", "campaign", "simulated"]
"""The ladder from the least to the most that can be known of a drive that is there."""

NonNegative = Annotated[float, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]


class CurveDoubt(Section):
    """Standard deviations (log) of a surface's parameters, one a knot of its request sizes.

    Attributes:
        unloaded_sd: Of the drive's own unloaded latency.
        capacity_sd: Of its capacity.
        correlation: Between the two.
        sharpness_sd: Of the bend.
        host_sd: Of what an unknown host adds to a request, and of its core time.
        form_sd: Of the curve itself around what drives do.
        factor: Standard deviations on each side of a 90 % interval.
    """

    unloaded_sd: list[NonNegative]
    capacity_sd: list[NonNegative]
    correlation: list[Annotated[float, Field(ge=-1, le=1)]]
    sharpness_sd: NonNegative
    host_sd: NonNegative
    form_sd: NonNegative
    factor: Annotated[float, Field(gt=0)]

    @model_validator(mode="after")
    def _columns_match(self) -> Self:
        refuse_unequal(self, "unloaded_sd", "capacity_sd", "correlation")
        return self


class FactUsed(Section):
    """A fact that a quantity rests on, as it was published or declared."""

    name: str
    value: float
    unit: str
    source: str


class LadderEntry(Section):
    """One quantity: what it rests on.

    Attributes:
        quantity: A quantity of the learned prior, a surface, or a part of the power law.
        rung: How high on the ladder it stands.
        evidence: What predictions from it are labelled.
        value: Centre, in `unit`; None where the quantity is a whole surface.
        relative_half_width: Half of the 90 % interval in log units.
        rows: Measurements it rests on.
        facts: Facts it rests on.
        prior_drives: Drives of the catalogue whose figures the prior of it was learned from.
        next: What to measure to narrow it.
    """

    quantity: str
    rung: Rung
    evidence: Evidence
    unit: str
    value: float | None = None
    relative_half_width: NonNegative | None = None
    rows: Annotated[int, Field(ge=0)] = 0
    facts: list[FactUsed] = Field(default_factory=list)
    prior_drives: Annotated[int, Field(ge=0)] = 0
    next: str


class Ladder(Section):
    """What a profile rests on, quantity by quantity."""

    entries: list[LadderEntry]


class Hull(Section):
    """Convex hull of measured points in log2(queue depth, jobs, request bytes).

    A point x lies inside where `normals @ x <= offsets` for every facet and where each fixed
    coordinate (one that never varied) has its one value.
    """

    normals: list[tuple[float, float, float]]
    offsets: list[float]
    fixed: tuple[float | None, float | None, float | None]

    @model_validator(mode="after")
    def _facets_match(self) -> Self:
        refuse_unequal(self, "normals", "offsets")
        return self


class ResidualTable(Section):
    """What the curve misses, learned from measurements, as knots to interpolate linearly.

    Shapes: every list in `values` is flattened from (path, depth, jobs, bytes) in C order.
    `latency` is the residual of log mean latency; `latency_sd` its standard deviation;
    `p50`, `p99`, `p999` are residuals of log(percentile / mean) and `*_sd` their deviations;
    `measured` is 1 at knots that were measured, else 0; `beyond`, where there are power states, how
    many octaves outside of its own state's runs a knot lies.
    """

    log2_queue_depth: Knots
    log2_jobs: Knots
    log2_request_bytes: Knots
    paths: Annotated[list[str], Field(min_length=1)]
    values: dict[str, list[float]]

    @model_validator(mode="after")
    def _grid_is_full(self) -> Self:
        knots = len(self.paths) * len(self.log2_queue_depth)
        knots *= len(self.log2_jobs) * len(self.log2_request_bytes)
        for name, values in self.values.items():
            if len(values) != knots:
                raise ValueError(f"values.{name} has {len(values)} entries for {knots} knots")
        for name in self.values:
            if name.removesuffix("_sd") not in self.values:
                raise ValueError(f"values.{name} has no values.{name.removesuffix('_sd')}")
        return self


class Tail(Section):
    """A latency percentile as mean + unloaded latency x excess (see `model.tails`).

    With more than `queue_commands` device commands in flight the rest wait in the host's queue, and
    the percentile's ratio to the mean is `queue_factor` times as large. Absent: no such queue.
    """

    quantile: Literal["p50", "p99", "p999"]
    intrinsic: float
    collision: list[float]
    exponent: float
    saturation: float
    host_damping: float
    queue_commands: Annotated[float, Field(gt=0)] | None = None
    queue_factor: Annotated[float, Field(ge=1)] = 1.0


class IntervalWidth(Section):
    """Conformal quantile: the 90 % half width in log space is `factor` x the local sd.

    Of a percentile that no row left out scored, `excess_sd` is the log sd of its excess over the
    mean: where it is hardly above the mean, little of that counts.
    """

    quantity: Literal["latency", "p50", "p99", "p999"]
    region: Literal["inside", "outside"]
    factor: Annotated[float, Field(gt=0)]
    floor_sd: Annotated[float, Field(ge=0)]
    excess_sd: Annotated[float, Field(ge=0)] = 0.0
    sd_per_octave: Annotated[float, Field(ge=0)]
    scores: Annotated[int, Field(ge=0)]


class Surface(Section):
    """Closed-loop performance for one operation and pattern (see `model.evaluate.surface`).

    `residuals` has a table for each host path that was measured, that with most rows first: it
    stands for every path that was not. It is empty where nothing was learned from rows.
    """

    operation: Literal[Operation.READ, Operation.WRITE]
    pattern: Pattern
    evidence: Evidence
    source: str
    log2_request_bytes: Knots
    unloaded_latency_ns: list[Positive]
    capacity_operations_per_second: list[Positive]
    sharpness: list[Positive]
    transfer_bytes_per_second: Positive
    access_unit_bytes: Annotated[int, Field(ge=1)]
    relative_sd: float
    tails: list[Tail]
    residuals: list[ResidualTable] = Field(default_factory=list)
    hulls: dict[str, Hull]
    widths: list[IntervalWidth]
    doubt: CurveDoubt | None = None

    @model_validator(mode="before")
    @classmethod
    def _earlier_table(cls, data: Any) -> Any:
        """Earlier profiles have one table of all host paths, or null."""
        if isinstance(data, dict) and "residual" in data:
            data = dict(data)
            table = data.pop("residual")
            data.setdefault("residuals", [] if table is None else [table])
        return data

    @model_validator(mode="after")
    def _one_entry_a_knot(self) -> Self:
        refuse_unequal(
            self,
            "log2_request_bytes",
            "unloaded_latency_ns",
            "capacity_operations_per_second",
            "sharpness",
        )
        knots = len(self.log2_request_bytes)
        if any(len(tail.collision) not in (0, knots) for tail in self.tails):
            raise ValueError(f"tails: collision has no entries, or one for each of {knots} knots")
        if self.doubt is not None and len(self.doubt.unloaded_sd) != knots:
            raise ValueError(f"doubt: has one entry for each of {knots} knots")
        for table in self.residuals:
            # one that follows from facts has no spread of its own
            needed = {"latency", "measured"} if "latency_sd" in table.values else {"latency"}
            if missing := needed - table.values.keys():
                raise ValueError(f"residuals: values lack {', '.join(sorted(missing))}")
        return self


CEILING_COMMANDS = 8
"""Device commands in flight at which a ceiling that depends on them is stated: those of one request
of 4 MiB."""

CEILING_SHARPNESS = 4.0
"""How sharply a ceiling takes over where no run says: as the bend of the curve's prior."""


class PowerStateEffect(Section):
    """What a power state below PS0 does to one direction of I/O.

    A request of s bytes takes `ceiling_seconds_per_operation` + s / `ceiling_bytes_per_second` of
    the drive's time at the cap; absent, the first is 0. The factors have their sd in log units, and
    so has the ceiling in bytes, whose sd is that of the sum. With n device commands in flight that
    time is (n / CEILING_COMMANDS) ** `ceiling_depth_exponent` times as long; absent, the exponent
    is 0: the ceiling is the same at every depth. `ceiling_sharpness` says how sharp the bend is
    between the latency below the ceiling and the wait at it (`model.evaluate.surface`); absent, it
    is CEILING_SHARPNESS. Its sd is in log units.
    """

    power_state: int
    operation: Literal[Operation.READ, Operation.WRITE]
    ceiling_bytes_per_second: Parameter
    ceiling_seconds_per_operation: Parameter | None = None
    ceiling_depth_exponent: Parameter | None = None
    ceiling_sharpness: Parameter | None = None
    latency_factor: Parameter
    tail_factor: Parameter


class PowerLimit(Section):
    """How a drive keeps a power limit in watts (NVMe feature 23h), as runs under one showed.

    `share_drawn` is the share of its limit that a drive draws which is held back by it, unless
    it is `kept_by_states`: then the drive is in the first power state whose cap is no higher.
    """

    share_drawn: Parameter
    kept_by_states: bool = False
    measured_watts: list[float]


class MixedEffect(Section):
    """How interleaved reads and writes differ from taking turns.

    `latency_factor` is by how much longer random reads take beside writes with many requests in
    flight, and the mean of a sequential mix at 70 % reads; `tail_factor` (percentiles of the
    reads, beside the mean) holds at 50 %. Where reads or writes are alone there is no effect
    (`model.evaluate.mixes`).
    """

    pattern: Pattern
    latency_factor: Parameter
    tail_factor: Parameter


class StateResidual(Section):
    """Residuals over power states of one operation and pattern; see `model.evaluate`.

    Those of mixes are of one share of reads, `read_fraction`.

    A path of the table is a power state and a host path, "2 io_uring/interrupt". Its values are
    `latency`, the percentiles and `watts`, residuals of the logs of the values themselves;
    `*_sd` are their standard deviations and `measured` is 1 at knots that were measured.
    """

    operation: Operation
    pattern: Pattern
    read_fraction: Annotated[float, Field(gt=0, lt=1)] | None = None
    table: ResidualTable


Ratio = Literal["latency", "p50", "p99", "p999", "watts"]


class RatioTable(Section):
    """One operation and pattern over requests in flight, request size and power state.

    `table.paths` are power states (`ps0`), `table.log2_queue_depth` counts all requests in flight.
    Its values are logs of simulated-changed over simulated-base at the same place: `latency` of the
    drive's mean latency, `p50`, `p99`, `p999` likewise, and `watts` of the drive's power beyond
    what its base's joules a request make of the changed rate; `watts` may lack.
    """

    operation: Literal[Operation.READ, Operation.WRITE]
    pattern: Pattern
    table: ResidualTable


class RatioError(Section):
    """Log sd of one ratio: `floor` joined with `share` of the log ratio, at most of `most`."""

    quantity: Ratio
    floor: Annotated[float, Field(ge=0)]
    share: Annotated[float, Field(ge=0)]
    most: Annotated[float, Field(gt=0)]


class Rebuilt(Section):
    """Ratios by which this profile's predictions are scaled.

    Attributes:
        drive: Title or file of the simulated drive that stands for the measured one.
        changes: What was set otherwise, in words.
        tables: The ratios.
        errors: How sure they are.
        source: What the errors were found from.
    """

    drive: str
    changes: list[str]
    tables: list[RatioTable]
    errors: list[RatioError]
    source: str


class CalibratedParameter(Parameter):
    """A simulator's parameter: its estimate and spread, and the range that it was sought in."""

    prior_low: float
    prior_high: float


class SimulatedTable(Section):
    """One operation and pattern over depth, jobs, size, host path and power state.

    `table.paths` are host paths with a power state, such as `io_uring/interrupt/none ps0`. Its
    values: `latency`, log of the mean latency in ns with the learned residual; `p50`, `p99` and
    `p999`, log over the mean; `watts`, log of the drive's; and for each its `_sd`, in which the
    spread of the parameters, the discrepancy and the residual's own are joined. `watts` may lack.
    """

    operation: Literal[Operation.READ, Operation.WRITE]
    pattern: Pattern
    table: ResidualTable


class SimulatedError(Section):
    """How far the simulator erred over a group of measurements: medians of absolute errors.

    `residual` is the calibrated simulator with the residual learned on the other measurements;
    `linear_law` the linear law of watts, which was told the measured throughput; `covered` the
    share of the measurements that lie in the 90 % interval.
    """

    quantity: str
    where: str
    held_out: bool
    rows: Annotated[int, Field(ge=1)]
    before: float | None
    calibrated: float | None
    residual: float | None
    linear_law: float | None = None
    covered: float | None = None


class Simulated(Section):
    """A simulator that was calibrated on this drive's measurements.

    Attributes:
        engine: Which simulator.
        drive: Title of the drive's file whose geometry was kept.
        condition: What the tables hold for, in words.
        base_watts: What the drive draws when it serves next to nothing; None: watts are unknown.
        parameters: Timing.
        energy: Joules and watts.
        tables: Answers.
        discrepancy_sd: Log sd of throughput by which the calibrated simulator misses measurements,
            before the residual.
        indistinct: What the measurements cannot tell apart, one sentence each.
        excluded: Measurements that were left out, with the reason, by kind.
        errors: How far it erred, in and out of sample.
    """

    engine: Literal["embedded", "mqsim"]
    drive: str
    condition: str
    base_watts: float | None
    parameters: list[CalibratedParameter]
    energy: list[CalibratedParameter]
    tables: list[SimulatedTable]
    discrepancy_sd: Annotated[float, Field(ge=0)]
    indistinct: list[str]
    excluded: list[str]
    errors: list[SimulatedError]
