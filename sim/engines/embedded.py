"""The embedded engine: the native core behind the `Engine` protocol, and its results."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import product
from typing import Any, ClassVar

from pydantic import BaseModel

from iojoule.sim import _core
from iojoule.sim.device import DeviceConfig, Scheduler, VictimPolicy
from iojoule.sim.engines import SEED_STEP, Limits, RunOptions
from iojoule.sim.errors import CancelledError
from iojoule.sim.findings import Severity, refuse_errors
from iojoule.sim.known_defects import blocks_before_collection, is_sata
from iojoule.sim.known_defects import findings as known_defects
from iojoule.sim.physical_options import EnergyOptions
from iojoule.sim.result import (
    ENERGY_COMPONENTS,
    DeviceResult,
    EngineName,
    FlashWork,
    FlowResult,
    FlowSeries,
    LatencyByClass,
    LatencySummary,
    Mode,
    OriginCounts,
    PhysicalResult,
    QueueResult,
    ScenarioResult,
    TransactionTimes,
)
from iojoule.sim.workload import (
    AddressDistribution,
    FlowConfig,
    FlowKind,
    Priority,
    Scenario,
)

_WEIGHTED = (Priority.MEDIUM, Priority.LOW)
_SMALL_HOT_REGION = 30
_NEARLY_ALL = 0.9
"""Seen: 0.83 of the working set is filled by replaying requests, 0.92 in another way."""


_CHOOSING = (VictimPolicy.GREEDY, VictimPolicy.FIFO, VictimPolicy.RGA)
_SPREAD_STEP = 0.001
"""Step in which MQSim is taken to integrate the spread of valid pages over blocks. Seen: the spread
swings where the step is longer than the share of the blocks in use over the pages of one."""


def _spreads_unstably(device: DeviceConfig, flow: FlowConfig) -> bool:
    """Whether preconditioning fills the drive so thinly that MQSim's spread does not settle."""
    if device.gc_policy not in _CHOOSING or not flow.initial_occupancy_percent:
        return False
    if flow.address_distribution is AddressDistribution.STREAMING:
        return False
    used = flow.initial_occupancy_percent / 100 * (1 - device.overprovisioning_ratio)
    step = _SPREAD_STEP * device.pages_per_block * blocks_before_collection(device)
    return step > used * device.blocks_per_plane


def near_but_not_equal(
    device: DeviceConfig, scenario: Scenario, told: _core.RunResult
) -> Iterator[str]:
    """What to know before a compat result is taken for MQSim's to the nanosecond."""
    if device.mode is not Mode.COMPAT:
        return
    if fatal := told.device.evictions_fatal_to_mqsim:
        yield (
            f"{fatal} changed pages left the data cache that MQSim cannot program: they were only "
            "ever read, or their flow does not cache writes; MQSim crashes at the first "
            "[read_cache_crashes]"
        )
    if retries := told.device.retries_by_address:
        yield (
            f"{retries} times several writes that waited for a free block were retried together; "
            "MQSim retries them in the order of their memory addresses, which depends on its "
            "allocator; here they are retried in order of arrival [write_retry_near]"
        )
    if device.plane_allocation == "DWCP" and any(
        len(flow.die_ids) < len(flow.plane_ids) for flow in scenario.on(device).flows
    ):
        yield (
            "with DWCP, MQSim takes the plane of a page that is read before it is written from "
            "the die ids of the flow, which are fewer than its plane ids: MQSim may crash, "
            "otherwise results are equal [planes_past_the_dies]"
        )
    hot_cold = AddressDistribution.RANDOM_HOTCOLD
    if device.preconditioning and any(
        flow.address_distribution is hot_cold
        and flow.initial_occupancy_percent
        and flow.hot_region_percent <= _SMALL_HOT_REGION
        and device.gc_policy not in _CHOOSING
        for flow in scenario.flows
    ):
        yield (
            "with a hot region of at most 30 % and a random GC policy, the distribution of valid "
            "pages over blocks is not always that of MQSim; page placement can differ "
            "[hot_region_near]"
        )
    if device.preconditioning and any(_spreads_unstably(device, f) for f in scenario.flows):
        yield (
            "preconditioning fills so few pages of each block that MQSim's spread of valid pages "
            "over blocks does not settle and is not reproduced; in the one case measured the "
            "slowest request differed by 2 %; a higher Initial_Occupancy_Percentage avoids it "
            "[thin_blocks_near]"
        )
    if device.preconditioning and any(
        flow.initial_occupancy_percent > _NEARLY_ALL * flow.working_set_percent
        for flow in scenario.flows
    ):
        yield (
            "with an Initial_Occupancy_Percentage of more than nine tenths of the working set "
            "MQSim preconditions in another way, which is not modelled [occupancy_near]"
        )
    if (
        device.scheduler is Scheduler.PRIORITY_OUT_OF_ORDER
        and device.gc_preemptible
        and any(flow.priority in _WEIGHTED and flow.writes for flow in scenario.flows)
    ):
        yield (
            "with Preemptible_GC_Enabled MQSim asks for programs of the classes MEDIUM and LOW in "
            "another rhythm; turn it off for a run that is equal [priority_preemptible_near]"
        )


