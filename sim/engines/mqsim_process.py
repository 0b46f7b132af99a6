"""Runs MQSim within limits and classifies how the run ended, which its exit code does not tell.

The names are those of `iojoule.sim.known_defects` wherever a row of that table is the cause, so
the same mistake has the same name whether it is detected before the run or by it. Symptoms were
observed by running MQSim 7ec40e3.
"""

from __future__ import annotations

import os
import re
import resource
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from iojoule.sim.engines import EngineError, Limits
from iojoule.sim.errors import CancelledError, LimitError
from iojoule.sim.findings import Finding

POLL_SECONDS = 0.1
"""How long the program may go on after the caller called it off."""
SPOKEN_BYTES = 1 << 20
"""Of standard output and error, no more than this is kept: the end of it."""


@dataclass(frozen=True)
class ProcessLimits:
    """What the program may use; 0 seconds means any time."""

    memory_bytes: int
    wall_seconds: float
    file_bytes: int


@dataclass(frozen=True)
class Execution:
    """How a program ended and what it used.

    `returncode` is negative for a signal, as in `subprocess`. `stopped` says why it was killed
    from here: "wall_seconds" or "cancelled", None when it ended by itself.
    """

    returncode: int
    stdout: str
    stderr: str
    user_seconds: float
    wall_seconds: float
    peak_bytes: int
    stopped: str | None

    @property
    def signal_name(self) -> str | None:
        """Name of the signal that ended it, such as SIGSEGV."""
        return signal.Signals(-self.returncode).name if self.returncode < 0 else None


