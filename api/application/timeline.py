"""A drive along a time line that a user writes down: throughput, watts and state over time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from iojoule import __version__
from iojoule.api.application.fields import check_names, read_columns
from iojoule.api.application.predictors import Predictors
from iojoule.datasets.errors import InputError
from iojoule.model.evaluate.bands import Interval
from iojoule.model.evaluate.frame import USED, make_frame
from iojoule.model.evaluate.timeline import Phase, Trajectory, follow
from iojoule.model.evaluate.validity import FIELDS

CACHING, COLLECTING, WORK, REST = "caching", "collecting", "background work", "rest"
"""What a drive does in a step."""

SAID_BY_PHASES = (
    "seconds_since_last_write",
    "device_state",
    "burst_bytes",
    "think_time_ns",
    "idle_gap_seconds_p50",
    "idle_gap_seconds_p99",
)
"""Fields that the phases of a time line stand for."""

STEP_COLUMNS = (
    "seconds",
    "doing",
    "throughput_bytes_per_second",
    "device_power_watts",
    "device_power_watts_low",
    "device_power_watts_high",
    "cache_bytes",
)


def parse_phase(text: str) -> Phase:
    """A stretch of demand from `write=SECONDS[@BYTES_PER_SECOND]` or `idle=SECONDS`.

    Raises:
        InputError: Not of that form.
    """
    name, _, rest = text.partition("=")
    seconds, at, rate = rest.partition("@")
    try:
        length, limit = float(seconds), float(rate) if at else None
    except ValueError:
        length, limit = np.nan, None
    usable = np.isfinite(length) and (limit is None or (np.isfinite(limit) and limit > 0))
    if not usable or name not in ("write", "idle") or (name == "idle" and at):
        raise InputError(
            f"phase {text!r}: write it as write=SECONDS, write=SECONDS@BYTES_PER_SECOND or "
            "idle=SECONDS"
        )
    return Phase(length, write=name == "write", bytes_per_second=limit)


@dataclass(frozen=True)
class Stretch:
    """Steps in a row in which the drive does the same.

    Attributes:
        begin_seconds, end_seconds: On the time line.
        doing: One of the four words above.
        throughput_bytes_per_second, device_power_watts: Means.
        cache_bytes: What the cache holds at the end.
    """

    begin_seconds: float
    end_seconds: float
    doing: str
    throughput_bytes_per_second: float
    device_power_watts: float
    cache_bytes: float


@dataclass(frozen=True)
class TimeLine:
    """What happened along a time line.

    Attributes:
        device: Whose profile answered, and its version.
        story: Over time.
        defaults_used: Fields that were left out, and what they took.
    """

    device: str
    profile_version: str
    story: Trajectory
    defaults_used: dict[str, Any]

    def steps(self) -> Iterator[tuple[Any, ...]]:
        """One tuple a step, in the order of STEP_COLUMNS; seconds are its middle."""
        story = self.story
        yield from zip(
            story.seconds.tolist(),
            _doing(story),
            story.bytes_per_second.tolist(),
            story.watts.tolist(),
            story.watts_low.tolist(),
            story.watts_high.tolist(),
            story.cache_bytes.tolist(),
            strict=True,
        )

    def stretches(self) -> list[Stretch]:
        """The steps, those in a row with the same doing taken together."""
        story, doing = self.story, _doing(self.story)
        lengths = story.step_seconds
        ends = np.cumsum(lengths)
        borders = [0, *(i for i in range(1, len(doing)) if doing[i] != doing[i - 1]), len(doing)]
        return [
            Stretch(
                float(ends[a] - lengths[a]),
                float(ends[b - 1]),
                doing[a],
                float(np.average(story.bytes_per_second[a:b], weights=lengths[a:b])),
                float(np.average(story.watts[a:b], weights=lengths[a:b])),
                float(story.cache_bytes[b - 1]),
            )
            for a, b in pairwise(borders)
        ]

    def totals(self) -> dict[str, Interval | None]:
        """Quantities of the whole time line; None for what does not happen."""
        story = self.story
        return {
            "bytes_written": story.bytes_written,
            "device_energy_joules": story.energy_joules,
            "cliff_bytes": story.cliff_bytes,
            "collecting_pauses": story.episodes.pauses,
            "collecting_pause_seconds": story.episodes.pause_seconds,
            "second_collecting_start_seconds": story.episodes.second_start_seconds,
            "second_collecting_seconds": story.episodes.second_seconds,
            "background_seconds": story.background_seconds,
            "background_energy_joules": story.background_energy_joules,
        }

    def document(self) -> dict[str, Any]:
        """Everything as one document."""
        return {
            "device": self.device,
            "profile_version": self.profile_version,
            "iojoule_version": __version__,
            "defaults_used": self.defaults_used,
            "totals": {
                name: None if one is None else asdict(one) for name, one in self.totals().items()
            },
            "stretches": [asdict(one) for one in self.stretches()],
            "steps": [dict(zip(STEP_COLUMNS, one, strict=True)) for one in self.steps()],
        }


def time_line(
    predictors: Predictors,
    fields: Mapping[str, str],
    phases: Sequence[Phase],
    *,
    step_seconds: float,
    place: str,
) -> TimeLine:
    """Follow a drive along phases.

    Args:
        predictors: Of the device profile that answers.
        fields: The configuration of the writes, and how full the drive is at the beginning.
        phases: What is asked of the drive, in order.
        step_seconds: Length of a step.
        place: Names the fields in messages.

    Raises:
        InputError: Conditions that the drive cannot be under; a field that is unknown, impossible
            or said by the phases; a time line that is empty or too long; a profile that knows
            nothing of writes over time.
    """
    check_names(list(fields), place, ())
    for name in SAID_BY_PHASES:
        if name in fields:
            raise InputError(f"{place}: {name}: the phases say it; use idle=SECONDS", field=name)
    if fields.get("operation", "write") != "write":
        raise InputError(f"{place}: operation: a time line follows writes", field="operation")
    asked = {**fields, "operation": "write"}
    profile = predictors.profile
    columns = read_columns(list(asked), [list(asked.values())], profile, lambda _: place)
    values = {name: cells[0] for name, cells in columns.items()}
    used = {name: value for name, value in values.items() if name in USED}
    predictors = predictors.with_limits_of(columns, 1)
    predictor = predictors.under({name: values[name] for name in values if name in FIELDS})
    _, defaults = make_frame(predictors.profile, used, 1)
    story = follow(predictor, used, phases, step_seconds=step_seconds)
    return TimeLine(profile.device, profile.profile_version, story, defaults)


def _doing(story: Trajectory) -> list[str]:
    return [
        COLLECTING if collects else CACHING if rate > 0 else WORK if work > 0 else REST
        for rate, collects, work in zip(
            story.bytes_per_second, story.collecting, story.background, strict=True
        )
    ]
