"""A table of questions: one row a configuration under a workload, as numpy arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
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
from iojoule.model import host_settings

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
    "fill_fraction",
    "seconds_since_last_write",
    "post_write_power_state",
    "apst_enabled",
    "aspm_policy",
    "think_time_ns",
    "idle_gap_seconds_p50",
    "idle_gap_seconds_p99",
    "burst_bytes",
    "cpu_cores_available",
    *host_settings.HOST,
)
"""Columns that can change a prediction; the others of the schema are accepted and ignored here."""

OF_WRITES = (
    "device_state",
    "host_bytes_written_since_purge",
    "fill_fraction",
    "seconds_since_last_write",
    "post_write_power_state",
)
"""Columns that change one only where the profile knows how writes change the drive's state."""

OF_GAPS = (
    "apst_enabled",
    "aspm_policy",
    "think_time_ns",
    "idle_gap_seconds_p50",
    "idle_gap_seconds_p99",
    "burst_bytes",
)
"""Columns that change one only where the profile knows what the drive does in gaps."""

P99_SIGMAS = 2.3263478740408408
"""Standard deviations from the median to the 99th percentile of a normal distribution."""


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
        fill_fraction: Share of the capacity that holds data, NaN where unknown.
        seconds_idle: Seconds since the last write before this run; 0 where nothing is said.
        background_state: Power state while the drive works on its own behalf after writes.
        gap_seconds: Median pause of the host between bursts (think time where no gap is stated),
            NaN where none is stated; `gap_log_sd` is the spread of its logarithm.
        burst_bytes: Bytes between two gaps, NaN where unknown.
        apst: 1 where the drive may change its power state by itself.
        cores: Cores that the jobs may run on; infinite where they may use the whole host.
        host: The host's settings, shape (n, 6); see `model.host_settings`.
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
    fill_fraction: Floats
    seconds_idle: Floats
    background_state: Codes
    gap_seconds: Floats
    gap_log_sd: Floats
    burst_bytes: Floats
    apst: Floats
    cores: Floats
    host: Floats

    def __len__(self) -> int:
        return len(self.request_bytes)

    def rows(self, start: int, stop: int) -> Frame:
        """Questions `start` to `stop`, as views."""
        return Frame(*(getattr(self, field.name)[start:stop] for field in fields(self)))


def used_columns(profile: DeviceProfile) -> tuple[str, ...]:
    """Columns that change a prediction of this profile."""
    gone = {
        *(OF_WRITES if profile.write_state is None else ()),
        *(OF_GAPS if profile.idle is None else ()),
    }
    return tuple(name for name in USED if name not in gone)


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

    def column(name: str, default: Any) -> NDArray[Any]:
        values, missing = _column(columns.get(name), rows)
        if default is not None and missing.any():
            used[name] = default
            values = _filled(values, missing, default)
        return values

    defaults = profile.defaults
    operation = _codes("operation", column("operation", defaults["operation"]), OPERATIONS)
    fraction = _read_fraction(operation, column("read_fraction", None))
    engine = _codes("engine", column("engine", defaults["engine"]), ENGINES)
    spdk = engine == ENGINES.index(Engine.SPDK)
    given = column("completion", None)
    left_out = _missing(given)
    completion = np.where(
        spdk,
        COMPLETIONS.index(Completion.POLLED),
        COMPLETIONS.index(str(defaults["completion"])),
    )
    if left_out.any():
        used["completion"] = "polled with spdk, else " + str(defaults["completion"])
    if not left_out.all():
        stated = ~left_out
        known = np.where(left_out, str(defaults["completion"]), given)
        completion[stated] = _codes("completion", known, COMPLETIONS)[stated]
    state = column("device_state", None)
    collecting = _collecting(state)
    power_state = _numbers("power_state", column("power_state", 0), 0, 31).astype(np.intp)
    habits = habits_of(columns, rows)
    _check_link(profile, columns, habits["apst"])
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
        power_state,
        collecting,
        _optional("host_bytes_written_since_purge", columns, rows),
        background_state=_background_state(columns, power_state),
        cores=_cores(column("cpu_cores_available", None)),
        host=host_settings.read(column, rows),
        **habits,
    )
    check_frame(frame, profile)
    return frame, used


