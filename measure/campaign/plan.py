"""Measurement plans: TOML files that say what to vary, how long, and with what care.

`docs/measuring.md` documents every field with an example.
"""

from __future__ import annotations

import math
import re
import tomllib
from enum import StrEnum
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from iojoule.datasets.importers.units import UNITS, parse_fio_size
from iojoule.datasets.input_file import read_input_text, toml_of
from iojoule.datasets.schema import (
    DIGITS_MAX,
    Count,
    NonNegative,
    Positive,
    PositiveInt,
    Section,
    validation_error,
)
from iojoule.measure.errors import CampaignError
from iojoule.measure.host.host_files import SETTABLE

Value = str | bool | int | float

KNOBS: dict[str, str] = {
    "operation": "workload",
    "read_fraction": "workload",
    "mix_dispatch": "workload",
    "pattern": "workload",
    "demand_bytes_per_second": "workload",
    "demand_operations_per_second": "workload",
    "arrival_process": "workload",
    "think_time_ns": "workload",
    "working_set_bytes": "workload",
    "request_bytes_mix": "workload",
    "flush_every_writes": "workload",
    "force_unit_access": "workload",
    "request_bytes": "configuration",
    "queue_depth": "configuration",
    "jobs": "configuration",
    "engine": "configuration",
    "completion": "configuration",
    "submission_polling": "configuration",
    "scheduler": "configuration",
    "power_state": "configuration",
    "post_write_power_state": "configuration",
    "power_limit_watts": "configuration",
    "apst_enabled": "configuration",
    "link_power_policy": "configuration",
    "standby_timer_seconds": "configuration",
    "cpu_governor": "configuration",
    "cpu_frequency_max_hertz": "configuration",
    "cstate_limit": "configuration",
    "job_numa_node": "configuration",
}
"""Every knob of a sweep and the kind of field it is; the words are those of the schema."""

SIZES = frozenset({"request_bytes", "working_set_bytes"})
"""Knobs whose values may be written with a unit."""

ALL_STATES = "operational"
"""Value of power_state that stands for every operational state the drive has."""

_SIZE = re.compile(r"\s*(\d+)\s*([A-Za-z]+)\s*")


def read_size(value: Any) -> Any:
    """Bytes of a number or a text such as `4KiB`, `1MB`, `4k` (fio).

    Raises ValueError if it is no size.
    """
    if not isinstance(value, str):
        return value
    match = _SIZE.fullmatch(value)
    unit = UNITS.get(match[2]) if match else None
    is_size = unit is not None and unit.dimension == UNITS["B"].dimension
    if match and unit is not None and is_size and len(match[1]) <= DIGITS_MAX:
        return int(match[1]) * int(unit.factor)
    size = parse_fio_size(value)
    if size is None:
        raise ValueError(f"{value!r} is no size; say a number of bytes or something like 4KiB")
    return size


def read_mix(value: Any) -> tuple[str, int]:
    """A mix of sizes such as `4KiB/60:64KiB/40` in bytes, and its mean to the next 512 B.

    Raises ValueError if it is none, or its shares do not add up to 100 percent.
    """
    parts = [part.partition("/") for part in str(value).split(":")]
    if not all(share.isdecimal() and len(share) <= 3 for _, _, share in parts):
        raise ValueError(
            f"{value!r} is no distribution; say sizes and percent, as 4KiB/60:64KiB/40"
        )
    pairs = [(int(read_size(size)), int(share)) for size, _, share in parts]
    if sum(share for _, share in pairs) != 100:
        raise ValueError(f"{value!r}: the shares are not 100 percent together")
    mean = sum(size * share for size, share in pairs) / 100
    return ":".join(f"{size}/{share}" for size, share in pairs), max(512, round(mean / 512) * 512)


class KnobValues(Section):
    """The values of one knob, in order; `logarithmic` samples spread evenly over the logarithm."""

    values: Annotated[tuple[Value, ...], Field(min_length=1)]
    logarithmic: bool = False


def read_values(value: Any) -> Any:
    """Values of a plan: one, a list, or `{from, to, factor|step}`.

    Raises ValueError if a range is empty.
    """
    if isinstance(value, KnobValues):
        return value
    if isinstance(value, dict):
        return _range(value)
    listed = value if isinstance(value, list | tuple) else [value]
    if not listed:
        raise ValueError("an empty list leaves nothing to measure")
    return {"values": tuple(listed)}


def _range(value: dict[str, Any]) -> dict[str, Any]:
    extra = set(value) - {"from", "to", "factor", "step"}
    if extra or "from" not in value or "to" not in value or len(value) != 3:
        raise ValueError(
            "a range is written { from = 1, to = 256, factor = 2 }, or with step instead of factor"
        )
    low, high = read_size(value["from"]), read_size(value["to"])
    if not low <= high:
        raise ValueError(f"a range from {low} to {high} holds nothing")
    if "factor" in value:
        stride = value["factor"]
        if stride <= 1 or low <= 0:
            raise ValueError("a range by factor begins above 0 and its factor is above 1")
        count = math.floor(math.log(high / low) / math.log(stride) + 1e-9) + 1
        values = [low * stride**index for index in range(count)]
    else:
        stride = value["step"]
        if stride <= 0:
            raise ValueError("a step is above 0")
        values = [low + stride * index for index in range(math.floor((high - low) / stride) + 1)]
    whole = all(isinstance(number, int) for number in (low, high, stride))
    return {
        "values": tuple(values if whole else [float(value) for value in values]),
        "logarithmic": "factor" in value,
    }


