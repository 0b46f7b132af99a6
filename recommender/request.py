"""The request: the workload, the current configuration, the free knobs and the SLA."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    BeforeValidator,
    Field,
    PlainSerializer,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from iojoule.datasets.errors import InputError
from iojoule.datasets.input_file import read_input_text, toml_of
from iojoule.datasets.schema import (
    YEAR_SECONDS,
    Configuration,
    Count,
    Depth,
    HostSettings,
    NonNegative,
    Positive,
    PositiveInt,
    PowerState,
    RequestBytes,
    Section,
    State,
    Truth,
    Workload,
    number,
    validation_error,
)
from iojoule.datasets.vocabulary import Completion, Engine, LinkPowerPolicy, Operation, Scheduler
from iojoule.model.evaluate.quantities import NOT_BELOW
from iojoule.recommender.factors import Factors, Objective
from iojoule.recommender.sla import Sla, parse_sla

LEAST_SAVING_PERCENT = 2.0
"""Twice the share within which no profile tells configurations apart: two questions about the same
work that are asked on different days then do not change a host to and fro."""


LEAST_DEMAND = 1e-9
"""An operation, or a byte, in thirty years: what a joule does for less no number says."""


class Scope(StrEnum):
    """Whose energy counts."""

    DEVICE = "device"
    DEVICE_CPU = "device_cpu"
    SYSTEM = "system"


T = TypeVar("T")


def _choices(value: Any) -> Any:
    """Accept a list, one value or "all" (kept as an empty tuple: whatever makes sense)."""
    if isinstance(value, str) and value == "all":
        return ()
    if value is None or isinstance(value, tuple):
        return value
    if not isinstance(value, list):
        return (value,)
    if not value:
        raise ValueError('an empty list leaves nothing to choose; list values or say "all"')
    return tuple(value)


def _read_sla(value: Any) -> Any:
    """An SLA as people write it, or the fields."""
    return parse_sla(value) if isinstance(value, str) else value


def _stated(value: tuple[Any, ...] | None) -> Any:
    return "all" if value == () else value


Choices = Annotated[
    tuple[T, ...] | None,
    BeforeValidator(_choices),
    PlainSerializer(_stated, when_used="unless-none"),
]
"""Values to choose from; empty means all that make sense, None that the knob is not free."""


class Free(Section):
    """The knobs that may change, each with its candidate values or "all".

    Only what the host may set and what a profile can predict: nothing here can weaken durability
    (flushes, forced unit access, journals), which is a fact of the workload. Governor, clock and
    C-state limit touch all that runs on the host: they vary only where they are listed.
    """

    request_bytes: Choices[RequestBytes] = None
    queue_depth: Choices[Depth] = None
    jobs: Choices[Depth] = None
    engine: Choices[Engine] = None
    completion: Choices[Completion] = None
    submission_polling: Choices[Truth] = None
    scheduler: Choices[Scheduler] = None
    power_state: Choices[PowerState] = None
    power_limit_watts: Choices[NonNegative] = None
    link_power_policy: Choices[LinkPowerPolicy] = None
    standby_timer_seconds: Choices[NonNegative] = None
    cpu_governor: Choices[str] = None
    cpu_frequency_max_hertz: Choices[Positive] = None
    cstate_limit: Choices[Count] = None


class Current(HostSettings):
    """What runs today; what is left out takes the profile's default."""


class Observed(Section):
    """Latency of today's configuration at the demand, as measured; the rest is predicted."""

    latency_mean_ns: Positive | None = None
    latency_p50_ns: Positive | None = None
    latency_p99_ns: Positive | None = None
    latency_p999_ns: Positive | None = None

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        known = self.stated
        for upper, lowers in NOT_BELOW.items():
            for lower in lowers:
                if upper in known and known[upper] < known.get(lower, 0.0):
                    raise ValueError(
                        f"{upper}: {known[upper]:g} ns is below {lower} = {known[lower]:g} ns; the "
                        "two are swapped or one of them is in another unit"
                    )
        return self

    @property
    def stated(self) -> dict[str, float]:
        """Latencies in ns, by quantity."""
        return self.model_dump(exclude_none=True)


UNMODELLED = tuple(name for name in Current.model_fields if name not in Free.model_fields)
"""Configuration fields whose effect no profile knows: kept as they are."""