def execute(
    command: Sequence[str],
    directory: Path,
    limits: ProcessLimits,
    cancelled: Callable[[], bool] = lambda: False,
) -> Execution:
    """Run `command` in `directory` with no input; leaves stdout.txt and stderr.txt there.

    The program leads a process group of its own, which is killed when the time is over, when
    `cancelled()` says so or when this thread is interrupted. Safe in threads.

    Raises:
        OSError: The program cannot be started.
    """
    said, complained = directory / "stdout.txt", directory / "stderr.txt"
    start = time.monotonic()
    with said.open("wb") as out, complained.open("wb") as err:
        # fork and exec happen at once, so the limits reach a program that has just begun; they
        # are not set before exec because code between the two is not safe with threads.
        child = subprocess.Popen(
            list(command),
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            process_group=0,
        )
    try:
        _limit(child.pid, limits)
        stopped = _wait(child.pid, start + (limits.wall_seconds or float("inf")), cancelled)
    finally:
        # Nobody has waited for it yet, so the number still means this program and no other.
        os.killpg(child.pid, signal.SIGKILL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    return Execution(
        returncode=child.returncode,
        stdout=_end_of(said),
        stderr=_end_of(complained),
        user_seconds=usage.ru_utime,
        wall_seconds=time.monotonic() - start,
        peak_bytes=usage.ru_maxrss * 1024,
        stopped=stopped,
    )


def _limit(pid: int, limits: ProcessLimits) -> None:
    for kind, most in (
        (resource.RLIMIT_AS, limits.memory_bytes),
        (resource.RLIMIT_FSIZE, limits.file_bytes),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.prlimit(pid, kind)
        if hard != resource.RLIM_INFINITY:
            most = min(most, hard)
        resource.prlimit(pid, kind, (most, most))


def _wait(pid: int, deadline: float, cancelled: Callable[[], bool]) -> str | None:
    """Return when the program has ended (None) or must be stopped (why)."""
    descriptor = os.pidfd_open(pid)
    try:
        poller = select.poll()
        poller.register(descriptor, select.POLLIN)
        while not poller.poll(POLL_SECONDS * 1000):
            if cancelled():
                return "cancelled"
            if time.monotonic() >= deadline:
                return "wall_seconds"
    finally:
        os.close(descriptor)
    return None


def _end_of(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - SPOKEN_BYTES))
        return file.read().decode("utf-8", errors="replace")


@dataclass(frozen=True)
class Symptom:
    """What MQSim prints on standard error when it gives up, and what that means."""

    pattern: str
    name: str
    meaning: str


SYMPTOMS = (
    Symptom(
        "not support in simple cache manager",
        "cache_simple",
        "its SIMPLE cache works only for flows whose caching is TURNED_OFF; use ADVANCED",
    ),
    Symptom(
        "No implementation is available for the specified transaction scheduling",
        "scheduler_flin",
        "FLIN has no implementation; use OUT_OF_ORDER or PRIORITY_OUT_OF_ORDER",
    ),
    Symptom(
        "Unknown register is written",
        "flows_over_8",
        "it has doorbells for 8 flows; keep at most 8 in a scenario",
    ),
    Symptom(
        r"Invalid \w+ ID specified",
        "ids_out_of_range",
        "a flow lists a channel, chip, die or plane that the drive does not have",
    ),
    Symptom(
        "Duplicate object key",
        "trace_twice",
        "two flows name the same trace file; give each its own copy",
    ),
    Symptom(
        "opening input trace file",
        "missing_trace",
        "the trace file is not there; check File_Path",
    ),
    Symptom(
        "monotonically increasing in the input trace",
        "trace_goes_back",
        "the trace goes back in time; sort it by arrival",
    ),
    Symptom(
        "Unhandled address distribution type in FTL's preconditioning",
        "preconditioning_trace",
        "it cannot precondition a drive for trace flows; turn preconditioning off",
    ),
    Symptom(
        "not possible to assign PPA",
        "preconditioning_unplaceable",
        "its preconditioning cannot place all pages; use more blocks in a plane, a lower "
        "occupancy, or no preconditioning",
    ),
    Symptom(
        "from an empty pool",
        "blocks_exhausted",
        "a plane ran out of free blocks; use more blocks, a lower occupancy, or a higher "
        "GC_Exec_Threshold",
    ),
    Symptom(
        r"Retrieve_ppa.*addressMap\.end",
        "cmt_loses_waiting",
        "a write waited for a free block while others took the place of its entry in the mapping "
        "table cache; give CMT_Capacity more bytes, or a plane more blocks",
    ),
    Symptom(
        r"Evict_one_slot.*addressMap\.size",
        "cmt_below_entry",
        "a flow's part of the mapping table cache holds no entry; give CMT_Capacity more bytes",
    ),
    Symptom(
        r"\w+ an LPA that has (not|already) been locked",
        "gc_reads_many_blocks",
        "its garbage collection moved pages that were in use (static wear levelling marks the "
        "wrong block); use at most 100 blocks in a plane, or the embedded engine in physical mode",
    ),
    Symptom(
        "Inconsisten(t status|cy) in the ",
        "gc_policy_unsafe",
        "its garbage collection took a block that was in use; use GREEDY or RGA",
    ),
    Symptom(
        "Out of range address is generated",
        "hot_region_whole",
        "a hot region of 100 % leaves no cold one; write at most 99",
    ),
    Symptom(
        r"(Wrong|Unknown) .*(type|scheme|mode|policy|protocol|class|technology|mechanism|level)",
        "unknown_word",
        "a tag holds a word that it does not know",
    ),
    Symptom(
        r"Error in \w*Parameter_Set",
        "not_a_number",
        "a tag of that section holds no number, or one too large for it",
    ),
)

CRASHES = {
    "SIGFPE": ("bandwidth_below_request",),
    "SIGSEGV": (
        "total_below_queue_depth",
        "gc_copyback",
        "gc_preemptible",
        "blocks_too_few_to_write",
        "planes_over_4",
        "preconditioning_blocks_writes",
        "gc_policy_unsafe",
        "gc_reads_many_blocks",
        "preconditioning_unplaceable",
    ),
    "SIGABRT": ("cache_below_page", "planes_over_4", "flows_over_8"),
}
"""Signals that end MQSim without a message, and the defects that are known to cause them."""

SILENCES = (
    "mapping_hybrid",
    "page_32k",
    "page_32k_read",
    "io_queue_depth_16_bit",
    "queue_fetch_size_16_bit",
    "preconditioning_blocks_writes",
)
"""Defects with which MQSim ends well and has serviced nothing."""

LOSSES = (
    "gc_loses_requests",
    "gc_reads_many_blocks",
    "priority_strands",
    "gc_preemptible",
    "preconditioning_blocks_writes",
)
"""Defects with which MQSim ends with fewer requests serviced than generated."""


def raise_if_stopped(execution: Execution, limits: Limits) -> None:
    """Say that a run was stopped from outside or ran out of what it may use.

    Raises:
        CancelledError, LimitError: It was.
        EngineError: It wrote more than it may, or somebody else killed it.
    """
    if execution.stopped == "cancelled":
        raise CancelledError("MQSim was stopped, as asked")
    if execution.stopped == "wall_seconds":
        raise LimitError(
            f"MQSim did not end within {limits.wall_seconds:g} s; allow more, or simulate less",
            limit="wall_seconds",
        )
    if "bad_alloc" in execution.stderr or "bad_array_new_length" in execution.stderr:
        raise LimitError(
            f"MQSim needs more than {limits.memory_bytes} bytes of memory; allow more, or make the "
            "drive smaller (MQSim takes 8 bytes a physical page and 24 a logical one)",
            limit="memory_bytes",
        )
    if execution.signal_name == "SIGXFSZ":
        raise EngineError(
            "MQSim's files grew past their limit; simulate less", name="output_too_large"
        )
    if execution.signal_name == "SIGKILL":
        raise EngineError(
            "MQSim was killed from outside, most likely for want of memory; run fewer at once",
            name="killed",
        )


def raise_if_failed(execution: Execution, findings: Sequence[Finding]) -> None:
    """Name the cause of a run that did not end by itself and well.

    Args:
        execution: The run.
        findings: What `iojoule.sim.known_defects` says of its inputs; the cause of a silent crash.

    Raises:
        EngineError: It ended with an error or a signal.
    """
    if execution.returncode == 0:
        return
    end = execution.signal_name or f"exit code {execution.returncode}"
    for symptom in SYMPTOMS:
        if re.search(symptom.pattern, execution.stderr):
            raise EngineError(
                f"MQSim ended with {end}: {symptom.meaning}. It said: {_said(execution)}",
                name=symptom.name,
            )
    _raise_first(CRASHES.get(execution.signal_name or "", ()), findings, f"MQSim ended with {end}")
    raise EngineError(
        f"MQSim ended with {end} for a reason that is not known. It said: {_said(execution)}",
        name="failed",
    )


def raise_if_lost(
    serviced: Iterable[tuple[str, int, int]], findings: Sequence[Finding], *, tolerate: bool
) -> tuple[str, ...]:
    """Require that every generated request was serviced.

    Args:
        serviced: For each flow its name and how many requests were generated and serviced.
        findings: What `iojoule.sim.known_defects` says of the inputs.
        tolerate: Return a sentence for each flow that lost some but not all, and do not raise.

    Raises:
        EngineError: Requests were lost.
    """
    said = []
    for name, generated, done in serviced:
        if done == generated:
            continue
        story = f"{name}: MQSim generated {generated} requests and serviced {done}"
        if done == 0:
            _raise_first(SILENCES, findings, story)
            raise EngineError(f"{story}; its result says nothing", name="nothing_serviced")
        if not tolerate:
            _raise_first(LOSSES, findings, story)
            raise EngineError(
                f"{story}; rates and latencies are those of a shrinking queue",
                name="requests_lost",
            )
        said.append(f"{story}; rates and latencies are those of a shrinking queue [requests_lost]")
    return tuple(said)


def _raise_first(names: Iterable[str], findings: Sequence[Finding], story: str) -> None:
    for name in names:
        for finding in findings:
            if finding.name == name:
                raise EngineError(f"{story}: {finding.field}: {finding.message}", name=name)


def _said(execution: Execution) -> str:
    lines = [line.strip() for line in execution.stderr.splitlines() if line.strip()]
    return " | ".join(lines[-3:])[:500] or "nothing"
