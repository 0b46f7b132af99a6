"""The candidates: every configuration that the free knobs allow, as arrays, with their demand."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.errors import InputError
from iojoule.datasets.links import NCQ_DEPTH
from iojoule.datasets.profile import DeviceProfile
from iojoule.datasets.schema import Configuration
from iojoule.datasets.vocabulary import Completion, DeviceState, Engine, impossible
from iojoule.model.evaluate import columns as host_settings
from iojoule.model.evaluate import idle_gaps, power_limit, sata_link
from iojoule.model.evaluate.background_work import Balance, Inflow, balance
from iojoule.model.evaluate.bands import Codes
from iojoule.model.evaluate.columns import check_demand, habits_of
from iojoule.model.evaluate.equal_work import Demand
from iojoule.model.evaluate.frame import (
    COMPLETIONS,
    ENGINES,
    PATTERNS,
    SCHEDULERS,
    make_frame,
    operational_states,
)
from iojoule.model.evaluate.operating_point import HostPaths
from iojoule.recommender.request import Free, WorkloadProfile
from iojoule.recommender.space import Candidates, Path, code_of_path, path_of

T = TypeVar("T")

Floats = NDArray[np.float64]

MAX_CANDIDATES = 5_000_000
"""More than this is refused: beyond it an answer takes many seconds."""

ALL_DEPTHS = tuple(2**power for power in range(9))
ALL_JOBS = tuple(2**power for power in range(6))

DEFAULT_ENGINES = (Engine.LIBAIO, Engine.IO_URING)
"""Beside today's engine. spdk and io_uring_cmd take the drive away from the file system, psync
and posixaio cannot keep a queue: they are candidates where they are asked for."""

FIXED_AND_FOLLOWING = ("performance", "schedutil")
"""Governors that differ in the model: the highest clock, and one that follows the load."""

DEFAULT_FREE = Free(
    request_bytes=(),
    queue_depth=(),
    jobs=(),
    completion=(),
    submission_polling=(),
    scheduler=(),
    power_state=(),
    power_limit_watts=(),
    engine=DEFAULT_ENGINES,
    link_power_policy=(),
    standby_timer_seconds=(),
)
"""What may change where the workload profile does not say."""


def useful_limit(workload: WorkloadProfile, current_bytes: int) -> tuple[int, int]:
    """Bytes that the application asks for at a time, and up to how many it can use."""
    useful = workload.workload.useful_request_bytes or current_bytes
    return useful, max(useful, workload.workload.request_bytes_coalescible or useful)


def build_candidates(
    profile: DeviceProfile, paths: HostPaths, workload: WorkloadProfile
) -> Candidates:
    """Lay out the Cartesian product of the free knobs, without what cannot exist.

    Raises:
        InputError: A knob or the current configuration asks for what this drive or profile does
            not have, or there are more than `MAX_CANDIDATES`; names the field.
    """
    current, used = fill_current(profile, workload)
    free = DEFAULT_FREE if workload.free is None else workload.free
    _check_current(profile, paths, workload, current)
    _check_demand(profile, workload, current)
    routes, impossible_routes, unknown_routes = _routes(
        profile, paths, free, current, keep=workload.free is None
    )
    sizes = _sizes(workload, free, current)
    hosts = _hosts(profile, free, current, workload)
    depths = _axis(free.queue_depth, _depths(profile), current.queue_depth)
    jobs = _axis(free.jobs, ALL_JOBS, current.jobs)
    known = [state for state in operational_states(profile) if state not in profile.limit_states]
    limits = _limits(profile, free, current)
    states = _axis(free.power_state, known, int(current.power_state or 0))
    for state in states:
        if state not in known:
            raise InputError(
                f"free.power_state: {state} is not an operational power state of "
                f"{profile.model_name}; it has {', '.join(map(str, known))}",
                field="free.power_state",
            )
    states = _with_limits(profile, states, limits)
    shape = {
        "engine x completion x polling x scheduler": len(routes),
        "request_bytes": len(sizes),
        "queue_depth": len(depths),
        "jobs": len(jobs),
        "power_state": len(states),
        "governor x clock x C-state limit": len(hosts),
    }
    total = math.prod(shape.values())
    if total > MAX_CANDIDATES:
        raise InputError(
            f"free: {total:,} candidates are more than {MAX_CANDIDATES:,}; list fewer values for "
            "the knobs with the most: " + ", ".join(f"{name} {n}" for name, n in shape.items()),
            field="free",
        )
    table = np.array(
        [(p.engine, p.completion, p.submission_polling, p.scheduler) for p in routes],
        dtype=np.intp,
    )
    combos = _combos(
        table,
        np.array(depths),
        np.array(jobs),
        len(hosts),
        np.array(sizes),
        workload.most_bytes_in_flight(current),
    )
    dropped = total - len(combos) * len(states)
    return Candidates(
        combos,
        table,
        hosts,
        np.array(states, dtype=np.intp),
        _by_state(profile, limits),
        current,
        used,
        {
            "impossible_paths": impossible_routes,
            "paths_unknown_to_the_profile": unknown_routes,
            "concurrency": dropped,
        },
        tuple(name for name in Free.model_fields if getattr(free, name) is not None),
        _facts(workload),
        *_state(profile, workload, current),
        _habits(workload, current),
    )


def fill_current(
    profile: DeviceProfile, workload: WorkloadProfile
) -> tuple[Configuration, dict[str, Any]]:
    """The current configuration with defaults filled in, and those defaults by field."""
    stated = workload.current.model_dump(exclude_none=True)
    defaults = profile.defaults
    engine = stated.get("engine", defaults.get("engine", Engine.LIBAIO.value))
    filled: dict[str, Any] = {
        "request_bytes": workload.workload.useful_request_bytes or defaults["request_bytes"],
        "queue_depth": 1 if engine == Engine.PSYNC else defaults["queue_depth"],
        "jobs": defaults["jobs"],
        "engine": engine,
        "completion": Completion.POLLED
        if engine == Engine.SPDK
        else defaults.get("completion", Completion.INTERRUPT.value),
        "submission_polling": False,
        "scheduler": "none",
        "power_state": 0,
    }
    used = {name: value for name, value in filled.items() if name not in stated}
    if workload.workload.useful_request_bytes:
        used.pop("request_bytes", None)
    return Configuration.model_validate(filled | stated), used


def _check_current(
    profile: DeviceProfile, paths: HostPaths, workload: WorkloadProfile, current: Configuration
) -> None:
    try:
        settings = host_settings.row_of(current.model_dump())[None, :]
        host_settings.check(settings, profile.host_operation, profile.host.host_id)
        host_settings.check_rest(settings, profile)
        limited = {"power_limit_watts": [current.power_limit_watts]}
        host_settings.limited_states(profile, limited, np.array([current.power_state or 0]))
    except InputError as error:
        raise InputError(
            error.message.replace("row 1: ", "current.", 1), field=f"current.{error.field}"
        ) from None
    known = operational_states(profile)
    for name in ("power_state", "post_write_power_state"):
        state = getattr(current, name)
        if state is not None and state not in known:
            raise InputError(
                f"current.{name}: {state} is not an operational power state of "
                f"{profile.model_name}; it has {', '.join(map(str, known))}",
                field=f"current.{name}",
            )
    reason = impossible(current.engine, current.completion, interface=profile.interface)
    if reason is not None:
        raise InputError(f"current.{reason[0]}: {reason[1]}", field=f"current.{reason[0]}")
    useful = workload.workload.useful_request_bytes
    if useful is not None and current.request_bytes < useful:
        raise InputError(
            f"current.request_bytes: {current.request_bytes} is below useful_request_bytes = "
            f"{useful}; say the size that the application itself asks for in both",
            field="current.request_bytes",
        )
    if not paths.keys[code_of_path(path_of(current))]:
        raise InputError(
            f"current.engine: the profile of {profile.model_name} knows no "
            f"{current.engine} with completion {current.completion}, scheduler "
            f"{current.scheduler}, submission_polling {current.submission_polling}; it knows "
            + ", ".join(key for key in paths.keys if key.endswith("/none")),
            field="current.engine",
        )
    limit = workload.concurrency_max
    in_flight = current.queue_depth * current.jobs * current.request_bytes
    if workload.has_current and in_flight > workload.most_bytes_in_flight(current):
        raise InputError(
            f"concurrency_max: {limit} is less than the {current.queue_depth} x {current.jobs} "
            "requests that the current configuration keeps in flight; raise it, or correct "
            "current.queue_depth or current.jobs",
            field="concurrency_max",
        )


def _check_demand(
    profile: DeviceProfile, workload: WorkloadProfile, current: Configuration
) -> None:
    """Refuse a demand that the drive's link cannot carry, whatever the drive does.

    Raises:
        InputError: Names the demand.
    """
    stated = workload.workload
    name, rate = "demand_bytes_per_second", stated.demand_bytes_per_second
    if stated.demand_operations_per_second is not None:
        name = "demand_operations_per_second"
        useful, _ = useful_limit(workload, current.request_bytes)
        rate = stated.demand_operations_per_second * useful
    if rate is None:
        return
    try:
        check_demand(profile, name, rate, workload.read_fraction)
    except InputError as error:
        raise InputError(f"workload.{error.message}", field=f"workload.{error.field}") from None


def _check_listed(profile: DeviceProfile, free: Free) -> None:
    """Refuse engines and completions that are listed and that no drive of this interface has.

    Raises:
        InputError: Names the knob.
    """
    for name in ("engine", "completion"):
        for word in getattr(free, name) or ():
            reason = impossible(
                **{"engine": None, "completion": None, name: word}, interface=profile.interface
            )
            if reason is not None:
                raise InputError(
                    f"free.{name}: {reason[1]}; take it off the list", field=f"free.{name}"
                )


def _axis(choice: tuple[T, ...] | None, everything: Sequence[T], current: T) -> list[T]:
    if choice is None:
        return [current]
    if choice:
        return list(dict.fromkeys(choice))
    return list(dict.fromkeys([*everything, current]))


def _limits(profile: DeviceProfile, free: Free, current: Configuration) -> list[float]:
    """Power limits that candidates may have, W, 0 for none; empty where nobody asks for any.

    Those of `free`, or "all": none and each that was measured.
    """
    measured = power_limit.measured_watts(profile)
    if free.power_limit_watts is None:
        return [] if current.power_limit_watts is None else [current.power_limit_watts]
    if not free.power_limit_watts and not measured:
        return [] if current.power_limit_watts is None else [current.power_limit_watts, 0.0]
    return _axis(free.power_limit_watts, [0.0, *measured], current.power_limit_watts or 0.0)


def with_limits_of(profile: DeviceProfile, workload: WorkloadProfile) -> DeviceProfile:
    """The profile with the power limits that a workload profile asks about.

    Raises:
        InputError: The drive takes no such limit; names the field.
    """
    try:
        return power_limit.with_limits(profile, _limits_of(profile, workload))
    except InputError as error:
        place = "current" if workload.current.power_limit_watts else "free"
        raise InputError(f"{place}.{error.message}", field=f"{place}.{error.field}") from None


def _limits_of(profile: DeviceProfile, workload: WorkloadProfile) -> list[float]:
    """Power limits that a workload profile asks about, W, without 0."""
    free = workload.free or DEFAULT_FREE
    if free.power_limit_watts == ():
        asked = power_limit.measured_watts(profile)
    else:
        asked = list(free.power_limit_watts or ())
    return sorted({watts for watts in (*asked, workload.current.power_limit_watts) if watts})


def _with_limits(
    profile: DeviceProfile, states: Sequence[int], limits: Sequence[float]
) -> list[int]:
    """Power states without a limit, where there may be none, and those that stand for limits."""
    free_states = list(states) if 0 in limits or not limits else []
    standing = [power_limit.state_of_limit(profile, watts) for watts in limits if watts]
    return free_states + (standing if 0 in states else [])


def _by_state(profile: DeviceProfile, limits: Sequence[float]) -> Floats:
    count = 1 + max(operational_states(profile))
    return np.array(
        [profile.limit_states.get(state, 0.0 if limits else math.nan) for state in range(count)]
    )


def _sizes(workload: WorkloadProfile, free: Free, current: Configuration) -> list[int]:
    useful, limit = useful_limit(workload, current.request_bytes)
    if free.request_bytes is None:
        return [current.request_bytes]
    for size in free.request_bytes:
        if not useful <= size <= limit:
            raise InputError(
                f"free.request_bytes: {size} lies outside {useful} to {limit}, the bytes that the "
                "application uses at a time; set request_bytes_coalescible if it can use more",
                field="free.request_bytes",
            )
    if free.request_bytes:
        return list(dict.fromkeys(free.request_bytes))
    sizes = [useful]
    while sizes[-1] * 2 <= limit:
        sizes.append(sizes[-1] * 2)
    if sizes[-1] != limit and limit % useful == 0:
        sizes.append(limit)
    if useful <= current.request_bytes <= limit and current.request_bytes not in sizes:
        sizes.append(current.request_bytes)
    return sizes


def _routes(
    profile: DeviceProfile, paths: HostPaths, free: Free, current: Configuration, *, keep: bool
) -> tuple[list[Path], int, int]:
    here = path_of(current)
    engines = _axis(free.engine, tuple(Engine), Engine(ENGINES[here.engine]))
    if keep and ENGINES[here.engine] not in engines:
        engines.append(Engine(ENGINES[here.engine]))
    known_schedulers = [
        word
        for word in SCHEDULERS
        if word in {"none", *(cost.scheduler.value for cost in profile.host.schedulers)}
    ]
    chosen = [
        (engine, completion, polling, scheduler)
        for engine in engines
        for completion in _completions(free, engine, here)
        for polling in _axis(free.submission_polling, (False, True), here.submission_polling)
        for scheduler in map(
            str, _axis(free.scheduler, known_schedulers, SCHEDULERS[here.scheduler])
        )
    ]
    possible = [
        Path(ENGINES.index(e), COMPLETIONS.index(c), bool(p), SCHEDULERS.index(s))
        for e, c, p, s in chosen
        if impossible(e, c, scheduler=s, submission_polling=bool(p), interface=profile.interface)
        is None
    ]
    _check_listed(profile, free)
    known = [path for path in possible if paths.keys[code_of_path(path)]]
    if not known:
        raise InputError(
            f"free.engine: the profile of {profile.model_name} knows none of the "
            f"{len(chosen)} listed combinations of engine, completion, polling and scheduler; it "
            "knows " + ", ".join(key for key in paths.keys if key.endswith("/none")),
            field="free.engine",
        )
    return known, len(chosen) - len(possible), len(possible) - len(known)


def _completions(free: Free, engine: Engine, here: Path) -> list[str]:
    current = COMPLETIONS[here.completion]
    if free.completion is None and engine == Engine.SPDK:
        return [Completion.POLLED.value]  # it has no other way, so nothing was chosen here
    if free.completion is None and ENGINES[here.engine] == Engine.SPDK:
        return [Completion.INTERRUPT.value]
    return [str(word) for word in _axis(free.completion, COMPLETIONS, current)]


def _depths(profile: DeviceProfile) -> list[int]:
    """Depths that are tried: no more than the drive takes at a time."""
    most = NCQ_DEPTH if profile.interface == "sata" else max(ALL_DEPTHS)
    return [depth for depth in ALL_DEPTHS if depth <= most]


STANDBY_TIMERS = (60.0, 300.0, 600.0, 1800.0)
"""Standby timers that are tried, s; `hdparm -S` has them all."""


def _rests(
    profile: DeviceProfile, free: Free, workload: WorkloadProfile
) -> dict[str, Sequence[Any]]:
    """Ways to rest between bursts: where gaps are stated, and platters within their rating.

    Raises:
        InputError: A listed timer would use up the rated starts and stops too soon.
    """
    idle = profile.idle
    asked = workload.workload
    gap = asked.idle_gap_seconds_p50 or (asked.think_time_ns or 0.0) * 1e-9
    if idle is None or not gap:
        return {"link_power_policy": (), "standby_timer_seconds": ()}
    timers: Sequence[float] = ()
    if idle.standby is not None:
        rated = idle_gaps.spin_ups_allowed(idle.standby.cycles_rated.value)
        longest = asked.idle_gap_seconds_p99 or gap
        stopping = [one for one in free.standby_timer_seconds or () if 0 < one < longest]
        if idle_gaps.spin_ups_a_year(gap) <= rated:
            timers = [one for one in STANDBY_TIMERS if one < gap]
        elif stopping:
            raise InputError(
                f"free.standby_timer_seconds: {stopping[0]:g} s at gaps of {gap:g} s are up to "
                f"{idle_gaps.spin_ups_a_year(gap):,.0f} spin-ups a year, more than the "
                f"{rated:,.0f} that use up the {idle.standby.cycles_rated.value:,.0f} rated starts "
                f"in {idle_gaps.RATED_YEARS:g} years; leave it out",
                field="free.standby_timer_seconds",
            )
    return {
        "link_power_policy": sata_link.OFFERED if idle.link is not None else (),
        "standby_timer_seconds": timers,
    }


def _hosts(
    profile: DeviceProfile, free: Free, current: Configuration, workload: WorkloadProfile
) -> Floats:
    """Settings of the host to try, one row each; the rest is as it is today.

    Of what the profile does not know, "all" is what is set today; listed values are refused.
    """
    operation = profile.host_operation
    clock = operation.clock if operation is not None else None
    every: dict[str, Sequence[Any]] = {
        "cpu_governor": FIXED_AND_FOLLOWING if clock is not None else (),
        "cpu_frequency_max_hertz": [
            one.value for one in (clock.minimum_hertz, clock.base_hertz, clock.reference_hertz)
        ]
        if clock is not None
        else (),
        "cstate_limit": range(len(operation.idle_states) if operation is not None else 0),
        **_rests(profile, free, workload),
    }
    today = current.model_dump()
    axes = [_axis(getattr(free, name), known, today[name]) for name, known in every.items()]
    rows = [today | dict(zip(every, cells, strict=True)) for cells in itertools.product(*axes)]
    try:
        hosts = np.array([host_settings.row_of(row) for row in rows])
        host_settings.check(hosts, operation, profile.host.host_id)
        host_settings.check_rest(hosts, profile)
    except InputError as error:
        words = re.sub(r"^row \d+: ", "free.", error.message)
        raise InputError(words, field=f"free.{error.field}") from None
    return hosts


def _combos(
    routes: Codes, depths: Codes, jobs: Codes, hosts: int, sizes: Codes, most_bytes: float
) -> Codes:
    """Rows of `Candidates.combos`: what can exist, with at most `most_bytes` in flight."""
    route, depth, job, host, size = (
        axis.ravel()
        for axis in np.indices(
            (len(routes), len(depths), len(jobs), hosts, len(sizes)), dtype=np.intp
        )
    )
    queue_depth, workers, request_bytes = depths[depth], jobs[job], sizes[size]
    keep = (routes[route, 0] != ENGINES.index(Engine.PSYNC)) | (queue_depth == 1)
    keep &= queue_depth * workers * request_bytes <= most_bytes
    if not keep.any():
        raise InputError(
            "free: no candidate is left: all of them need more requests in flight than the "
            "application has, or are too deep for psync; list smaller values for queue_depth and "
            "jobs, or raise concurrency_max",
            field="free",
        )
    return np.stack(
        [route[keep], queue_depth[keep], workers[keep], host[keep], request_bytes[keep]], axis=1
    )


def _facts(workload: WorkloadProfile) -> tuple[float, int, float]:
    written = workload.state.host_bytes_written_since_purge
    return (
        workload.read_fraction,
        PATTERNS.index(workload.workload.pattern),
        math.nan if written is None else float(written),
    )


def _state(
    profile: DeviceProfile, workload: WorkloadProfile, current: Configuration
) -> tuple[Floats, Balance | None]:
    """Share of collecting by power state, and the balance that it follows from.

    What is stated of the drive counts; else the balance of what the workload writes and of what the
    drive clears over the horizon decides. That differs between candidates by power state only:
    requests arrive as the application makes them, and a balance by busy share would need every
    row's speed before it is known. So the drive counts as left alone whenever nothing arrives.
    """
    seen = workload.state
    states = np.arange(1 + max(operational_states(profile)))
    nothing = np.full(len(states), math.nan)
    if seen.device_state is not None:  # as the predictor reads the word
        busy = seen.device_state in (DeviceState.COLLECTING, DeviceState.STEADY)
        return np.full(len(states), float(busy)), None
    if seen.host_bytes_written_since_purge is not None or profile.write_state is None:
        return nothing, None
    if workload.read_fraction == 1.0:
        return nothing, None
    columns = {
        "operation": "write",
        "pattern": workload.workload.pattern,
        "power_state": [state if state in operational_states(profile) else 0 for state in states],
        "post_write_power_state": workload.current.post_write_power_state,
        "fill_fraction": seen.fill_fraction,
    }
    frame, _ = make_frame(profile, columns, len(states))
    found = balance(profile, frame, _inflow(profile, workload, current), workload.horizon_seconds)
    return found.collecting, found


def _inflow(profile: DeviceProfile, workload: WorkloadProfile, current: Configuration) -> Inflow:
    """What the workload writes and how it arrives.

    Where nothing is said of how a demand arrives, requests come one by one: that leaves the least
    time to clear the cache. As fast as possible is what the link lets through, and without pause.
    """
    asked = workload.workload
    useful = float(asked.useful_request_bytes or current.request_bytes)
    writes = 1.0 - workload.read_fraction
    link = profile.link_bytes_per_second
    fastest = math.inf if link is None else link.value / max(writes, 1.0 - writes)
    demand = asked.demand_bytes_per_second
    if asked.demand_operations_per_second is not None:
        demand = asked.demand_operations_per_second * useful
    gap, burst = asked.idle_gap_seconds_p50 or 0.0, asked.burst_bytes or 0.0
    if gap > 0 and demand is not None and not burst:
        burst = demand * gap / max(1.0 - demand / fastest, 1e-9)  # of a cycle of burst and gap
    if gap > 0 and burst > 0:
        rate = burst / (gap + burst / fastest) if demand is None else demand
        return Inflow(rate * writes, burst_bytes=burst * writes, gap_seconds=gap)
    if burst > 0 and demand is not None:
        gap = burst / demand - burst / fastest
        return Inflow(demand * writes, burst_bytes=burst * writes, gap_seconds=max(gap, 0.0))
    if demand is not None:
        return Inflow(demand * writes, demand / useful)
    think = (asked.think_time_ns or 0.0) * 1e-9
    if think > 0:  # as many independent sources as there are slots
        slots = current.queue_depth * current.jobs
        return Inflow(min(slots * useful / think, fastest) * writes, slots / think)
    return Inflow(fastest * writes)


def _habits(workload: WorkloadProfile, current: Configuration) -> dict[str, float]:
    """How the work arrives and what was done to the drive, as the frame's fields."""
    row = {
        **workload.workload.model_dump(exclude_none=True),
        **workload.state.model_dump(exclude_none=True),
        "apst_enabled": workload.current.apst_enabled,
    }
    useful, _ = useful_limit(workload, current.request_bytes)
    return {name: float(values[0]) for name, values in habits_of(row, 1, useful).items()}


def demand_of(workload: WorkloadProfile, current_bytes: int) -> Demand:
    """Read the demand and how it arrives out of a workload profile."""
    stated = workload.workload
    useful, limit = useful_limit(workload, current_bytes)
    rate = stated.demand_bytes_per_second
    if stated.demand_operations_per_second is not None:
        rate = stated.demand_operations_per_second * useful
    return Demand.stated(
        rate,
        float(useful),
        float(limit),
        process=stated.arrival_process,
        think_ns=stated.think_time_ns or 0.0,
        burst_bytes=stated.burst_bytes,
        gap_seconds=stated.idle_gap_seconds_p50,
    )