_REMEDIES = {
    "horizon_seconds": "say how long the demand lasts, or leave it out for a year",
    "concurrency_max": 'say how many requests the application can keep in flight, or "unbounded", '
    "or leave it out for as many as today",
}


class WorkloadProfile(Section):
    """One question to the recommender.

    Attributes:
        name: How the answer calls the workload.
        workload: What the application does, demand included; absent demand means as fast as
            possible.
        current: What runs today; empty where nothing was said. A saving is stated only against a
            stated one.
        observed: Latency of `current` at the demand, as measured on the drive in question; what its
            prediction errs corrects those of similar configurations.
        free: What may change; None takes a default set (see `candidates.DEFAULT_FREE`).
        sla: What must hold; fields, or a text as in `recommender.sla_text`.
        state: State of the drive, a fact for writes; where nothing is said of `device_state` and
            of bytes written, it follows from the demand.
        horizon_seconds: How long the demand lasts: what it writes until then decides the state.
        scope: Whose energy counts.
        objective: What is made small; None means watts where a demand is stated, else joules per
            useful GB.
        factors: What energy and wear cost, for objectives and savings in money and CO2.
        concurrency_max: Most requests of the application (`useful_request_bytes` each) that it can
            keep in flight, or "unbounded". Left out: as many as `current` keeps in flight; without
            `current` nothing is excluded and each row says how many it needs.
        write_amplification: Flash bytes per host byte where known.
        percentage_used: Rated endurance already used, percent.
        least_saving_percent: What a change must save of the objective; for less, today's
            configuration stays.
        notes: What a loader could not express; repeated in the answer.
    """

    name: str = "workload"
    workload: Workload
    current: Current = Current()
    observed: Observed = Observed()
    free: Free | None = None
    sla: Annotated[Sla, BeforeValidator(_read_sla, json_schema_input_type=Sla | str)] = Sla()
    state: State = State()
    horizon_seconds: Positive = YEAR_SECONDS
    scope: Scope = Scope.DEVICE_CPU
    objective: Objective | None = None
    factors: Factors = Factors()
    concurrency_max: PositiveInt | Literal["unbounded"] | None = None
    write_amplification: Positive | None = None
    percentage_used: NonNegative | None = None
    least_saving_percent: Annotated[float, Field(ge=0, lt=100), number] = LEAST_SAVING_PERCENT
    notes: tuple[str, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _former_names(cls, data: Any) -> Any:
        """Profiles of the first version call `concurrency_max` `max_concurrency`."""
        if isinstance(data, dict) and "max_concurrency" in data:
            data = dict(data)
            limit = data.pop("max_concurrency")
            data.setdefault("concurrency_max", limit)
        return data

    @field_validator("horizon_seconds", "concurrency_max", mode="before")
    @classmethod
    def _not_nothing(cls, value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, int | float) and not isinstance(value, bool) and value <= 0:
            raise ValueError(f"{value:g} is nothing to serve; {_REMEDIES[str(info.field_name)]}")
        return value

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        useful, limit = self.workload.useful_request_bytes, self.workload.request_bytes_coalescible
        if useful is not None and limit is not None and limit < useful:
            raise ValueError(
                f"request_bytes_coalescible: {limit} is below useful_request_bytes = {useful}; "
                "leave it out where requests cannot be enlarged"
            )
        current = self.current.request_bytes
        if useful is not None and current is not None and current < useful:
            raise ValueError(
                f"current.request_bytes: {current} is below useful_request_bytes = {useful}; say "
                "the size that the application itself asks for in both"
            )
        for name in ("demand_bytes_per_second", "demand_operations_per_second"):
            demand = getattr(self.workload, name)
            if demand is not None and demand < LEAST_DEMAND:
                raise ValueError(
                    f"workload.{name}: {demand:g} is no demand to choose a configuration by; "
                    "leave it out where work is done as fast as possible"
                )
        self._sla_fits()
        self._directions_fit()
        if self.observed.stated and (self.as_fast_as_possible or not self.has_current):
            raise ValueError(
                "observed: is the latency of today's configuration at the demand; state both "
                "([current], workload.demand_bytes_per_second), or leave it out"
            )
        return self

    def _directions_fit(self) -> None:
        """A bound on reads holds for what is read: no profile predicts the directions of a mix."""
        operation = self.workload.operation.value
        for name, direction in self.sla.directions.items():
            if operation == Operation.MIXED:
                raise ValueError(
                    f"sla.{name}: for {direction}s of a mix alone nothing is predicted; bound the "
                    f"whole mix (leave out {direction!r}), or ask for a workload of {direction}s"
                )
            if operation != direction:
                raise ValueError(
                    f"sla.{name}: is meant for {direction}s, and the workload only does "
                    f"{operation}s; leave the bound out, or correct the operation"
                )

    def _sla_fits(self) -> None:
        by_bytes, by_operations = self.sla.throughput_bytes_per_second_min, self.sla.iops_min
        size = self.workload.useful_request_bytes or self.current.request_bytes
        if by_bytes is None or by_operations is None or size is None:
            return
        if abs(by_bytes - by_operations * size) > 0.01 * by_bytes:
            raise ValueError(
                f"sla.iops_min: {by_operations:g} operations of {size} bytes are "
                f"{by_operations * size:g} bytes a second, but throughput_bytes_per_second_min "
                f"says {by_bytes:g}; state one of the two"
            )

    @property
    def has_current(self) -> bool:
        """Whether anything was said about what runs today."""
        return bool(self.current.model_dump(exclude_none=True))

    def most_bytes_in_flight(self, current: Configuration) -> float:
        """Useful bytes that the application can have in flight; infinite where nothing was said.

        Counted in bytes, so that merging requests invents no clients.

        Args:
            current: What runs today, every default filled in.
        """
        if self.concurrency_max == "unbounded":
            return math.inf
        if self.concurrency_max is not None:
            useful = self.workload.useful_request_bytes or current.request_bytes
            return float(self.concurrency_max * useful)
        if self.has_current:
            return float(current.queue_depth * current.jobs * current.request_bytes)
        return math.inf

    @property
    def as_fast_as_possible(self) -> bool:
        """Whether no demand is stated."""
        stated = self.workload
        return (
            stated.demand_bytes_per_second is None and stated.demand_operations_per_second is None
        )

    @property
    def read_fraction(self) -> float:
        """Share of reads, 0 to 1."""
        if self.workload.operation is Operation.READ:
            return 1.0
        if self.workload.operation is Operation.WRITE:
            return 0.0
        return float(self.workload.read_fraction or 0.0)

    @property
    def effective_objective(self) -> Objective:
        """The objective with its default filled in."""
        if self.objective is not None:
            return self.objective
        if self.as_fast_as_possible:
            return Objective.JOULES_PER_USEFUL_GB
        return Objective.WATTS


SECONDS = {
    "s": 1.0,
    "sec": 1.0,
    "second": 1.0,
    "min": 60.0,
    "minute": 60.0,
    "h": 3600.0,
    "hour": 3600.0,
    "d": 86400.0,
    "day": 86400.0,
    "week": 604800.0,
    "y": YEAR_SECONDS,
    "year": YEAR_SECONDS,
}
"""Units of a length of time; plurals likewise."""


def parse_seconds(text: str, field: str) -> float:
    """Seconds from a text such as `90s`, `15 min`, `24 h`, `365 d`, or a number of seconds.

    Raises:
        InputError: Not of that form, or not above 0; names `field`.
    """
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)\s*([a-zA-Z]*)\s*", text)
    unit = match[2].lower() if match else ""
    scale = SECONDS.get(unit or "s", SECONDS.get(unit.removesuffix("s")))
    if match is None or scale is None or not float(match[1]) > 0:
        raise InputError(
            f"{field}: {text!r} is no length of time above 0; write it as 90s, 15 min, 24 h or "
            "365 d",
            field=field,
        )
    return float(match[1]) * scale


