"""Turns what a good run of MQSim left behind into the result that every engine gives.

What MQSim does not print is None in the result, and `UNAVAILABLE` says why.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from iojoule.sim.device import SECTOR_BYTES, DeviceConfig
from iojoule.sim.formats.mqsim_result import NS_PER_US, MqsimFlow, MqsimReport, MqsimTimes
from iojoule.sim.result import (
    DeviceResult,
    FlowResult,
    FlowSeries,
    LatencyByClass,
    LatencySummary,
    OriginCounts,
    TransactionTimes,
)
from iojoule.sim.workload import FlowConfig, FlowKind, SizeDistribution

if TYPE_CHECKING:
    from numpy.typing import NDArray

RESOLUTION_NS = NS_PER_US
"""MQSim's response log has whole microseconds, cut off."""

UNAVAILABLE = {
    "events": "MQSim does not count its events",
    "device.cache_hits_read": "MQSim prints no cache statistics, nor those of DRAM and link",
    "device.die_busy_ns": "MQSim has busy times of chips only, of which one die works at a time",
    "device.energy_joules": "MQSim has no energy",
    "flows.sim_end_ns": "MQSim does not print when its last event was; this is the last completion "
    "in the response log, cut off to whole us",
}
MIXED = (
    "MQSim's response log does not say which completions were reads, and this flow has both; "
    "only the latency over both is known"
)


@dataclass(frozen=True)
class FlowRun:
    """What there is of one flow: what was asked for, MQSim's summary, serviced, the log."""

    asked: FlowConfig
    said: MqsimFlow
    serviced: int
    log: NDArray[np.int64]


def sim_end_ns(runs: Sequence[FlowRun]) -> int:
    """Last completion of any flow; as near to the end of the simulation as MQSim lets one see."""
    return max((int(run.log[-1, 0]) for run in runs if len(run.log)), default=0) * NS_PER_US


def unavailable(runs: Sequence[FlowRun], series_step_ns: int | None) -> dict[str, str]:
    """Which fields stay None, and why."""
    missing = dict(UNAVAILABLE)
    if any(_is_mixed(run.said) for run in runs):
        missing["flows.device_latency.read"] = missing["flows.device_latency.write"] = MIXED
        missing["flows.drt_read_ns"] = missing["flows.drt_write_ns"] = MIXED
        if series_step_ns:
            missing["flows.series"] = MIXED
    return missing


def flow_result(
    run: FlowRun,
    reads: TransactionTimes | None,
    writes: TransactionTimes | None,
    end_ns: int,
    series_step_ns: int | None,
) -> FlowResult:
    """One flow. Of a flow that mixes reads and writes the latencies by class are None."""
    said = run.said
    serviced_read, serviced_write = _serviced_by_class(run)
    return FlowResult(
        name=said.name,
        generated=said.requests,
        generated_read=said.reads,
        generated_write=said.writes,
        serviced=run.serviced,
        serviced_read=serviced_read,
        serviced_write=serviced_write,
        bytes_read=said.bytes_read,
        bytes_written=said.bytes_written,
        flow_last_completion_ns=int(run.log[-1, 0]) * NS_PER_US if len(run.log) else 0,
        sim_end_ns=end_ns,
        device_latency=_by_class(run, run.log[:, 1], said.device),
        end_to_end_latency=_by_class(run, run.log[:, 2], said.end_to_end),
        read_transactions=reads,
        write_transactions=writes,
        series=_series(run, series_step_ns, end_ns) if series_step_ns else None,
    )


def _is_mixed(said: MqsimFlow) -> bool:
    return said.reads > 0 and said.writes > 0


def _serviced_by_class(run: FlowRun) -> tuple[int | None, int | None]:
    said, serviced = run.said, run.serviced
    if serviced == said.requests:
        return said.reads, said.writes
    if not _is_mixed(said):
        return (serviced, 0) if said.reads else (0, serviced)
    asked = run.asked
    if asked.kind is FlowKind.SYNTHETIC and asked.size_distribution is SizeDistribution.FIXED:
        # MQSim's bytes are those of serviced requests, all of one size.
        size = asked.size_mean_sectors * SECTOR_BYTES
        return said.bytes_read // size, said.bytes_written // size
    return None, None


def _by_class(run: FlowRun, latencies_us: NDArray[np.int64], said: MqsimTimes) -> LatencyByClass:
    both = _summary(latencies_us, run.serviced, said.mean_us)
    if _is_mixed(run.said):
        return LatencyByClass(all=both)
    none = LatencySummary()
    if run.said.writes:
        return LatencyByClass(all=both, read=none, write=both)
    return LatencyByClass(all=both, read=both, write=none)


def _summary(
    latencies_us: NDArray[np.int64], serviced: int, said_mean_us: int | None
) -> LatencySummary:
    ordered = np.sort(latencies_us) * NS_PER_US
    if not len(ordered):
        return LatencySummary()

    def percentile(per_ten_thousand: int) -> int:
        index = (2 * per_ten_thousand * (len(ordered) - 1) + 10_000) // 20_000
        return int(ordered[index])

    mean_ns = float(ordered.mean())
    if said_mean_us is not None and abs(said_mean_us * NS_PER_US - mean_ns) < NS_PER_US:
        # The mean of what was cut off and the cut-off mean are both bounds from below.
        mean_ns = max(mean_ns, float(said_mean_us * NS_PER_US))
    return LatencySummary(
        count=serviced,
        mean_ns=mean_ns,
        min_ns=int(ordered[0]),
        max_ns=int(ordered[-1]),
        p50_ns=percentile(5_000),
        p90_ns=percentile(9_000),
        p99_ns=percentile(9_900),
        p999_ns=percentile(9_990),
        p9999_ns=percentile(9_999),
        resolution_ns=RESOLUTION_NS,
    )


