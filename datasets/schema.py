"""The schema of a measurement: six kinds of fields, never mixed.

workload (what the application does), configuration (what the host may set; the only kind the
recommender may choose), state (follows from what was done to the drive), conditions (of the
run; null = unknown), observations, and judgement (whether the run may be believed; null = not
judged). Units are in the names. In files and tables all fields stand side by side under the same
names, so every name is unique across the kinds.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated, Any, Self, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from iojoule.datasets.errors import InputError, close_names
from iojoule.datasets.vocabulary import (
    Completion,
    DeviceState,
    Durability,
    Engine,
    IntervalFor,
    LinkPowerPolicy,
    MixDispatch,
    Operation,
    Pattern,
    Scheduler,
    Verdict,
    impossible,
)

SCHEMA_VERSION = 2
"""Version of the stored form of measurements; a reader refuses anything newer. Version 2 added the
judgement, so rows of version 1 are not judged."""

DIGITS_MAX = 19
"""Of a whole number in an input, which keeps to 64 bits: beyond 308 digits a number is no
float any more, and int() refuses beyond 4,300."""

LARGEST = 1e30
"""No quantity of a drive or a fleet comes near it, and products of several stay finite."""

YEAR_SECONDS = 8766.0 * 3600.0
"""Of a year of 365.25 days."""

WHOLE_MAX = 2**53
"""Up to here a whole number is exact wherever JSON is read (RFC 8259, section 6)."""


def _no_truth(value: Any) -> Any:
    """Pydantic takes true for 1, which an input never means."""
    if isinstance(value, bool):
        raise ValueError(f"a number is needed here, not {str(value).lower()}")
    return value


number = BeforeValidator(_no_truth)
"""Makes a number of pydantic's refuse true and false."""