def parse_workload(data: Any, where: str = "workload profile") -> WorkloadProfile:
    """Validate a workload profile from plain data.

    Raises:
        InputError: An unknown field, an impossible value or a contradiction; the message names
            `where` and the field.
    """
    try:
        return WorkloadProfile.model_validate(data)
    except ValidationError as error:
        raise validation_error(error, where, WorkloadProfile) from None


_JSON_SECTION = re.compile(r'"workload"\s*:\s*\{')
_TOML_SECTION = re.compile(r"^\[workload\]", re.MULTILINE)


def load_workload(path: Path, *, job: str | None = None) -> WorkloadProfile:
    """Read a workload profile by the ending of its name: .toml, .json, .fio or .ini.

    Args:
        path: The file.
        job: Section of a fio job file where it holds several.

    Raises:
        InputError: The file is missing, damaged, of another kind, or says something impossible.
    """
    ending = path.suffix.lower()
    if ending in (".fio", ".ini", ".job"):
        from iojoule.recommender.workloads.fio_job import from_fio_job

        return from_fio_job(path, job=job)
    if job is not None:
        raise InputError(f"{path}: only a fio job file has jobs to choose from", field="job")
    if ending not in (".json", ".toml"):
        raise InputError(
            f"{path}: a workload profile is a .toml or .json file or a fio job file (.fio)"
        )
    return parse_workload_text(read_text(path), str(path), as_json=ending == ".json")


