"""Writes a result in the layout of MQSim's own result file, so that scripts made for it go on.

The values are MQSim's too, its mistakes included where they are in the formula:

* IOPS and bandwidth are over whole seconds of simulated time (`inf` below one second), and IOPS
  counts generated requests;
* times are whole microseconds, cut off;
* `Fraction_of_Time_Idle` leaves the execution out;
* `STDev_Queue_Length` is not the standard deviation;
* what never happened prints as `-nan`, 9223372036854775808 or 1271310319.

`CMT_Misses` counts, as in MQSim, only misses that needed no mapping page; where the engine does
not count these apart it is hits subtracted from queries. Exact values are in the JSON form.
"""

from __future__ import annotations

from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

from iojoule.sim.device import DeviceConfig, HostInterface
from iojoule.sim.formats.mqsim_result import NEVER_MIN_US, NS_PER_US, PRIORITIES
from iojoule.sim.result import NS_PER_SECOND as SECOND
from iojoule.sim.result import (
    DeviceResult,
    FlowResult,
    LatencySummary,
    QueueResult,
    ScenarioResult,
    TransactionTimes,
)

QUEUE_KINDS = (
    "User_Read_TR_Queue", "User_Write_TR_Queue", "Mapping_Read_TR_Queue", "Mapping_Write_TR_Queue",
    "GC_Read_TR_Queue", "GC_Write_TR_Queue", "GC_Erase_TR_Queue",
)  # fmt: skip
"""In the order of MQSim's file."""
NO_WAITING_US = 9223372036854775808
"""What MQSim prints as the mean wait of a queue that nothing left."""


def write_result_xml(result: ScenarioResult, device: DeviceConfig) -> str:
    """MQSim's result file for one scenario.

    Args:
        result: The scenario; of the parts that its engine cannot know (queues of an engine that
            has none) the file has no elements.
        device: The drive that it ran on.
    """
    lines = ['<?xml version="1.0" encoding="us-ascii"?>', "<MQSim_Results>", "\t<Host>"]
    for flow in result.flows:
        lines += ["\t\t<Host.IO_Flow>"]
        lines += [f"\t\t\t\t <{tag}>{text}</{tag}>" for tag, text in _flow(flow)]
        lines += ["\t\t</Host.IO_Flow>"]
    lines += ["\t</Host>", "\t<SSDDevice>"]
    lines += _host_interface(result.flows, device.host_interface)
    ftl = " ".join(f'{name}="{value}"' for name, value in _ftl(result.device))
    lines += [f"\t\t<SSDDevice.FTL {ftl}/>", "\t\t<SSDDevice.TSU>"]
    lines += [f"\t\t\t{_queue(queue)}" for queue in sorted(result.device.queues, key=_place)]
    lines += ["\t\t</SSDDevice.TSU>"]
    end_ns = max((flow.sim_end_ns for flow in result.flows), default=0)
    lines += [f"\t\t{chip}" for chip in _chips(result.device, device.chips_per_channel, end_ns)]
    return "\n".join([*lines, "\t</SSDDevice>", "</MQSim_Results>"]) + "\n"


def _ratio(number: float, of: float) -> str:
    """A quotient as C prints it with six decimals."""
    if of == 0:
        return "inf" if number else "-nan"
    return f"{number / of:.6f}"