NS_PER_SECOND = 1e9

_SUMMARY = tuple(name for name in LatencySummary.model_fields if name != "resolution_ns")
_SAME_NAME = (
    "cmd_read",
    "cmd_mp_read",
    "cmd_prog",
    "cmd_mp_prog",
    "cmd_erase",
    "cmd_mp_erase",
    "map_reads",
    "cmt_queries_read",
    "cmt_queries_write",
    "cmt_hits_read",
    "cmt_hits_write",
    "cache_hits_read",
    "cache_misses_read",
    "cache_hits_write",
    "cache_misses_write",
    "gc_exec",
    "gc_page_moves",
    "wl_exec",
    "dram_busy_ns",
    "memory_bytes",
)
_PHYSICAL = tuple(
    PhysicalResult.model_fields.keys()
    - {"power_state_ns", "power_step_ns", "power_watts", "flash_work", "static_joules"}
)
_QUEUE = tuple(QueueResult.model_fields)


def flow_result(
    number: int,
    asked: FlowConfig,
    flow: _core.FlowResult,
    told: _core.RunResult,
    series_step_ns: int | None,
    *,
    has_stream: bool = True,
) -> FlowResult:
    """One flow of a run, under the name that MQSim gives it.

    Without a stream of its own its transactions are told elsewhere.
    """
    device = LatencyByClass(
        all=latency_summary(flow.device),
        read=latency_summary(flow.device_read),
        write=latency_summary(flow.device_write),
    )
    end_to_end = LatencyByClass(
        all=latency_summary(flow.end_to_end),
        read=latency_summary(flow.end_to_end_read),
        write=latency_summary(flow.end_to_end_write),
    )
    trace = asked.kind is FlowKind.TRACE
    return FlowResult(
        name=f"Host.IO_Flow.Trace.{asked.trace_path}"
        if trace
        else f"Host.IO_Flow.Synth.No_{number}",
        generated=flow.generated,
        generated_read=flow.generated_read,
        generated_write=flow.generated_write,
        serviced=flow.serviced,
        serviced_read=flow.serviced_read,
        serviced_write=flow.serviced_write,
        bytes_read=flow.bytes_read,
        bytes_written=flow.bytes_written,
        generated_trim=flow.generated_trim,
        serviced_trim=flow.serviced_trim,
        bytes_trimmed=flow.bytes_trimmed,
        # compat mode has no costs on the host
        host_cpu_seconds=flow.host_cpu_ns / NS_PER_SECOND or None,
        measured_from_ns=told.device.physical.measured_from_ns,
        first_arrival_ns=flow.first_arrival_ns,
        flow_last_completion_ns=flow.last_completion_ns,
        sim_end_ns=told.device.sim_end_ns,
        device_latency=device,
        end_to_end_latency=end_to_end,
        read_transactions=_transactions(flow, 0) if has_stream else None,
        write_transactions=_transactions(flow, 1) if has_stream else None,
        series=_series(flow) if series_step_ns else None,
    )


def latency_summary(told: _core.LatencySummary) -> LatencySummary:
    """One distribution of the core's."""
    return LatencySummary(**{name: getattr(told, name) for name in _SUMMARY})


def _transactions(flow: _core.FlowResult, kind: int) -> TransactionTimes:
    return TransactionTimes(
        turnaround_ns=flow.transaction_turnaround_ns[kind],
        execution_ns=flow.transaction_execution_ns[kind],
        transfer_ns=flow.transaction_transfer_ns[kind],
        waiting_ns=flow.transaction_waiting_ns[kind],
    )


def _series(flow: _core.FlowResult) -> FlowSeries:
    return FlowSeries(**{name: tuple(flow.series[name].tolist()) for name in flow.series})


