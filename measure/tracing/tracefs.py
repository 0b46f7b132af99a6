"""A trace instance of its own, on a mount of tracefs that no other program sees.

Source: Documentation/trace/ftrace.rst (instances, trace_clock, trace_pipe_raw); fsopen, fsconfig
and fsmount are calls 430 to 432 on all architectures since Linux 5.2. A mount that is attached
nowhere ends with its descriptor, also after `kill -9`; the instance stays then, and the next
campaign removes it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from iojoule.measure.errors import HostStateError
from iojoule.measure.tracing.ring_buffer import EventFormat, PageLayout

REMEDY = (
    "tracing needs root (CAP_SYS_ADMIN), Linux 5.2 and later with CONFIG_FTRACE and "
    "CONFIG_BLK_DEV_IO_TRACE, and no lockdown; leave --trace out to measure without it"
)
CLOCK = "mono"
"""CLOCK_MONOTONIC, as all samples of a run."""

_FSOPEN, _FSCONFIG, _FSMOUNT = 430, 431, 432
_CLOEXEC = 1
_CREATE = 6
_PREFIX = "iojoule-"
_BUFFER_KIB, _LEAST_KIB = 65536, 1024
"""Of all CPUs together, and of each at least: twice what 100,000 requests leave in 20 ms."""
_EVERY_SECONDS = 0.02


@contextmanager
def mounted() -> Iterator[Path]:
    """A mount of tracefs for the calling process alone.

    Raises:
        HostStateError: It is not allowed here.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    with ExitStack() as opened:
        context = _call(libc, _FSOPEN, b"tracefs", _CLOEXEC)
        opened.callback(os.close, context)
        _call(libc, _FSCONFIG, context, _CREATE, None, None, 0)
        mount = _call(libc, _FSMOUNT, context, _CLOEXEC, 0)
        opened.callback(os.close, mount)
        yield Path(f"/proc/self/fd/{mount}")


def _call(libc: ctypes.CDLL, *words: object) -> int:
    result = int(libc.syscall(*words))
    if result < 0:
        why = os.strerror(ctypes.get_errno())
        raise HostStateError(f"tracefs cannot be mounted: {why}; {REMEDY}")
    return result


@dataclass(frozen=True)
class Instance:
    """A trace instance with some events of one block device.

    Attributes:
        folder: Its folder in tracefs.
        layout: Of its pages.
        formats: Of its events, by name.
    """

    folder: Path
    layout: PageLayout
    formats: dict[str, EventFormat]

    def start(self) -> None:
        """Forget what was recorded and record."""
        _write(self.folder / "trace", "")
        _write(self.folder / "tracing_on", "1")

    def stop(self) -> None:
        """Record no more."""
        _write(self.folder / "tracing_on", "0")


@contextmanager
def instance(root: Path, events: Sequence[str], device: int) -> Iterator[Instance]:
    """An instance that records block events of one device, not begun yet.

    Args:
        root: A mount of tracefs.
        events: Names of the group `block`; those that the kernel does not have are left out.
        device: The kernel's number: major << 20 | minor.

    Raises:
        HostStateError: The kernel or a permission does not allow it.
    """
    _remove_abandoned(root)
    folder = root / "instances" / f"{_PREFIX}{os.getpid()}"
    try:
        folder.mkdir()
    except OSError as error:
        raise HostStateError(f"no trace instance can be made: {error.strerror}; {REMEDY}") from None
    try:
        _write(folder / "tracing_on", "0")
        _write(folder / "trace_clock", CLOCK)
        _write(
            folder / "buffer_size_kb", str(max(_LEAST_KIB, _BUFFER_KIB // (os.cpu_count() or 1)))
        )
        formats = {}
        for name in events:
            event = folder / "events" / "block" / name
            if not event.is_dir():
                continue
            formats[name] = EventFormat.parse(_read(event / "format"), f"event {name}")
            _write(event / "filter", f"dev == {device}")
            _write(event / "enable", "1")
        layout = PageLayout.parse(_read(root / "events" / "header_page"), "header_page")
        yield Instance(folder, layout, formats)
    finally:
        with contextlib.suppress(HostStateError):
            _write(folder / "events" / "enable", "0")
        with contextlib.suppress(OSError):
            folder.rmdir()


def _remove_abandoned(root: Path) -> None:
    """Remove instances of processes that have ended."""
    for folder in (root / "instances").glob(f"{_PREFIX}*"):
        number = folder.name.removeprefix(_PREFIX)
        if number.isdigit() and not Path(f"/proc/{number}").exists():
            with contextlib.suppress(OSError):
                folder.rmdir()


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError as error:
        raise HostStateError(f"{path.name}: cannot be read: {error.strerror}; {REMEDY}") from None


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text)
    except OSError as error:
        raise HostStateError(
            f"{path.parent.name}/{path.name}: cannot be set: {error.strerror}; {REMEDY}"
        ) from None


@dataclass
class Collector:
    """Copies the pages of every CPU into files of a folder, in a thread of its own."""

    source: Instance
    folder: Path
    _ended: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _failure: str | None = None

    def start(self) -> None:
        """Record from now on."""
        self.folder.mkdir()
        self._thread = threading.Thread(target=self._copy, name="block-trace", daemon=True)
        self.source.start()
        self._thread.start()

    def stop(self) -> list[Path]:
        """Record no more; the files, one for each CPU.

        Raises:
            HostStateError: Pages could not be copied.
        """
        self.source.stop()
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        if self._failure is not None:
            raise HostStateError(f"the trace is incomplete: {self._failure}")
        return sorted(self.folder.glob("cpu*.pages"))

    def _copy(self) -> None:
        size = self.source.layout.size_bytes
        try:
            with ExitStack() as opened:
                pipes = []
                for cpu in sorted(self.source.folder.glob("per_cpu/cpu*")):
                    pipe = os.open(cpu / "trace_pipe_raw", os.O_RDONLY | os.O_NONBLOCK)
                    opened.callback(os.close, pipe)
                    target = (self.folder / f"{cpu.name}.pages").open("wb")
                    pipes.append((pipe, opened.enter_context(target)))
                last = False
                while not last:
                    # What was recorded before the end is read once more after it.
                    last = self._ended.wait(_EVERY_SECONDS)
                    for pipe, target in pipes:
                        while page := _page(pipe, size):
                            target.write(page.ljust(size, b"\0"))
        except OSError as error:
            self._failure = error.strerror or str(error)


def _page(pipe: int, size: int) -> bytes:
    try:
        return os.read(pipe, size)
    except BlockingIOError:
        return b""
