"""Reads MQSim's result file, response log and standard error, and writes a result in its layout.

Times in the result file are whole microseconds, cut off; rates are over whole seconds of simulated
time and therefore not read at all. MQSim prints numbers for what never happened (`-nan`,
9223372036854775808, 1271310319); here they are None. The writer reproduces MQSim's values, known
mistakes of its formulas included, so that scripts made for its result file keep working.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from iojoule.datasets.errors import InputError
from iojoule.sim.device import DeviceConfig, HostInterface
from iojoule.sim.result import NS_PER_SECOND as SECOND
from iojoule.sim.result import (
    DeviceResult,
    FlowResult,
    LatencySummary,
    QueueResult,
    ScenarioResult,
    TransactionTimes,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


RESULT_BYTES_MAX = 256 << 20
NS_PER_US = 1000
NEVER_MIN_US = 1271310319
"""What MQSim prints as the least time when nothing was serviced."""
PRIORITIES = ("URGENT", "HIGH", "MEDIUM", "LOW")


@dataclass(frozen=True)
class MqsimTimes:
    """Mean, least and greatest of one kind of latency in us; None: nothing was serviced."""

    mean_us: int | None
    min_us: int | None
    max_us: int | None


@dataclass(frozen=True)
class MqsimFlow:
    """One flow of a result file. Requests are those generated, bytes those serviced."""

    name: str
    requests: int
    reads: int
    writes: int
    bytes_read: int
    bytes_written: int
    device: MqsimTimes
    end_to_end: MqsimTimes


@dataclass(frozen=True)
class ChipShares:
    """How much of the simulated time a chip was busy, 0 to 1, to six decimals."""

    channel: int
    chip: int
    execution: float
    transfer: float


@dataclass(frozen=True)
class MqsimReport:
    """One result file: `counts` are the FTL's attributes by MQSim's names, None for `-nan`."""

    flows: tuple[MqsimFlow, ...]
    read_transactions: tuple[TransactionTimes, ...]
    write_transactions: tuple[TransactionTimes, ...]
    counts: dict[str, float | None]
    queues: tuple[QueueResult, ...]
    chips: tuple[ChipShares, ...]

    def count(self, name: str) -> int:
        """One of the FTL's counts.

        Raises:
            InputError: The file does not have it.
        """
        value = self.counts.get(name)
        if value is None or value < 0:
            raise InputError(f"SSDDevice.FTL: {name} is missing or no count")
        return int(value)

    def dequeued(self, kind: str) -> int:
        """Transactions that all queues of a kind, such as `GC_Read_TR_Queue`, handed to chips."""
        return sum(queue.dequeued for queue in self.queues if queue.name == kind)


def read_result(path: Path) -> MqsimReport:
    """Read a result file of MQSim.

    Raises:
        InputError: It is missing, too large, no XML, or lacks a number that it must have.
    """
    try:
        if path.stat().st_size > RESULT_BYTES_MAX:
            raise InputError(f"{path}: larger than {RESULT_BYTES_MAX} bytes")
        text = path.read_text(encoding="ascii")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not ASCII, as MQSim writes it") from error
    return parse_result(text, str(path))


def parse_result(text: str, origin: str) -> MqsimReport:
    """The same from the file's text; `origin` names it in errors."""
    if "<!" in text:
        raise InputError(f"{origin}: has a declaration, which MQSim never writes")
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise InputError(f"{origin}: not well-formed XML: {error}") from error
    if root.tag != "MQSim_Results":
        raise InputError(f"{origin}: begins with <{root.tag}> and not <MQSim_Results>")
    try:
        return _report(root)
    except (KeyError, ValueError, IndexError) as error:
        raise InputError(f"{origin}: {error}") from error