def is_workload_text(text: str) -> bool:
    """Whether a text without a name is a workload profile, by its section `workload`."""
    return bool(_JSON_SECTION.search(text) if is_json(text) else _TOML_SECTION.search(text))


def is_json(text: str) -> bool:
    """Whether a text is a JSON object rather than TOML, by its first character."""
    return text.lstrip().startswith("{")


def parse_workload_text(text: str, where: str, *, as_json: bool) -> WorkloadProfile:
    """Read the text of a workload profile, JSON or TOML.

    Raises:
        InputError: It is damaged or says something impossible; the message names `where`.
    """
    if as_json:
        try:
            return WorkloadProfile.model_validate_json(text)
        except ValidationError as error:
            raise validation_error(error, where, WorkloadProfile) from None
    try:
        data = toml_of(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{where}: not a complete TOML file: {error}") from None
    return parse_workload(data, where)


def lines_of(text: str) -> Iterator[str]:
    """The lines of a text one after the other, so that who stops early pays for no more."""
    start = 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield text[start:end].removesuffix("\r")
        start = end + 1


def read_text(path: Path) -> str:
    """Read a text file.

    Raises:
        InputError: It is missing, unreadable or not text.
    """
    try:
        return read_input_text(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: not a text file") from None


def with_fields(
    workload: WorkloadProfile, changes: Mapping[str, Any], where: str
) -> WorkloadProfile:
    """The same question with fields replaced; of the two units of a demand the last one counts.

    Args:
        workload: The question.
        changes: Dotted field -> value, such as `sla.latency_p99_ns_max`.
        where: Names their origin in messages.

    Raises:
        InputError: A change is not what it must be; names the field.
    """
    if not changes:
        return workload
    data = workload.model_dump(exclude_unset=True)
    for dotted, value in changes.items():
        *sections, name = dotted.split(".")
        place = data
        for section in sections:
            inner = place.setdefault(section, {})
            if inner is None:
                inner = place[section] = {}
            if not isinstance(inner, dict):
                raise InputError(f"{where}: {dotted}: {section} has no fields", field=dotted)
            place = inner
        place[name] = value
        if dotted in DEMAND_FIELDS and value is not None:  # a demand is stated once, the last time
            other = DEMAND_FIELDS[1 - DEMAND_FIELDS.index(dotted)]
            place.pop(other.rpartition(".")[2], None)
    return parse_workload(data, where)


DEMANDS = ("demand_bytes_per_second", "demand_operations_per_second")
DEMAND_FIELDS = tuple(f"workload.{name}" for name in DEMANDS)


class Loop(StrEnum):
    """What the rate of a workload means."""

    OPEN = "open"
    """A demand: so much is to be done a second, whatever the drive."""
    CLOSED = "closed"
    """As fast as the drive answers: a faster one would be given more to do."""


def with_loop(profile: WorkloadProfile, loop: Loop | None) -> WorkloadProfile:
    """The workload with its demand taken away in a closed loop.

    Raises:
        InputError: An open loop is asked of a workload that states no demand.
    """
    if loop is None:
        return profile
    if loop is Loop.OPEN:
        if profile.as_fast_as_possible:
            raise InputError(
                f"{profile.name}: no rate is known, so there is no demand to be met; leave "
                "--loop open out, or state the demand with `recommend --set "
                "workload.demand_bytes_per_second=...`",
                field="loop",
            )
        return profile
    freed = profile.workload.model_copy(update=dict.fromkeys(DEMANDS))
    return profile.model_copy(update={"workload": freed, "observed": Observed()})