def _us(time_ns: float) -> int:
    return int(time_ns // NS_PER_US)


def _flow(flow: FlowResult) -> Iterator[tuple[str, str]]:
    seconds = flow.sim_end_ns // SECOND
    bytes_all = flow.bytes_read + flow.bytes_written
    yield "Name", _ascii(escape(flow.name))
    yield "Request_Count", str(flow.generated)
    yield "Read_Request_Count", str(flow.generated_read)
    yield "Write_Request_Count", str(flow.generated_write)
    yield "IOPS", _ratio(flow.generated, seconds)
    yield "IOPS_Read", _ratio(flow.generated_read, seconds)
    yield "IOPS_Write", _ratio(flow.generated_write, seconds)
    for tag, moved in (("", bytes_all), ("_Read", flow.bytes_read), ("_Write", flow.bytes_written)):
        yield f"Bytes_Transferred{tag}", f"{moved:.6f}"
    for tag, moved in (("", bytes_all), ("_Read", flow.bytes_read), ("_Write", flow.bytes_written)):
        yield f"Bandwidth{tag}", _ratio(moved, seconds)
    yield from _latency("Device_Response_Time", flow.device_latency.all)
    yield from _latency("End_to_End_Request_Delay", flow.end_to_end_latency.all)


def _ascii(text: str) -> str:
    return text.encode("ascii", "xmlcharrefreplace").decode("ascii")


def _latency(tag: str, summary: LatencySummary) -> Iterator[tuple[str, str]]:
    yield tag, str(_us(summary.mean_ns))
    yield f"Min_{tag}", str(_us(summary.min_ns) if summary.count else NEVER_MIN_US)
    yield f"Max_{tag}", str(_us(summary.max_ns))


def _host_interface(flows: tuple[FlowResult, ...], kind: HostInterface) -> list[str]:
    lines = [
        "\t\t<SSDDevice.HostInterface>",
        "\t\t\t\t <Name>SSDDevice.HostInterface</Name>",
    ]
    for number, flow in enumerate(flows):
        times = [
            f" <Average_{operation}_Transaction_{part}_Time>{_us(value)}"
            f"</Average_{operation}_Transaction_{part}_Time>"
            for operation, transactions in (
                ("Read", flow.read_transactions),
                ("Write", flow.write_transactions),
            )
            for part, value in _parts(transactions)
        ]
        if kind is HostInterface.SATA:
            # one stream, which has no element of its own
            lines += [f"\t\t\t\t{line}" for line in times]
            break
        lines += ["\t\t\t<SSDDevice.IO_Stream>", f"\t\t\t\t\t <Stream_ID>{number}</Stream_ID>"]
        lines += [f"\t\t\t\t\t{line}" for line in times]
        lines += ["\t\t\t</SSDDevice.IO_Stream>"]
    return [*lines, "\t\t</SSDDevice.HostInterface>"]


def _parts(transactions: TransactionTimes | None) -> Iterator[tuple[str, float]]:
    times = transactions or TransactionTimes()
    yield "Turnaround", times.turnaround_ns
    yield "Execution", times.execution_ns
    yield "Transfer", times.transfer_ns
    yield "Waiting", times.waiting_ns


def _ftl(device: DeviceResult) -> Iterator[tuple[str, object]]:
    misses_read = device.cmt_queries_read - device.cmt_hits_read
    misses_write = device.cmt_queries_write - device.cmt_hits_write
    at_once = device.cmt_misses_at_once
    yield "Issued_Flash_Read_CMD", device.cmd_read
    yield "Issued_Flash_Interleaved_Read_CMD", 0
    yield "Issued_Flash_Multiplane_Read_CMD", device.cmd_mp_read
    yield "Issued_Flash_Copyback_Read_CMD", 0
    yield "Issued_Flash_Multiplane_Copyback_Read_CMD", 0
    yield "Issued_Flash_Program_CMD", device.cmd_prog
    yield "Issued_Flash_Interleaved_Program_CMD", 0
    yield "Issued_Flash_Multiplane_Program_CMD", device.cmd_mp_prog
    yield "Issued_Flash_Interleaved_Multiplane_Program_CMD", 0
    yield "Issued_Flash_Copyback_Program_CMD", 0
    yield "Issued_Flash_Multiplane_Copyback_Program_CMD", 0
    yield "Issued_Flash_Erase_CMD", device.cmd_erase
    yield "Issued_Flash_Interleaved_Erase_CMD", 0
    yield "Issued_Flash_Multiplane_Erase_CMD", device.cmd_mp_erase
    yield "Issued_Flash_Interleaved_Multiplane_Erase_CMD", 0
    yield "Issued_Flash_Suspend_Program_CMD", _suspends(device, "program_suspends")
    yield "Issued_Flash_Suspend_Erase_CMD", _suspends(device, "erase_suspends")
    yield "Issued_Flash_Read_CMD_For_Mapping", device.map_reads
    yield "Issued_Flash_Program_CMD_For_Mapping", device.map_writes
    yield "CMT_Hits", device.cmt_hits
    yield "CMT_Hits_For_Read", device.cmt_hits_read
    yield "CMT_Hits_For_Write", device.cmt_hits_write
    yield "CMT_Misses", misses_read + misses_write if at_once is None else at_once
    yield "CMT_Misses_For_Read", misses_read
    yield "CMT_Misses_For_Write", misses_write
    yield "Total_CMT_Queries", device.cmt_queries
    yield "Total_CMT_Queries_For_Reads", device.cmt_queries_read
    yield "Total_CMT_Queries_For_Writes", device.cmt_queries_write
    yield "Total_GC_Executions", device.gc_exec
    yield "Average_Page_Movement_For_GC", _ratio(device.gc_page_moves, device.gc_exec)
    yield "Total_WL_Executions", device.wl_exec
    # MQSim never counts these moves.
    yield "Average_Page_Movement_For_WL", _ratio(0, device.wl_exec)


def _suspends(device: DeviceResult, kind: str) -> int:
    return 0 if device.physical is None else int(getattr(device.physical, kind))


def _place(queue: QueueResult) -> tuple[int, int, int, int]:
    kind = QUEUE_KINDS.index(queue.name) if queue.name in QUEUE_KINDS else len(QUEUE_KINDS)
    return kind, queue.channel, queue.chip, queue.priority


def _queue(queue: QueueResult) -> str:
    priority = PRIORITIES[queue.priority] if queue.priority >= 0 else ""
    tag = f"SSDDevice.TSU.{queue.name}" + (f".Priority.{priority}" if priority else "")
    name = f"{queue.name}@{queue.channel}@{queue.chip}" + (f"@{priority}" if priority else "")
    waited = _us(queue.mean_waiting_ns) if queue.dequeued else NO_WAITING_US
    return (
        f"<{tag} Name={quoteattr(name)}"
        f' No_Of_Transactions_Enqueued="{queue.enqueued}"'
        f' No_Of_Transactions_Dequeued="{queue.dequeued}"'
        f' Avg_Queue_Length="{queue.mean_length:.6f}" Max_Queue_Length="{queue.max_length}"'
        f' STDev_Queue_Length="{queue.sd_length or 0.0:.6f}"'
        f' Avg_Transaction_Waiting_Time="{waited}"'
        f' Max_Transaction_Waiting_Time="{_us(queue.max_waiting_ns)}"/>'
    )


def _chips(device: DeviceResult, chips_per_channel: int, end_ns: int) -> Iterator[str]:
    busy = zip(device.chip_exec_ns, device.chip_transfer_ns, strict=True)
    for number, (execution_ns, transfer_ns) in enumerate(busy):
        channel, chip = divmod(number, chips_per_channel)
        yield (
            f'<SSDDevice.FlashChips ID="@{channel}@{chip}"'
            f' Fraction_of_Time_in_Execution="{_ratio(execution_ns, end_ns)}"'
            f' Fraction_of_Time_in_DataXfer="{_ratio(transfer_ns, end_ns)}"'
            f' Fraction_of_Time_in_DataXfer_and_Execution="{_ratio(0, end_ns)}"'
            f' Fraction_of_Time_Idle="{_ratio(end_ns - transfer_ns, end_ns)}"/>'
        )