def _no_number(value: Any) -> Any:
    """Pydantic takes 1 for true; what counts is no truth."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise ValueError("true or false is needed here, not a number")
    return value


Truth = Annotated[bool, BeforeValidator(_no_number)]
Positive = Annotated[float, Field(gt=0, le=LARGEST), number]
NonNegative = Annotated[float, Field(ge=0, le=LARGEST), number]
Fraction = Annotated[float, Field(ge=0, le=1), number]
Count = Annotated[int, Field(ge=0, le=WHOLE_MAX), number]
PositiveInt = Annotated[int, Field(ge=1, le=WHOLE_MAX), number]
Depth = Annotated[int, Field(ge=1, le=65535), number]
PowerState = Annotated[int, Field(ge=0, le=31), number]
RequestBytes = Annotated[int, Field(ge=512, multiple_of=512, le=1 << 30), number]


class Section(BaseModel):
    """Common rules of every kind: unknown fields, NaN and infinities are refused."""

    # Built at first use: an answer uses a third of the kinds, and building takes longer than it.
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)


class Workload(Section):
    """What the application does; the recommender takes it as given."""

    operation: Operation
    read_fraction: Fraction | None = None
    mix_dispatch: MixDispatch | None = None
    pattern: Pattern = Pattern.RANDOM
    useful_request_bytes: RequestBytes | None = None
    request_bytes_coalescible: RequestBytes | None = None
    request_bytes_mix: Annotated[str, Field(pattern=r"^\d+/\d+(:\d+/\d+)*$")] | None = None
    demand_bytes_per_second: Positive | None = None
    demand_operations_per_second: Positive | None = None
    arrival_process: str | None = None
    burst_bytes: NonNegative | None = None
    idle_gap_seconds_p50: NonNegative | None = None
    idle_gap_seconds_p99: NonNegative | None = None
    think_time_ns: NonNegative | None = None
    working_set_bytes: Positive | None = None
    flush_every_writes: Count | None = None
    force_unit_access: Truth | None = None
    durability: Durability | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.operation is Operation.MIXED:
            if self.read_fraction is None:
                raise ValueError("read_fraction: a mixed workload must say its share of reads")
        elif self.read_fraction is not None and self.read_fraction != (
            1.0 if self.operation is Operation.READ else 0.0
        ):
            raise ValueError(
                f"read_fraction: {self.read_fraction:g} contradicts operation "
                f"{self.operation.value}; say mixed"
            )
        if self.demand_bytes_per_second and self.demand_operations_per_second:
            raise ValueError(
                "demand_operations_per_second: state the demand once, in bytes or in operations"
            )
        return self

    @property
    def share_of_reads(self) -> float:
        """1 for reads, 0 for writes, `read_fraction` for mixes."""
        if self.operation is Operation.MIXED:
            return self.read_fraction or 0.0
        return float(self.operation is Operation.READ)

    @property
    def at_full_speed(self) -> bool:
        """Whether nothing holds it back: no demand, no pauses, no flushes."""
        return not (
            self.think_time_ns
            or self.flush_every_writes
            or self.demand_bytes_per_second
            or self.demand_operations_per_second
        )


class HostSettings(Section):
    """What the host may set; None is left out.

    `power_limit_watts` is the cap that the drive itself keeps (NVMe Power Limit); 0 is none.
    """

    request_bytes: RequestBytes | None = None
    queue_depth: Depth | None = None
    jobs: Depth | None = None
    engine: Engine | None = None
    completion: Completion | None = None
    submission_polling: Truth | None = None
    scheduler: Scheduler | None = None
    power_state: PowerState | None = None
    post_write_power_state: PowerState | None = None
    power_limit_watts: NonNegative | None = None
    apst_enabled: Truth | None = None
    link_power_policy: LinkPowerPolicy | None = None
    standby_timer_seconds: NonNegative | None = None
    cpu_governor: str | None = None
    cpu_frequency_max_hertz: Positive | None = None
    cstate_limit: Count | None = None
    job_numa_node: Count | None = None
    filesystem: str | None = None
    mount_options: str | None = None

    @model_validator(mode="after")
    def _possible(self) -> Self:
        reason = impossible(
            self.engine,
            self.completion,
            queue_depth=self.queue_depth,
            scheduler=self.scheduler,
            submission_polling=self.submission_polling,
        )
        if reason:
            raise ValueError(f"{reason[0]}: {reason[1]}")
        return self


class Configuration(HostSettings):
    """What the host set for one run: the only candidate dimensions."""

    request_bytes: RequestBytes
    queue_depth: Depth = 1
    jobs: Depth = 1


class State(Section):
    """State of the drive: a consequence of its history, never a candidate dimension."""

    device_state: DeviceState | None = None
    fill_fraction: Fraction | None = None
    host_bytes_written_since_purge: NonNegative | None = None
    seconds_since_last_write: NonNegative | None = None


class Conditions(Section):
    """Conditions of a run; None means unknown, which widens intervals."""

    series_id: str | None = None
    session_id: str | None = None
    repeat_index: Count | None = None
    device_model: str | None = None
    device_serial_hash: str | None = None
    firmware: str | None = None
    percentage_used: NonNegative | None = None
    temperature_celsius_start: float | None = None
    temperature_celsius_mean: float | None = None
    temperature_celsius_max: float | None = None
    thermal_throttle_seconds: NonNegative | None = None
    pcie_generation: PositiveInt | None = None
    pcie_lanes: PositiveInt | None = None
    aspm_policy: str | None = None
    max_transfer_bytes: Positive | None = None
    volatile_write_cache: Truth | None = None
    power_loss_protection: Truth | None = None
    host_id: str | None = None
    cpu_model: str | None = None
    cpu_cores_available: PositiveInt | None = None
    kernel_version: str | None = None
    turbo_enabled: Truth | None = None
    smt_enabled: Truth | None = None
    device_numa_node: Count | None = None
    poll_queues: Count | None = None
    power_state_verified: Truth | None = None

    @property
    def session(self) -> str:
        """The session, or else the series that a run is of; empty where neither is known."""
        return self.session_id or self.series_id or ""


class AskedConditions(Conditions):
    """Conditions of a question; None means unknown.

    `interval_for` says what the intervals are about; None: what the question states says it
    (`model.evaluate.validity.interval_for`).
    """

    interval_for: IntervalFor | None = None


class Observations(Section):
    """What was observed, gross; what is net of idle is derived.

    Mixed runs also carry the performance fields per direction, prefixed `read_` and `write_`.
    `host_bytes_written` is of the whole run, ramp included: what background energy is owed to.
    `operations_per_joule` is I/O per joule of drive and CPU together, for sources that state
    neither rate nor watts; nothing is fitted to it, predictions are compared with it.
    """

    throughput_bytes_per_second: NonNegative | None = None
    iops: NonNegative | None = None
    latency_mean_ns: Positive | None = None
    latency_p50_ns: Positive | None = None
    latency_p99_ns: Positive | None = None
    latency_p999_ns: Positive | None = None
    read_throughput_bytes_per_second: NonNegative | None = None
    read_iops: NonNegative | None = None
    read_latency_mean_ns: Positive | None = None
    read_latency_p50_ns: Positive | None = None
    read_latency_p99_ns: Positive | None = None
    read_latency_p999_ns: Positive | None = None
    write_throughput_bytes_per_second: NonNegative | None = None
    write_iops: NonNegative | None = None
    write_latency_mean_ns: Positive | None = None
    write_latency_p50_ns: Positive | None = None
    write_latency_p99_ns: Positive | None = None
    write_latency_p999_ns: Positive | None = None
    device_commands_per_second: NonNegative | None = None
    merged_requests_per_second: NonNegative | None = None
    context_switches_per_second: NonNegative | None = None
    interrupts_per_second: NonNegative | None = None
    cpu_utilisation: NonNegative | None = None
    device_power_watts: NonNegative | None = None
    device_power_p99_watts: NonNegative | None = None
    cpu_power_watts: NonNegative | None = None
    dram_power_watts: NonNegative | None = None
    system_power_watts: NonNegative | None = None
    idle_power_watts: NonNegative | None = None
    background_energy_joules: NonNegative | None = None
    background_seconds: NonNegative | None = None
    host_bytes_written: NonNegative | None = None
    nand_bytes_written: NonNegative | None = None
    write_amplification: NonNegative | None = None
    operations_per_joule: NonNegative | None = None

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        for prefix in ("", "read_", "write_"):
            values = [
                (name, getattr(self, name))
                for name in (f"{prefix}latency_{q}_ns" for q in ("p50", "p99", "p999"))
                if getattr(self, name) is not None
            ]
            for (low_name, low), (high_name, high) in pairwise(values):
                if high < low:
                    raise ValueError(f"{high_name}: {high:g} is below {low_name} = {low:g}")
        return self


class Judgement(Section):
    """Whether the run may be believed; None = not judged.

    `verdict_reasons` are codes of `datasets.verdict.ReasonCode`, with commas between them.
    """

    verdict: Verdict | None = None
    verdict_reasons: Annotated[str, Field(pattern=r"^[a-z_]+(,[a-z_]+)*$")] | None = None


class Measurement(Section):
    """One configuration under one workload, and what was observed."""

    workload: Workload
    configuration: Configuration
    state: State = State()
    conditions: Conditions = Conditions()
    observations: Observations
    judgement: Judgement = Judgement()

    def concurrency(self) -> int:
        """Requests in flight, queue depth times jobs."""
        return self.configuration.queue_depth * self.configuration.jobs

    @property
    def at_full_speed(self) -> bool:
        """As `Workload.at_full_speed`."""
        return self.workload.at_full_speed

    def littles_ratio(self) -> float | None:
        """Throughput x mean latency / concurrency; 1 by Little's law, None where unknown."""
        seen = self.observations
        if seen.iops is None or seen.latency_mean_ns is None:
            return None
        return seen.iops * seen.latency_mean_ns * 1e-9 / self.concurrency()