def check_frame(frame: Frame, profile: DeviceProfile) -> None:
    """Refuse configurations that cannot exist on this drive, naming the first row."""
    shape = (len(ENGINES), len(COMPLETIONS), 2, len(SCHEDULERS), 2)
    path = (frame.engine, frame.completion, frame.submission_polling, frame.scheduler)
    deep = frame.queue_depth > 1
    kind = np.ravel_multi_index([part.astype(np.intp) for part in (*path, deep)], shape)
    present = np.flatnonzero(np.bincount(kind, minlength=int(np.prod(shape))))
    first = {int(np.argmax(kind == one)): one for one in present}
    for row in sorted(first):
        engine, completion, polling, scheduler, is_deep = np.unravel_index(first[row], shape)
        reason = impossible(
            ENGINES[engine],
            COMPLETIONS[completion],
            queue_depth=1 + int(is_deep),
            scheduler=SCHEDULERS[scheduler],
            submission_polling=bool(polling),
        )
        if reason:
            raise InputError(f"row {row + 1}: {reason[0]}: {reason[1]}", field=reason[0])
    host_settings.check(frame.host, profile.host_operation, profile.host.host_id)
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


def _column(given: Any, rows: int) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """A column as an array of n values, and which of them are left out (None, NaN).

    One value for all rows becomes a view without copies, which the readers below recognise.
    """
    if isinstance(given, np.ndarray) and given.dtype != object:
        values = given
    elif isinstance(given, Sequence | np.ndarray) and not isinstance(given, str):
        values = np.empty(rows, dtype=object)
        values[:] = given
    else:
        one = np.empty((), dtype=object)
        one[()] = given
        values = np.broadcast_to(one, (rows,))
    return values, _missing(values)


def _filled(values: NDArray[Any], missing: NDArray[np.bool_], default: Any) -> NDArray[Any]:
    """The column with `default` where a value is missing."""
    if missing.all():
        return _column(default, len(values))[0]
    if values.dtype != object and isinstance(default, int | float):
        return np.where(missing, default, values)
    return np.where(missing, np.array(default, dtype=object), values.astype(object))


def _is_constant(values: NDArray[Any]) -> bool:
    return values.strides == (0,) and len(values) > 0


def _missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    if _is_constant(values):
        return np.full(len(values), _missing(values[:1].copy())[0])
    if values.dtype == object:
        nothing = np.asarray(values == np.array(None, dtype=object), dtype=bool)
        return np.asarray(nothing | np.asarray(values != values, dtype=bool))
    if values.dtype.kind == "f":
        return np.asarray(np.isnan(values))
    return np.zeros(len(values), dtype=bool)


def _codes(field: str, values: NDArray[Any], words: tuple[str, ...]) -> Codes:
    if _is_constant(values):
        return np.full(len(values), _codes(field, values[:1].copy(), words)[0], dtype=np.intp)
    codes = np.full(len(values), -1, dtype=np.intp)
    for code, word in enumerate(words):
        codes[values == word] = code
    _refuse(codes < 0, field, values, f"is not one of {', '.join(words)}")
    return codes


def _numbers(field: str, values: NDArray[Any], low: float, high: float) -> Floats:
    if _is_constant(values):
        return np.full(len(values), _numbers(field, values[:1].copy(), low, high)[0])
    try:
        numbers = values.astype(np.float64)
    except (TypeError, ValueError):
        bad = np.array([not _is_number(value) for value in values])
        _refuse(bad, field, values, "is not a number")
        raise
    with np.errstate(invalid="ignore"):
        bad = ~((numbers >= low) & (numbers <= high) & (numbers == np.floor(numbers)))
    _refuse(bad, field, values, f"is not a whole number from {low:,.0f} to {high:,.0f}")
    return numbers


def _optional(field: str, columns: Mapping[str, Any], rows: int, most: float = np.inf) -> Floats:
    """A column of numbers from 0 to `most`, NaN where left out."""
    values, missing = _column(columns.get(field), rows)
    if missing.all():
        return np.full(rows, np.nan)
    try:
        numbers = _filled(values, missing, np.nan).astype(np.float64)
    except (TypeError, ValueError):
        bad = ~missing & np.array([not _is_number(value) for value in values])
        _refuse(bad, field, values, "is not a number")
        raise
    upper = "" if most == np.inf else f" or above {most:g}"
    _refuse((numbers < 0) | (numbers > most), field, values, f"is below 0{upper}")
    return numbers


