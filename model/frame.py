"""A table of questions: one row a configuration under a workload, as numpy arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.errors import InputError
from iojoule.datasets.profile import DeviceProfile
from iojoule.datasets.vocabulary import (
    Completion,
    DeviceState,
    Engine,
    Operation,
    Pattern,
    Scheduler,
    impossible,
)

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

ENGINES = tuple(engine.value for engine in Engine)
COMPLETIONS = tuple(completion.value for completion in Completion)
SCHEDULERS = tuple(scheduler.value for scheduler in Scheduler)
PATTERNS = tuple(pattern.value for pattern in Pattern)
OPERATIONS = tuple(operation.value for operation in Operation)
STATES = tuple(state.value for state in DeviceState)

USED = (
    "operation",
    "read_fraction",
    "pattern",
    "request_bytes",
    "queue_depth",
    "jobs",
    "engine",
    "completion",
    "submission_polling",
    "scheduler",
    "power_state",
    "device_state",
    "host_bytes_written_since_purge",
    "cpu_cores_available",
)
"""Columns that can change a prediction; the others of the schema are accepted and ignored here."""

OF_WRITES = ("device_state", "host_bytes_written_since_purge")
"""Columns that change one only where the profile knows how writes change the drive's state."""


@dataclass(frozen=True)
class Frame:
    """n questions with every default filled in.

    Attributes:
        read_fraction: Share of reads, 0 to 1.
        pattern: Index into PATTERNS.
        request_bytes: Bytes a request.
        queue_depth: Requests in flight of one job.
        jobs: Concurrent jobs.
        engine: Index into ENGINES; completion and scheduler likewise.
        completion: Index into COMPLETIONS.
        submission_polling: Whether a kernel thread polls for submissions.
        scheduler: Index into SCHEDULERS.
        power_state: Operational power state.
        collecting: 1 where the drive collects garbage for the host's writes, 0 where its cache
            takes them, NaN where `bytes_written` decides.
        bytes_written: Host bytes since the drive was purged, NaN where unknown.
        cores: Cores that the jobs may run on; infinite where they may use the whole host.
    """

    read_fraction: Floats
    pattern: Codes
    request_bytes: Floats
    queue_depth: Floats
    jobs: Floats
    engine: Codes
    completion: Codes
    submission_polling: NDArray[np.bool_]
    scheduler: Codes
    power_state: Codes
    collecting: Floats
    bytes_written: Floats
    cores: Floats

    def __len__(self) -> int:
        return len(self.request_bytes)


def used_columns(profile: DeviceProfile) -> tuple[str, ...]:
    """Columns that change a prediction of this profile."""
    return tuple(n for n in USED if profile.write_state is not None or n not in OF_WRITES)


def make_frame(
    profile: DeviceProfile, columns: Mapping[str, Any], rows: int
) -> tuple[Frame, dict[str, Any]]:
    """Fill in the profile's defaults and refuse what cannot exist.

    Args:
        profile: Whose defaults and power states count.
        columns: Field name to array (or list) of `rows` values; None and NaN mean left out.
        rows: Number of questions.

    Returns:
        The frame, and the defaults that were used at least once by field name.

    Raises:
        InputError: An impossible value; the message names row and field.
    """
    used: dict[str, Any] = {}

    def column(name: str, default: Any) -> NDArray[np.object_]:
        given = columns.get(name)
        values = np.empty(rows, dtype=object)
        values[:] = (
            given
            if isinstance(given, Sequence | np.ndarray) and not isinstance(given, str)
            else [given] * rows
        )
        missing = np.array([v is None or (isinstance(v, float) and v != v) for v in values])
        if missing.any() and default is not None:
            values[missing] = default
            used[name] = default
        return values

    defaults = profile.defaults
    operation = _codes("operation", column("operation", defaults["operation"]), OPERATIONS)
    fraction = _read_fraction(operation, column("read_fraction", None))
    engine = _codes("engine", column("engine", defaults["engine"]), ENGINES)
    spdk = engine == ENGINES.index(Engine.SPDK)
    given = column("completion", None)
    completion_default = np.where(spdk, Completion.POLLED.value, str(defaults["completion"]))
    left_out = np.array([value is None for value in given])
    if left_out.any():
        used["completion"] = "polled with spdk, else " + str(defaults["completion"])
    completion = _codes("completion", np.where(left_out, completion_default, given), COMPLETIONS)
    state = column("device_state", None)
    collecting = np.array(
        [np.nan if v is None else float(v in ("collecting", "steady")) for v in state]
    )
    _refuse(
        np.array([v is not None and v not in STATES for v in state]),
        "device_state",
        state,
        f"is not one of {', '.join(STATES)}",
    )
    frame = Frame(
        fraction,
        _codes("pattern", column("pattern", defaults["pattern"]), PATTERNS),
        _numbers("request_bytes", column("request_bytes", defaults["request_bytes"]), 512, 2**30),
        _numbers("queue_depth", column("queue_depth", defaults["queue_depth"]), 1, 65535),
        _numbers("jobs", column("jobs", defaults["jobs"]), 1, 65535),
        engine,
        completion,
        column("submission_polling", False).astype(bool),
        _codes("scheduler", column("scheduler", "none"), SCHEDULERS),
        _numbers("power_state", column("power_state", 0), 0, 31).astype(np.intp),
        collecting,
        np.array(
            [
                np.nan if v is None else float(v)
                for v in column("host_bytes_written_since_purge", None)
            ]
        ),
        _cores(column("cpu_cores_available", None)),
    )
    check_frame(frame, profile)
    return frame, used


