"""Works on a held drive, lets a signal end the work in order, and restores on every way out.

The first SIGINT, SIGTERM or SIGHUP raises `Interrupted` in the main thread, once; later ones are
only reported. So whatever stands in a `finally` around the work runs to its end.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from types import FrameType
from typing import TypeVar

from iojoule.measure.drive.block_device import BlockDevice
from iojoule.measure.drive.safety import held
from iojoule.measure.host.journal import HostState

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(KeyboardInterrupt):
    """A signal asked the campaign to end."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


class SignalHandler:
    """Whether a signal may still interrupt."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self._open = True
        self._note = note

    def close(self) -> None:
        """From now on signals are noted and wait until everything is restored."""
        self._open = False

    def handle(self, number: int, frame: FrameType | None) -> None:
        """The handler of the signals."""
        if self._open:
            self._open = False
            raise Interrupted(number)
        self._note("restoring drive and host; this takes a moment and cannot be interrupted")


@contextmanager
def handled(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Handle the signals inside, then as before; must be entered in the main thread."""
    before = {number: signal.signal(number, handler) for number in SIGNALS}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


@contextmanager
def signal_handler(note: Callable[[str], None]) -> Iterator[SignalHandler]:
    """Handle the signals inside; must be entered in the main thread."""
    handler = SignalHandler(note)
    with handled(handler.handle):
        yield handler


T = TypeVar("T")


def guarded(
    device: BlockDevice | None,
    say: Callable[[str], None],
    interrupted: str,
    work: Callable[[HostState], T],
    *,
    in_use: bool = False,
) -> T:
    """Work on a drive or host; afterwards drive and host are restored, whatever happened.

    A function and not a context manager: a signal may arrive anywhere, also between the lines of
    contextlib that would stand between the work and the restoring.

    Args:
        device: Held exclusively meanwhile, unless it is in use; None: the host alone.
        interrupted: What a signal means for the user, behind its name.
        work: Receives the state that remembers its changes.
        in_use: Whether others may use the drive meanwhile: its settings are changed, not its data.

    Raises:
        UnsafeDriveError: Another process holds the drive.
        HostStateError: Something could not be restored.
        Interrupted: A signal ended the work.
    """
    hold = nullcontext() if device is None or in_use else held(device)
    with signal_handler(say) as signals, hold:
        state = HostState(str(device.path) if device else "this host", note=say)
        try:
            try:
                return work(state)
            except Interrupted as signalled:
                say(f"{signalled}: {interrupted}")
                raise
            finally:
                signals.close()
        finally:
            # a signal between the two lines above was raised once and is never raised again
            signals.close()
            state.restore()