def device_result(told: _core.DeviceResult, device: DeviceConfig) -> DeviceResult:
    """The whole drive's part of a result."""
    values: dict[str, Any] = {name: getattr(told, name) for name in _SAME_NAME}
    for name in ("pages_read", "pages_programmed", "blocks_erased"):
        origin = getattr(told, name)
        values[f"{name}_by_origin"] = OriginCounts(
            user=origin.user, gc=origin.gc, mapping=origin.mapping
        )
    for name in ("chip_exec_ns", "chip_transfer_ns", "die_busy_ns", "channel_busy_ns"):
        values[name] = tuple(getattr(told, name))
    values["map_writes"] = told.map_writes_queued
    values["link_busy_to_device_ns"], values["link_busy_to_host_ns"] = told.link_busy_ns
    values["queues"] = tuple(
        QueueResult(**{name: getattr(queue, name) for name in _QUEUE}) for queue in told.queues
    )
    if device.mode is Mode.COMPAT:
        values["cmt_misses_at_once"] = told.cmt_misses_at_once
    else:
        values |= _energy(told, device.physical.energy)
    return DeviceResult(**values)


_OPERATIONS = ("read", "program", "erase")
_PAGES = ("lsb", "csb", "msb", "slc")
_ORIGINS = ("user", "gc", "mapping")
_STATIC = ("controller", "dram", "link")
_OF_COMPONENT = {
    "channel": ("channel_joules_per_byte",),
    "dram": ("dram_joules_per_byte", "dram_refresh_watts"),
    "controller": (
        "controller_idle_watts",
        "controller_active_watts",
        "controller_joules_per_command",
        "controller_joules_per_byte",
    ),
    "link": ("link_idle_watts", "link_active_watts", "link_joules_per_byte"),
}
"""What a component other than the arrays draws by; with one of them given it is known."""


def _fields_of_array(operation: str, page: str) -> tuple[str, str]:
    unit = "block" if operation == "erase" else "page"
    return f"{'slc_' if page == 'slc' else ''}{unit}_{operation}_joules", f"array_{operation}_watts"


def _flash_work(energy: EnergyOptions, told: Any) -> Iterator[FlashWork]:
    kinds = product(_OPERATIONS, _PAGES, _ORIGINS)
    for kind, count, joules in zip(kinds, told.counts, told.joules, strict=True):
        operation, page, origin = kind
        if count:
            known = energy.known(*_fields_of_array(operation, page))
            yield FlashWork.model_validate(
                {
                    "operation": operation,
                    "page": page,
                    "origin": origin,
                    "count": count,
                    "joules": joules if known else None,
                }
            )


def _unknown_energy(
    energy: EnergyOptions, work: Sequence[FlashWork]
) -> Iterator[tuple[str, Sequence[str]]]:
    """Components of whose joules all or a part is unknown, with the parameters that would tell."""
    for operation in _OPERATIONS:
        without = [each for each in work if each.operation == operation and each.joules is None]
        fields = _fields_of_array(operation, without[0].page if without else "lsb")
        if without or not energy.known(*fields):
            yield f"array_{operation}", fields
    for component, names in _OF_COMPONENT.items():
        if lacking := [name for name in names if not energy.known(name)]:
            yield component, lacking


def _energy(told: Any, energy: EnergyOptions) -> dict[str, Any]:
    physical = told.physical
    work = tuple(_flash_work(energy, physical.energy.flash))
    unknown = dict(_unknown_energy(energy, work))
    joules = {
        name: value
        for name in ENERGY_COMPONENTS
        # asleep the whole drive draws what its power state says, which counts as the controller's
        if (value := getattr(physical.energy, f"{name}_joules"))
        or name not in unknown
        or len(unknown[name]) < len(_OF_COMPONENT.get(name, ()))
    }
    seconds = (told.sim_end_ns - physical.measured_from_ns) / NS_PER_SECOND
    return {
        "energy_joules": joules or None,
        "energy_unknown": {
            name: f"{'in part' if name in joules else 'altogether'}: not given are "
            + ", ".join(f"physical.energy.{field}" for field in fields)
            for name, fields in unknown.items()
        }
        or None,
        "power_watts_mean": (sum(joules.values()) / seconds if seconds > 0 else 0.0)
        if joules
        else None,
        "physical": PhysicalResult(
            **{name: getattr(physical, name) for name in _PHYSICAL},
            power_state_ns=tuple(physical.power_state_ns),
            flash_work=work,
            static_joules={
                name: getattr(physical.energy, f"{name}_static_joules")
                for name in _STATIC
                if name in joules
            }
            or None,
            power_step_ns=physical.power_step_ns or None,
            power_watts=tuple(physical.power_watts.tolist())
            if physical.power_step_ns and joules
            else None,
        ),
    }