def check_frame(frame: Frame, profile: DeviceProfile) -> None:
    """Refuse configurations that cannot exist on this drive, naming the first row."""
    path = (frame.engine, frame.completion, frame.submission_polling, frame.scheduler)
    kinds, rows = np.unique(
        np.stack([*path, frame.queue_depth > 1]).astype(np.intp), axis=1, return_index=True
    )
    for place in np.argsort(rows):
        engine, completion, polling, scheduler, deep = kinds[:, place]
        reason = impossible(
            ENGINES[engine],
            COMPLETIONS[completion],
            queue_depth=1 + int(deep),
            scheduler=SCHEDULERS[scheduler],
            submission_polling=bool(polling),
        )
        if reason:
            raise InputError(f"row {rows[place] + 1}: {reason[0]}: {reason[1]}", field=reason[0])
    states = operational_states(profile)
    _refuse(
        ~np.isin(frame.power_state, states),
        "power_state",
        frame.power_state,
        f"is not an operational power state of {profile.model_name}; it has "
        + ", ".join(str(state) for state in states),
    )


def operational_states(profile: DeviceProfile) -> list[int]:
    """Power states in which the drive serves I/O and of which the profile knows the effect."""
    return [0, *sorted({effect.power_state for effect in profile.power_state_effects})]


def _refuse(bad: NDArray[np.bool_], field: str, values: Any, reason: str) -> None:
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(f"row {row + 1}: {field}: {values[row]} {reason}", field=field)


def _codes(field: str, values: NDArray[Any], words: tuple[str, ...]) -> Codes:
    lookup = {word: index for index, word in enumerate(words)}
    try:
        return np.array([lookup[str(value)] for value in values], dtype=np.intp)
    except KeyError:
        bad = np.array([str(value) not in lookup for value in values])
        _refuse(bad, field, values, f"is not one of {', '.join(words)}")
        raise


def _numbers(field: str, values: NDArray[Any], low: float, high: float) -> Floats:
    try:
        numbers = np.array([float(value) for value in values])
    except (TypeError, ValueError):
        bad = np.array([not _is_number(value) for value in values])
        _refuse(bad, field, values, "is not a number")
        raise
    with np.errstate(invalid="ignore"):
        bad = ~((numbers >= low) & (numbers <= high) & (numbers == np.floor(numbers)))
    _refuse(bad, field, values, f"is not a whole number from {low:,.0f} to {high:,.0f}")
    return numbers


def _cores(values: NDArray[np.object_]) -> Floats:
    """Infinite where nothing is said: the whole reference host."""
    stated = np.array([value is not None for value in values])
    cores = np.full(len(values), np.inf)
    if stated.any():
        cores[stated] = _numbers("cpu_cores_available", values[stated], 1, 65535)
    return cores


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _read_fraction(operation: Codes, given: NDArray[np.object_]) -> Floats:
    implied = np.array([1.0, 0.0, np.nan])[operation]
    values = np.array([np.nan if v is None else float(v) for v in given])
    stated = np.isfinite(values)
    outside = stated & ((values < 0) | (values > 1))
    _refuse(outside, "read_fraction", values, "lies outside 0 to 1")
    contradicts = stated & np.isfinite(implied) & (values != implied)
    _refuse(contradicts, "read_fraction", values, "contradicts operation; say mixed")
    fraction = np.where(np.isfinite(implied), implied, values)
    _refuse(
        np.isnan(fraction),
        "read_fraction",
        values,
        "is missing: a mixed workload must say its share of reads",
    )
    return fraction