Written = Annotated[KnobValues, BeforeValidator(read_values)]
"""Knob values as a plan writes them."""


REPEATS_SHARE, REPEATS_LEAST = 0.2, 3
"""Repeats of doubtful runs where the plan does not say: a campaign of which more is doubtful has a
cause that repeating does not mend."""

REPEATS_OF_ONE_MAX = 2
"""A run that is doubtful three times is so for a reason that stays."""


class Order(StrEnum):
    """In which order runs are made."""

    RANDOM = "random"
    AS_WRITTEN = "as_written"


class Purge(StrEnum):
    """How a drive is emptied before it is preconditioned."""

    NONE = "none"
    TRIM = "trim"
    FORMAT = "format"


class RunPlan(Section):
    """How one run is made.

    Attributes:
        ramp_seconds: Unmeasured time before it.
        io_bytes: Ends a run earlier after this transfer; None = by time only.
        verify_littles_law: Whether Little's law judges runs.
        data: What is written: `random` (incompressible), or `zero`.
        offload: Whether a separate thread submits the demand, so that latency counts from the
            intended start; engines of io_uring do without.
    """

    seconds: Positive = 30.0
    ramp_seconds: NonNegative = 5.0
    io_bytes: PositiveInt | None = None
    fsync_at_end: bool = False
    verify_littles_law: bool = True
    data: Literal["random", "zero"] = "random"
    offload: bool = True

    _io_bytes = field_validator("io_bytes", mode="before")(read_size)


class Target(Section):
    """Which part of the drive is used: from `offset_bytes`, `size_bytes` long (None = all)."""

    offset_bytes: Count = 0
    size_bytes: PositiveInt | None = None

    _sizes = field_validator("offset_bytes", "size_bytes", mode="before")(read_size)


class Settle(Section):
    """Waits between runs.

    Attributes:
        baseline_seconds: Idle time measured in every power state, before the first run and after
            the last; 0 = no baseline.
        after_writes_seconds_max: Longest wait after writes for idle power to return; 0 = no wait.
        window_seconds: Width of the mean that has to be back at idle power.
        tolerance: Allowed excess over the baseline, as a fraction.
        temperature_celsius_max: Runs start below it; None = at any temperature.
    """

    baseline_seconds: NonNegative = 15.0
    seconds: NonNegative = 1.0
    after_writes_seconds_max: NonNegative = 180.0
    window_seconds: Positive = 1.0
    tolerance: Positive = 0.05
    temperature_celsius_max: float | None = None
    temperature_seconds_max: NonNegative = 600.0


class Precondition(Section):
    """How the drive is brought into a steady state (SNIA SSS PTS 2.0.2, clauses 3 and 4).

    Attributes:
        until_steady: Whether writes of each pattern go on until throughput and power are steady
            before the runs of that pattern.
        rounds_max: A drive that is not steady by then is measured anyway, and marked.
    """

    purge: Purge = Purge.NONE
    fill_passes: Annotated[int, Field(ge=0, le=10)] = 0
    fill_request_bytes: PositiveInt = 131072
    until_steady: bool = False
    round_seconds: Positive = 60.0
    rounds_max: Annotated[int, Field(ge=5, le=100)] = 25
    random_request_bytes: PositiveInt = 4096

    _sizes = field_validator("fill_request_bytes", "random_request_bytes", mode="before")(read_size)

    @property
    def writes(self) -> bool:
        """Whether it destroys what is on the drive."""
        return self.purge is not Purge.NONE or self.fill_passes > 0 or self.until_steady


def _declared(path: str) -> str:
    if not any(files.hold(Path(path)) for files in SETTABLE):
        raise ValueError(
            f"{path}: is no file that a plan may set; it may set {', '.join(map(str, SETTABLE))}"
        )
    return path


HostFile = Annotated[str, AfterValidator(_declared)]


class HostPlan(Section):
    """What is set on drive and host for the whole campaign, and restored after it.

    Attributes:
        cpus: Processors that fio's jobs are pinned to, as in `0-3,8`.
        queue: Attributes under /sys/block/*/queue, such as nr_requests or nomerges.
        files: Other files that `measure.host.host_files` declares, such as the ASPM policy.
        apm_level: Advanced Power Management of a SATA drive; below 128 a disk may stop its
            platters by itself (hdparm(8), -B).
        spdk_plugin: The user's own fio plugin of SPDK, needed for engine spdk.
        spdk_address: For instance `trtype=PCIe traddr=0000.01.00.0`.
        spdk_verifies_power_state: Whether that plugin sets and reads the power state itself.
    """

    cpus: Annotated[str, Field(pattern=r"^\d+(-\d+)?(,\d+(-\d+)?)*$")] | None = None
    numa_memory_node: Count | None = None
    queue: dict[Annotated[str, Field(pattern=r"^[a-z_]+$")], str | int] = Field(
        default_factory=dict
    )
    files: dict[HostFile, str | int] = Field(default_factory=dict)
    volatile_write_cache: bool | None = None
    apm_level: Annotated[int, Field(ge=1, le=255)] | None = None
    spdk_plugin: str | None = None
    spdk_address: str | None = None
    spdk_verifies_power_state: bool = False