def _flags(field: str, columns: Mapping[str, Any], rows: int) -> Floats:
    """1 where true, 0 where false or left out."""
    values, missing = _column(columns.get(field), rows)
    if missing.all():
        return np.zeros(rows)
    return np.asarray(_filled(values, missing, False).astype(bool).astype(np.float64))


def habits_of(columns: Mapping[str, Any], rows: int) -> dict[str, Floats]:
    """How the work arrives and what was done to the drive before, as fields of a frame.

    Raises:
        InputError: An impossible value; the message names row and field.
    """
    gap, gap_log_sd = _gaps(columns, rows)
    return {
        "fill_fraction": _optional("fill_fraction", columns, rows, 1.0),
        "seconds_idle": np.nan_to_num(
            _optional("seconds_since_last_write", columns, rows), nan=0.0
        ),
        "gap_seconds": gap,
        "gap_log_sd": gap_log_sd,
        "burst_bytes": _optional("burst_bytes", columns, rows),
        "apst": _flags("apst_enabled", columns, rows),
    }


def _gaps(columns: Mapping[str, Any], rows: int) -> tuple[Floats, Floats]:
    """Median gap in seconds, NaN where none is stated, and the sd of its logarithm."""
    gap = _optional("idle_gap_seconds_p50", columns, rows)
    think = _optional("think_time_ns", columns, rows) * 1e-9
    gap = np.where(np.isnan(gap), think, gap)
    gap[gap == 0] = np.nan
    long = _optional("idle_gap_seconds_p99", columns, rows)
    _refuse(
        np.isfinite(long) & ~(long >= gap),
        "idle_gap_seconds_p99",
        long,
        "needs a median gap that is not longer: state idle_gap_seconds_p50 or think_time_ns",
    )
    spread = np.log(np.where(np.isfinite(long), long, 1.0) / np.where(np.isfinite(long), gap, 1.0))
    return gap, spread / P99_SIGMAS


def _background_state(columns: Mapping[str, Any], power_state: Codes) -> Codes:
    after = _optional("post_write_power_state", columns, len(power_state), 31.0)
    return np.where(np.isnan(after), power_state, np.nan_to_num(after)).astype(np.intp)


def _check_link(profile: DeviceProfile, columns: Mapping[str, Any], apst: Floats) -> None:
    """Sleep power was taken at one link policy and is carried to no other."""
    known, given = profile.idle, columns.get("aspm_policy")
    if known is None or known.aspm_policy is None or given is None:
        return
    cells, missing = _column(given, len(apst))
    other = ~missing & (cells != known.aspm_policy)
    _refuse(
        other & (apst > 0),
        "aspm_policy",
        cells,
        f"is not the link policy of the measured sleep power ({known.aspm_policy}), which does "
        "not hold for another: measure idle power there (iojoule measure characterise), or leave "
        "apst_enabled out",
    )


def _numbers_or_nan(values: NDArray[Any]) -> Floats:
    """Numbers as they are, NaN where left out."""
    missing = _missing(values)
    if missing.all():
        return np.full(len(values), np.nan)
    return _filled(values, missing, np.nan).astype(np.float64)


def _cores(values: NDArray[Any]) -> Floats:
    """Infinite where nothing is said: the whole reference host."""
    stated = ~_missing(values)
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


def _collecting(state: NDArray[Any]) -> Floats:
    """1 where the drive is said to collect garbage, 0 where not, NaN where nothing is said."""
    stated = ~_missing(state)
    collecting = np.full(len(state), np.nan)
    if stated.any():
        codes = _codes("device_state", np.where(stated, state, STATES[0]), STATES)
        busy = [STATES.index(DeviceState.COLLECTING), STATES.index(DeviceState.STEADY)]
        collecting[stated] = np.isin(codes[stated], busy)
    return collecting


def _read_fraction(operation: Codes, given: NDArray[Any]) -> Floats:
    implied = np.array([1.0, 0.0, np.nan])[operation]
    values = _numbers_or_nan(given)
    stated = np.isfinite(values)
    if not stated.any() and not np.isnan(implied).any():
        return implied
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