def _series(run: FlowRun, step_ns: int, end_ns: int) -> FlowSeries | None:
    said = run.said
    if _is_mixed(said):
        return None
    step = (run.log[:, 0] * NS_PER_US) // step_ns
    steps = end_ns // step_ns + 1
    completed = np.bincount(step, minlength=steps)
    latency_sum = np.bincount(step, weights=run.log[:, 1], minlength=steps).astype(np.int64)
    latency_max = np.zeros(steps, dtype=np.int64)
    np.maximum.at(latency_max, step, run.log[:, 1])
    moved = completed * ((said.bytes_read + said.bytes_written) / max(run.serviced, 1))
    none = np.zeros(steps, dtype=np.int64)
    reads = said.writes == 0
    columns = {
        "serviced_read": completed if reads else none,
        "serviced_write": none if reads else completed,
        "bytes_read": moved.round().astype(np.int64) if reads else none,
        "bytes_written": none if reads else moved.round().astype(np.int64),
        "latency_sum_ns": latency_sum * NS_PER_US,
        "latency_max_ns": latency_max * NS_PER_US,
    }
    return FlowSeries.model_validate({name: tuple(c.tolist()) for name, c in columns.items()})


def device_result(report: MqsimReport, end_ns: int) -> DeviceResult:
    """The drive. Pages and blocks are the transactions that the queues handed to the chips.

    Busy times are MQSim's shares of the simulated time, to six decimals, times the last completion.
    """
    moves = report.counts.get("Average_Page_Movement_For_GC") or 0.0
    collections = report.count("Total_GC_Executions")
    transfers = [round(chip.transfer * end_ns) for chip in report.chips]
    return DeviceResult(
        pages_read_by_origin=_origins(report, "Read"),
        pages_programmed_by_origin=_origins(report, "Write"),
        blocks_erased_by_origin=OriginCounts(gc=report.dequeued("GC_Erase_TR_Queue")),
        cmd_read=report.count("Issued_Flash_Read_CMD"),
        cmd_mp_read=report.count("Issued_Flash_Multiplane_Read_CMD"),
        cmd_prog=report.count("Issued_Flash_Program_CMD"),
        cmd_mp_prog=report.count("Issued_Flash_Multiplane_Program_CMD"),
        cmd_erase=report.count("Issued_Flash_Erase_CMD"),
        cmd_mp_erase=report.count("Issued_Flash_Multiplane_Erase_CMD"),
        map_reads=report.count("Issued_Flash_Read_CMD_For_Mapping"),
        map_writes=report.count("Issued_Flash_Program_CMD_For_Mapping"),
        cmt_queries_read=report.count("Total_CMT_Queries_For_Reads"),
        cmt_queries_write=report.count("Total_CMT_Queries_For_Writes"),
        cmt_hits_read=report.count("CMT_Hits_For_Read"),
        cmt_hits_write=report.count("CMT_Hits_For_Write"),
        cmt_misses_at_once=report.count("CMT_Misses"),
        gc_exec=collections,
        gc_page_moves=round(moves * collections),
        wl_exec=report.count("Total_WL_Executions"),
        chip_exec_ns=tuple(round(chip.execution * end_ns) for chip in report.chips),
        chip_transfer_ns=tuple(transfers),
        channel_busy_ns=tuple(_by_channel(report, transfers)),
        queues=report.queues,
    )


def _origins(report: MqsimReport, operation: str) -> OriginCounts:
    return OriginCounts(
        user=report.dequeued(f"User_{operation}_TR_Queue"),
        gc=report.dequeued(f"GC_{operation}_TR_Queue"),
        mapping=report.dequeued(f"Mapping_{operation}_TR_Queue"),
    )


def _by_channel(report: MqsimReport, transfers: Sequence[int]) -> Iterator[int]:
    for channel in sorted({chip.channel for chip in report.chips}):
        yield sum(
            busy
            for chip, busy in zip(report.chips, transfers, strict=True)
            if chip.channel == channel
        )


def pages_disagree(device: DeviceResult, config: DeviceConfig) -> Iterator[str]:
    """Sentences on page counts that the commands cannot explain: each is 1 to `planes` pages."""
    planes = config.planes_per_die
    for what, pages, single, multi in (
        ("pages read", device.pages_read, device.cmd_read, device.cmd_mp_read),
        ("pages programmed", device.pages_programmed, device.cmd_prog, device.cmd_mp_prog),
        ("blocks erased", device.blocks_erased, device.cmd_erase, device.cmd_mp_erase),
    ):
        if not single + 2 * multi <= pages <= single + max(planes, 2) * multi:
            yield (
                f"MQSim's counts disagree: {pages} {what} by its queues, but {single} commands and "
                f"{multi} multi-plane ones on {planes} planes [counts_disagree]"
            )