def _report(root: ElementTree.Element) -> MqsimReport:
    host = root.find("SSDDevice/SSDDevice.HostInterface")
    ftl = root.find("SSDDevice/SSDDevice.FTL")
    queues = root.find("SSDDevice/SSDDevice.TSU")
    if host is None or ftl is None or queues is None:
        raise ValueError("HostInterface, FTL or TSU of SSDDevice is missing; the run was cut short")
    # With SATA, which has no streams, the times stand in the host interface itself.
    streams = host.findall("SSDDevice.IO_Stream") or [host]
    return MqsimReport(
        flows=tuple(_flow(each) for each in root.iterfind("Host/Host.IO_Flow")),
        read_transactions=tuple(_transactions(each, "Read") for each in streams),
        write_transactions=tuple(_transactions(each, "Write") for each in streams),
        counts={name: _number(value) for name, value in ftl.attrib.items()},
        queues=tuple(_queue(each) for each in queues),
        chips=tuple(_chip(each) for each in root.iterfind("SSDDevice/SSDDevice.FlashChips")),
    )


def _number(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) and value < 2.0**63 else None


def _child(parent: ElementTree.Element, tag: str) -> float | None:
    text = parent.findtext(tag)
    if text is None:
        raise KeyError(f"{parent.tag}: {tag} is missing")
    return _number(text)


def _count(parent: ElementTree.Element, tag: str) -> int:
    value = _child(parent, tag)
    if value is None or value < 0:
        raise ValueError(f"{parent.tag}: {tag} is {parent.findtext(tag)}")
    return int(value)


def _flow(element: ElementTree.Element) -> MqsimFlow:
    requests, reads, writes = (
        _count(element, kind)
        for kind in ("Request_Count", "Read_Request_Count", "Write_Request_Count")
    )
    if requests != reads + writes:
        raise ValueError(f"{requests} requests are not {reads} reads and {writes} writes")
    return MqsimFlow(
        name=element.findtext("Name") or "",
        requests=requests,
        reads=reads,
        writes=writes,
        bytes_read=_count(element, "Bytes_Transferred_Read"),
        bytes_written=_count(element, "Bytes_Transferred_Write"),
        device=_times(element, "Device_Response_Time"),
        end_to_end=_times(element, "End_to_End_Request_Delay"),
    )


def _times(flow: ElementTree.Element, kind: str) -> MqsimTimes:
    if _child(flow, f"Min_{kind}") == NEVER_MIN_US:
        return MqsimTimes(None, None, None)
    return MqsimTimes(*(_count(flow, prefix + kind) for prefix in ("", "Min_", "Max_")))


def _transactions(stream: ElementTree.Element, kind: str) -> TransactionTimes:
    def mean_ns(part: str) -> float:
        return _count(stream, f"Average_{kind}_Transaction_{part}_Time") * NS_PER_US

    return TransactionTimes(
        turnaround_ns=mean_ns("Turnaround"),
        execution_ns=mean_ns("Execution"),
        transfer_ns=mean_ns("Transfer"),
        waiting_ns=mean_ns("Waiting"),
    )


def _queue(element: ElementTree.Element) -> QueueResult:
    kind, channel, chip, *priority = element.attrib["Name"].split("@")

    def value(name: str) -> float:
        return _number(element.attrib[name]) or 0.0

    return QueueResult(
        name=kind,
        channel=int(channel),
        chip=int(chip),
        priority=PRIORITIES.index(priority[0]) if priority else -1,
        enqueued=int(value("No_Of_Transactions_Enqueued")),
        dequeued=int(value("No_Of_Transactions_Dequeued")),
        max_length=int(value("Max_Queue_Length")),
        mean_length=value("Avg_Queue_Length"),
        sd_length=value("STDev_Queue_Length"),
        max_waiting_ns=int(value("Max_Transaction_Waiting_Time")) * NS_PER_US,
        mean_waiting_ns=value("Avg_Transaction_Waiting_Time") * NS_PER_US,
    )