class Sweep(Section):
    """A set of runs: the product of its knobs, or a sample of it.

    Attributes:
        samples: Number of points of a scrambled Sobol sequence; None = all.
        power_states: Short for the knob power_state = all operational states of the drive.
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")]
    samples: PositiveInt | None = None
    seconds: Positive | None = None
    ramp_seconds: NonNegative | None = None
    repeats: PositiveInt | None = None
    knobs: dict[str, Written]

    @model_validator(mode="before")
    @classmethod
    def _gather(cls, data: Any) -> Any:
        """In the file knobs stand beside the name; a word that is neither is refused here."""
        if not isinstance(data, dict) or "knobs" in data:
            return data
        own = {key: value for key, value in data.items() if key in cls.model_fields}
        rest = {key: value for key, value in data.items() if key not in cls.model_fields}
        for key in rest:
            if key not in KNOBS:
                raise ValueError(
                    f"{key}: is neither a knob nor a field of a sweep; knobs: {', '.join(KNOBS)}"
                )
        return {**own, "knobs": rest}

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if "operation" not in self.knobs:
            raise ValueError("operation: say what the requests do: read, write or mixed")
        if ("request_bytes" in self.knobs) == ("request_bytes_mix" in self.knobs):
            raise ValueError("request_bytes: say how large a request is, here or as a mix of sizes")
        return self


class Plan(Section):
    """A measurement plan.

    Attributes:
        seed: Of the order and of samples: the same seed gives the same campaign.
        order: Random protects against drift; as_written is for debugging.
        failures_in_a_row_max: This many consecutive failed runs end the campaign.
        bytes_written_max: The campaign ends before it has written more; None = no bound.
        repeats_of_doubtful_max: Total repeats of doubtful or failed runs by one command, each at
            most twice; None = a fifth of the runs, at least 3.
    """

    schema_version: Literal[1]
    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")]
    title: str = ""
    seed: Count = 1
    repeats: PositiveInt = 2
    order: Order = Order.RANDOM
    failures_in_a_row_max: PositiveInt = 5
    bytes_written_max: PositiveInt | None = None
    repeats_of_doubtful_max: Count | None = None
    run: RunPlan = RunPlan()
    target: Target = Target()
    settle: Settle = Settle()
    precondition: Precondition = Precondition()
    host: HostPlan = HostPlan()
    sweep: Annotated[list[Sweep], Field(min_length=1)]

    _bytes = field_validator("bytes_written_max", mode="before")(read_size)

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        names = [sweep.name for sweep in self.sweep]
        if len(set(names)) != len(names):
            raise ValueError("sweep: two have the same name; give each its own")
        return self

    @property
    def writes(self) -> bool:
        """Whether it destroys what is on the drive."""
        return self.precondition.writes or any(
            value != "read" for sweep in self.sweep for value in sweep.knobs["operation"].values
        )

    def repeats_of_doubtful(self, runs: int) -> int:
        """How often a command makes doubtful or failed runs again, in a campaign of `runs`."""
        if self.repeats_of_doubtful_max is not None:
            return self.repeats_of_doubtful_max
        return max(REPEATS_LEAST, math.ceil(REPEATS_SHARE * runs))


def load_plan(name: str) -> tuple[Plan, str]:
    """A plan, shipped or from a file, and its text.

    Raises CampaignError if it is missing or invalid.
    """
    path = Path(name)
    if path.suffix == ".toml" or "/" in name:
        try:
            text = read_input_text(path)
        except (OSError, UnicodeDecodeError) as error:
            raise CampaignError(f"{path}: cannot be read ({error})") from None
        return parse_plan(text, str(path)), text
    shipped = shipped_plans()
    if name not in shipped:
        raise CampaignError(
            f"no plan is named {name!r}; shipped: {', '.join(shipped)}; a plan of yours is a file "
            "ending in .toml"
        )
    text = (resources.files("iojoule.measure") / "plans" / f"{name}.toml").read_text()
    return parse_plan(text, name), text


def shipped_plans() -> list[str]:
    """Names of the plans that ship."""
    folder = resources.files("iojoule.measure") / "plans"
    return sorted(
        entry.name.removesuffix(".toml")
        for entry in folder.iterdir()
        if entry.name.endswith(".toml")
    )


def parse_plan(text: str, where: str) -> Plan:
    """Read the text of a plan; raises CampaignError as `load_plan`."""
    try:
        return Plan.model_validate(toml_of(text))
    except tomllib.TOMLDecodeError as error:
        raise CampaignError(f"{where}: is not TOML: {error}") from None
    except ValidationError as error:
        message = validation_error(error, where)
        raise CampaignError(message.message, field=message.field) from None