class EmbeddedEngine:
    """Runs scenarios in this process; the core holds no state and lets other threads go on."""

    name: ClassVar = EngineName.EMBEDDED
    ahead: ClassVar = False
    """Whether the core settles the times of reads ahead; see `iojoule.sim.engines.fast`."""

    def run(
        self, device: DeviceConfig, scenario: Scenario, options: RunOptions | None = None
    ) -> ScenarioResult:
        """Run one scenario; see `Engine.run`.

        Raises:
            ConfigError, TraceError, LimitError, ModelError: From the core.
            RefusedError: The inputs are known to be impossible.
            CancelledError: `options.cancelled()` said so.
        """
        options = options or RunOptions()
        scenario = scenario.on(device)
        found = refuse_errors(known_defects(device, scenario.flows))
        seeded = device.model_copy(
            update={"seed": device.seed + SEED_STEP * options.scenario_number}
        )
        flows = [native(flow) for flow in scenario.flows]
        user, wall = _user_seconds(), time.perf_counter()
        told = _core.simulate(
            native(seeded),
            flows,
            native_limits(options.limits),
            progress=_watch(options),
            series_step_ns=options.series_step_ns or 0,
            with_queues=options.queues,
            ahead=self.ahead,
        )
        user, wall = _user_seconds() - user, time.perf_counter() - wall
        one_stream = is_sata(device) and device.mode is Mode.COMPAT
        made = tuple(
            flow_result(
                number,
                asked,
                flow,
                told,
                options.series_step_ns,
                has_stream=number == 0 or not one_stream,
            )
            for number, (asked, flow) in enumerate(zip(scenario.flows, told.flows, strict=True))
        )
        result = ScenarioResult(
            engine=self.name,
            mode=device.mode,
            device=device_result(told.device, device),
            flows=made,
            series_step_ns=options.series_step_ns,
            run_user_seconds=user,
            run_wall_seconds=wall,
            peak_bytes=told.device.memory_bytes,
            events=told.device.events,
            unavailable=UNAVAILABLE[device.mode],
        )
        doubts = (str(each) for each in found if each.severity is Severity.WARNING)
        said = (*doubts, *near_but_not_equal(device, scenario, told), *_lost(result))
        return result.model_copy(update={"warnings": said})


UNAVAILABLE: dict[Mode, dict[str, str]] = {
    Mode.COMPAT: {"device.energy_joules": "compat mode, like MQSim, has no energy"},
    Mode.PHYSICAL: {},
}


def _user_seconds() -> float:
    """Of this thread, which is the one that the core runs in."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_utime


def native(model: BaseModel) -> Any:
    """The core's struct of the same name with the same values, field by field."""
    made = getattr(_core, type(model).__name__)()
    for name in type(model).model_fields:
        value = getattr(model, name)
        if value is not None:  # what is unknown costs nothing; `_unknown_energy` says so
            setattr(made, name, _value(value))
    return made


def _value(value: Any) -> Any:
    match value:
        case BaseModel():
            return native(value)
        case tuple():
            return [_value(each) for each in value]
        case StrEnum():
            return value.value
        case _:
            return value


def native_limits(limits: Limits) -> _core.Limits:
    """The limits as the core takes them."""
    made = _core.Limits()
    made.memory_bytes = limits.memory_bytes
    made.wall_seconds = limits.wall_seconds
    if limits.simulated_ns is not None:
        made.simulated_ns = limits.simulated_ns
    if limits.events is not None:
        made.events = limits.events
    return made


def _watch(options: RunOptions) -> Any:
    """What the core calls some ten times a second; an error here ends the run."""

    def watch(done: float) -> None:
        if options.cancelled():
            raise CancelledError("the run was called off")
        if options.progress is not None:
            options.progress(done)

    return watch


def _lost(result: ScenarioResult) -> Iterator[str]:
    for number, lost in result.lost():
        flow = result.flows[number]
        yield (
            f"flows[{number}]: {lost} of {flow.generated} requests were generated but not serviced"
            + (", as in MQSim" if result.mode is Mode.COMPAT else "")
            + " [requests_lost]"
        )