def _chip(element: ElementTree.Element) -> ChipShares:
    _, channel, chip = element.attrib["ID"].split("@")
    # MQSim's own idle share leaves the execution out, so it is not read.
    return ChipShares(
        channel=int(channel),
        chip=int(chip),
        execution=_share(element, "Fraction_of_Time_in_Execution"),
        transfer=_share(element, "Fraction_of_Time_in_DataXfer"),
    )


def _share(chip: ElementTree.Element, name: str) -> float:
    share = _number(chip.attrib[name]) or 0.0
    if not 0 <= share <= 1:
        raise ValueError(f"{chip.tag}: {name} is {share}")
    return share


def read_response_log(path: Path) -> NDArray[np.int64]:
    """Completions of one flow, one row each: time, device response time, end-to-end delay in us.

    With a logging period of 0 MQSim writes a row for each instant at which requests completed,
    with their mean where there are several; all are cut off to whole microseconds.

    Raises:
        InputError: It is missing, or its rows are not three whole numbers in order of time.
    """
    import numpy as np

    try:
        with path.open(encoding="ascii") as lines:
            header = lines.readline()
            if header.split()[:1] != ["SimulationTime(us)"]:
                raise InputError(f"{path}: the first line is not that of a response log")
            if not (first := lines.readline()).strip():
                return np.empty((0, 3), dtype=np.int64)
            rows = np.loadtxt(chain([first], lines), dtype=np.int64, ndmin=2, comments=None)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: not a response log: {error}") from error
    if rows.shape[1] != 3 or np.any(rows < 0) or np.any(np.diff(rows[:, 0]) < 0):
        raise InputError(f"{path}: rows are not three counts of us in order of time")
    return rows


_SERVICED = re.compile(
    r"^Flow (?P<name>.*) - total requests generated: (?P<generated>\d+)"
    r" total requests serviced:(?P<serviced>\d+)",
    re.MULTILINE,
)


def read_serviced(stdout: str) -> list[tuple[str, int, int]]:
    """For each flow its name and how many requests were generated and serviced.

    MQSim says so on its standard output and nowhere else.
    """
    return [
        (match["name"], int(match["generated"]), int(match["serviced"]))
        for match in _SERVICED.finditer(stdout)
    ]


QUEUE_KINDS = (
    "User_Read_TR_Queue",
    "User_Write_TR_Queue",
    "Mapping_Read_TR_Queue",
    "Mapping_Write_TR_Queue",
    "GC_Read_TR_Queue",
    "GC_Write_TR_Queue",
    "GC_Erase_TR_Queue",
)
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
        lines += [f"\t\t\t\t <{tag}>{text}</{tag}>" for tag, text in _flow_xml(flow)]
        lines += ["\t\t</Host.IO_Flow>"]
    lines += ["\t</Host>", "\t<SSDDevice>"]
    lines += _host_interface(result.flows, device.host_interface)
    ftl = " ".join(f'{name}="{value}"' for name, value in _ftl(result.device))
    lines += [f"\t\t<SSDDevice.FTL {ftl}/>", "\t\t<SSDDevice.TSU>"]
    lines += [f"\t\t\t{_queue_xml(queue)}" for queue in sorted(result.device.queues, key=_place)]
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


def _flow_xml(flow: FlowResult) -> Iterator[tuple[str, str]]:
    seconds = flow.sim_end_ns // SECOND
    bytes_all = flow.bytes_read + flow.bytes_written
    yield "Name", _ascii(escape(flow.name, quote=False))
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


def _queue_xml(queue: QueueResult) -> str:
    priority = PRIORITIES[queue.priority] if queue.priority >= 0 else ""
    tag = f"SSDDevice.TSU.{queue.name}" + (f".Priority.{priority}" if priority else "")
    name = f"{queue.name}@{queue.channel}@{queue.chip}" + (f"@{priority}" if priority else "")
    waited = _us(queue.mean_waiting_ns) if queue.dequeued else NO_WAITING_US
    return (
        f'<{tag} Name="{name}"'
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