SECTIONS: dict[str, type[Section]] = {
    "workload": Workload,
    "configuration": Configuration,
    "state": State,
    "conditions": Conditions,
    "observations": Observations,
    "judgement": Judgement,
}
"""The six kinds in the order of their columns."""

COLUMNS: dict[str, str] = {
    name: section for section, kind in SECTIONS.items() for name in kind.model_fields
}
"""Every field name and the kind it belongs to, in column order."""


def to_row(measurement: Measurement) -> dict[str, Any]:
    """Flatten a measurement to one value per column (plain Python values, None = unknown)."""
    row: dict[str, Any] = {}
    for section in SECTIONS:
        row.update(getattr(measurement, section).model_dump(mode="json"))
    return row


def from_row(row: dict[str, Any], *, where: str = "row") -> Measurement:
    """Build a measurement from flat columns; None and missing columns are unknown.

    Raises:
        InputError: An unknown column or an impossible value; the message names `where`, the
            field and what was found.
    """
    parts: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
    for name, value in row.items():
        section = COLUMNS.get(name)
        if section is None:
            raise InputError(f"{where}: unknown field {name!r}", field=name)
        if value is not None:
            parts[section][name] = value
    try:
        return Measurement.model_validate(parts)
    except ValidationError as error:
        raise validation_error(error, where) from None


def _paths(model: type[BaseModel]) -> Iterator[str]:
    """The dotted paths of a model's fields and of those of the models in it."""
    for name, field in model.model_fields.items():
        yield name
        for kind in (field.annotation, *get_args(field.annotation)):
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield from (f"{name}.{path}" for path in _paths(kind))


NO_NUMBER = {
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_parsing": "must be a number",
}
"""Complaints of pydantic about text that is no number, in plain words."""


def validation_error(
    error: ValidationError, where: str, model: type[BaseModel] | None = None
) -> InputError:
    """Turn pydantic's first complaint into one line that names place, field and value.

    Args:
        model: What was validated: where an unknown field may belong. Default: a measurement.
    """
    faults = error.errors(include_url=False)
    first = faults[0]
    if first["type"] == "missing":  # maybe because its name is misspelt
        first = next((each for each in faults if each["type"] == "extra_forbidden"), first)
    # a choice between kinds of values adds the kind to the place, as "literal['unbounded']"
    parts = [str(part) for part in first["loc"] if part not in SECTIONS]
    path = ".".join(part for part in parts if "[" not in part)
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        known = COLUMNS if model is None else _paths(model)
        hint = close_names(parts[-1], known) or "; leave it out"
        return InputError(f"{where}: {path}: unknown field{hint}", field=path)
    if not path and ": " in message:  # raised by a validator that names its field itself
        path, message = message.split(": ", 1)
    if first["type"] in NO_NUMBER:
        message = NO_NUMBER[first["type"]] + (" of bytes" if path.endswith("_bytes") else "")
    value = "" if isinstance(first["input"], dict | BaseModel) else f" (found {first['input']!r})"
    return InputError(f"{where}: {path}: {message}{value}", field=path or None)
