"""Turns what the native core tells into the result that every engine gives."""

from __future__ import annotations

from typing import Any

from iojoule.sim import _core
from iojoule.sim.result import (
    DeviceResult,
    FlowResult,
    FlowSeries,
    LatencyByClass,
    LatencySummary,
    Mode,
    OriginCounts,
    PhysicalResult,
    QueueResult,
    TransactionTimes,
)
from iojoule.sim.workload import FlowConfig, FlowKind

NS_PER_SECOND = 1e9

_SUMMARY = tuple(name for name in LatencySummary.model_fields if name != "resolution_ns")
_SAME_NAME = (
    "cmd_read", "cmd_mp_read", "cmd_prog", "cmd_mp_prog", "cmd_erase", "cmd_mp_erase", "map_reads",
    "cmt_queries_read", "cmt_queries_write", "cmt_hits_read", "cmt_hits_write",
    "cache_hits_read", "cache_misses_read", "cache_hits_write", "cache_misses_write",
    "gc_exec", "gc_page_moves", "wl_exec", "dram_busy_ns", "memory_bytes",
)  # fmt: skip
_PHYSICAL = tuple(
    PhysicalResult.model_fields.keys() - {"power_state_ns", "power_step_ns", "power_watts"}
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
        all=_summary(flow.device),
        read=_summary(flow.device_read),
        write=_summary(flow.device_write),
    )
    end_to_end = LatencyByClass(
        all=_summary(flow.end_to_end),
        read=_summary(flow.end_to_end_read),
        write=_summary(flow.end_to_end_write),
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


def _summary(told: _core.LatencySummary) -> LatencySummary:
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


def device_result(told: _core.DeviceResult, mode: Mode) -> DeviceResult:
    """The whole drive's part of a result."""
    values: dict[str, Any] = {name: getattr(told, name) for name in _SAME_NAME}
    for name in ("pages_read", "pages_programmed", "blocks_erased"):
        origin = getattr(told, name)
        values[f"{name}_by_origin"] = OriginCounts(
            user=origin.user, gc=origin.gc, mapping=origin.mapping
        )
    for name in ("chip_exec_ns", "chip_transfer_ns", "die_busy_ns", "channel_busy_ns"):
        values[name] = tuple(getattr(told, name).tolist())
    values["map_writes"] = told.map_writes_queued
    values["link_busy_to_device_ns"], values["link_busy_to_host_ns"] = told.link_busy_ns
    values["queues"] = tuple(
        QueueResult(**{name: getattr(queue, name) for name in _QUEUE}) for queue in told.queues
    )
    if mode is Mode.COMPAT:
        values["cmt_misses_at_once"] = told.cmt_misses_at_once
    else:
        values |= _energy(told)
    return DeviceResult(**values)


ENERGY_COMPONENTS = (
    "array_read", "array_program", "array_erase", "channel", "dram", "controller", "link",
)  # fmt: skip


def _energy(told: Any) -> dict[str, Any]:
    physical = told.physical
    joules = {name: getattr(physical.energy, f"{name}_joules") for name in ENERGY_COMPONENTS}
    measured_seconds = (told.sim_end_ns - physical.measured_from_ns) / NS_PER_SECOND
    return {
        "energy_joules": joules,
        "power_watts_mean": sum(joules.values()) / measured_seconds
        if measured_seconds > 0
        else 0.0,
        "physical": PhysicalResult(
            **{name: getattr(physical, name) for name in _PHYSICAL},
            power_state_ns=tuple(physical.power_state_ns),
            power_step_ns=physical.power_step_ns or None,
            power_watts=tuple(physical.power_watts.tolist()) if physical.power_step_ns else None,
        ),
    }
