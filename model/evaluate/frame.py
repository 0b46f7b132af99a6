"""A table of questions: one row a configuration under a workload, as numpy arrays."""

from __future__ import annotations

from collections.abc import Mapping
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
from iojoule.model.evaluate import columns as host_settings
from iojoule.model.evaluate.bands import Codes, Floats
from iojoule.model.evaluate.columns import (
    background_state,
    check_link,
    codes_of,
    filled,
    habits_of,
    left_out,
    limited_states,
    numbers_or_nan,
    optional_numbers,
    read_column,
    refuse,
    whole_numbers,
)

ENGINES = tuple(engine.value for engine in Engine)
COMPLETIONS = tuple(completion.value for completion in Completion)
SCHEDULERS = tuple(scheduler.value for scheduler in Scheduler)
PATTERNS = tuple(pattern.value for pattern in Pattern)
RANDOM, SEQUENTIAL = (
    PATTERNS.index(pattern.value) for pattern in (Pattern.RANDOM, Pattern.SEQUENTIAL)
)
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
    "power_limit_watts",
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
    "link_power_policy",
    "standby_timer_seconds",
)
"""Columns that change one only where the profile knows what the drive does in gaps."""


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
        power_state: Operational power state, or that which stands for a limit.
        power_limit_watts: The limit in force, 0 for none, NaN where nothing is said.
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
        host: The host's settings, shape (n, 8); see `model.evaluate.columns`.
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
    power_limit_watts: Floats
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

    @property
    def polls(self) -> NDArray[np.bool_]:
        """Whether a thread spins, for completions or for submissions."""
        polled = self.completion == COMPLETIONS.index("polled")
        return np.asarray(polled | self.submission_polling)

    def take(self, rows: Any) -> Frame:
        """Some of the questions: a slice (as views), a mask or places."""
        return Frame(*(column[rows] for column in vars(self).values()))


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
        values, missing = read_column(columns.get(name), rows)
        if default is not None and missing.any():
            used[name] = default
            values = filled(values, missing, default)
        return values

    defaults = profile.defaults
    operation = codes_of("operation", column("operation", defaults["operation"]), OPERATIONS)
    fraction = _read_fraction(operation, column("read_fraction", None))
    engine = codes_of("engine", column("engine", defaults["engine"]), ENGINES)
    spdk = engine == ENGINES.index(Engine.SPDK)
    given = column("completion", None)
    unsaid = left_out(given)
    completion = np.where(
        spdk, COMPLETIONS.index(Completion.POLLED), COMPLETIONS.index(str(defaults["completion"]))
    )
    if unsaid.any():
        used["completion"] = "polled with spdk, else " + str(defaults["completion"])
    if not unsaid.all():
        stated = ~unsaid
        known = np.where(unsaid, str(defaults["completion"]), given)
        completion[stated] = codes_of("completion", known, COMPLETIONS)[stated]
    state = column("device_state", None)
    collecting = _collecting(state)
    power_state = whole_numbers("power_state", column("power_state", 0), 0, 31).astype(np.intp)
    request_bytes = whole_numbers(
        "request_bytes", column("request_bytes", defaults["request_bytes"]), 512, 2**30
    )
    arrivals = habits_of(columns, rows, request_bytes)
    power_state, limit = limited_states(profile, columns, power_state)
    check_link(profile, columns, arrivals["apst"])
    frame = Frame(
        fraction,
        codes_of("pattern", column("pattern", defaults["pattern"]), PATTERNS),
        request_bytes,
        whole_numbers("queue_depth", column("queue_depth", defaults["queue_depth"]), 1, 65535),
        whole_numbers("jobs", column("jobs", defaults["jobs"]), 1, 65535),
        engine,
        completion,
        column("submission_polling", False).astype(bool),
        codes_of("scheduler", column("scheduler", "none"), SCHEDULERS),
        power_state,
        limit,
        collecting,
        optional_numbers("host_bytes_written_since_purge", columns, rows),
        background_state=background_state(columns, power_state),
        cores=_cores(column("cpu_cores_available", None)),
        host=host_settings.read(column, rows),
        **arrivals,
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
    first = {int(np.argmax(kind == code)): code for code in present}
    for row in sorted(first):
        engine, completion, polling, scheduler, is_deep = np.unravel_index(first[row], shape)
        reason = impossible(
            ENGINES[engine],
            COMPLETIONS[completion],
            queue_depth=1 + int(is_deep),
            scheduler=SCHEDULERS[scheduler],
            submission_polling=bool(polling),
            interface=profile.interface,
        )
        if reason:
            raise InputError(f"row {row + 1}: {reason[0]}: {reason[1]}", field=reason[0])
    host_settings.check(frame.host, profile.host_operation, profile.host.host_id)
    host_settings.check_rest(frame.host, profile)
    states = operational_states(profile)
    for field, stated in (
        ("power_state", frame.power_state),
        ("post_write_power_state", frame.background_state),
    ):
        refuse(
            ~np.isin(stated, states),
            field,
            stated,
            f"is not an operational power state of {profile.model_name}; it has "
            + ", ".join(str(state) for state in states),
        )


def operational_states(profile: DeviceProfile) -> list[int]:
    """Power states in which the drive serves I/O and of which the profile knows the effect."""
    states = {effect.power_state for effect in profile.power_state_effects}
    return [0, *sorted({*states, *profile.limit_states})]


def _cores(values: NDArray[Any]) -> Floats:
    """Infinite where nothing is said: the whole reference host."""
    stated = ~left_out(values)
    cores = np.full(len(values), np.inf)
    if stated.any():
        cores[stated] = whole_numbers("cpu_cores_available", values[stated], 1, 65535)
    return cores


def _collecting(state: NDArray[Any]) -> Floats:
    """1 where the drive is said to collect garbage, 0 where not, NaN where nothing is said."""
    stated = ~left_out(state)
    collecting = np.full(len(state), np.nan)
    if stated.any():
        codes = codes_of("device_state", np.where(stated, state, STATES[0]), STATES)
        busy = [STATES.index(DeviceState.COLLECTING), STATES.index(DeviceState.STEADY)]
        collecting[stated] = np.isin(codes[stated], busy)
    return collecting


def _read_fraction(operation: Codes, given: NDArray[Any]) -> Floats:
    implied = np.array([1.0, 0.0, np.nan])[operation]
    values = numbers_or_nan(given)
    stated = np.isfinite(values)
    if not stated.any() and not np.isnan(implied).any():
        return implied
    outside = stated & ((values < 0) | (values > 1))
    refuse(outside, "read_fraction", values, "lies outside 0 to 1")
    contradicts = stated & np.isfinite(implied) & (values != implied)
    refuse(contradicts, "read_fraction", values, "contradicts operation; say mixed")
    fraction = np.where(np.isfinite(implied), implied, values)
    refuse(
        np.isnan(fraction),
        "read_fraction",
        values,
        "is missing: a mixed workload must say its share of reads",
    )
    return fraction
