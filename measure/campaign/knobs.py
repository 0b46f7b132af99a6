"""The knobs of a sweep and the ways to say which values they take."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from iojoule.datasets.importers.units import UNITS, parse_fio_size
from iojoule.datasets.schema import DIGITS_MAX, Section

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
    """Bytes of a number, or of a text like `4KiB`, `1MB` or fio's `4k`.

    Raises:
        ValueError: It is a text and no size.
    """
    if not isinstance(value, str):
        return value
    found = _SIZE.fullmatch(value)
    unit = UNITS.get(found[2]) if found else None
    is_size = unit is not None and unit.dimension == UNITS["B"].dimension
    if found and unit is not None and is_size and len(found[1]) <= DIGITS_MAX:
        return int(found[1]) * int(unit.factor)
    size = parse_fio_size(value)
    if size is None:
        raise ValueError(f"{value!r} is no size; say a number of bytes or something like 4KiB")
    return size


def read_mix(value: Any) -> tuple[str, int]:
    """A distribution of sizes such as `4KiB/60:64KiB/40`: with bytes, and its mean size.

    The mean is that of the requests, to the next 512 B.

    Raises:
        ValueError: It is none, or its shares are not 100 percent together.
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
    """The values of one knob, in order; `low` and `high` where they came from a range.

    Attributes:
        values: What a full product takes.
        logarithmic: Whether a sample spreads evenly over the logarithm.
    """

    values: Annotated[tuple[Value, ...], Field(min_length=1)]
    logarithmic: bool = False


def read_values(value: Any) -> Any:
    """Values as a plan writes them: one, a list, or a range `{from, to, factor|step}`.

    Raises:
        ValueError: A range that does not get from one end to the other.
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
    whole = all(isinstance(one, int) for one in (low, high, stride))
    return {
        "values": tuple(values if whole else [float(one) for one in values]),
        "logarithmic": "factor" in value,
    }


Written = Annotated[KnobValues, BeforeValidator(read_values)]
"""Knob values as a plan writes them."""
