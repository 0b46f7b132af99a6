"""Lets a signal end a campaign in order, and nothing end the restoring.

The first SIGINT, SIGTERM or SIGHUP raises `Interrupted` in the main thread, once and never again;
every later one is only noted. So whatever stands in a `finally` around the campaign runs to its
end, however often somebody presses Ctrl-C.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(KeyboardInterrupt):
    """A signal asked the campaign to end."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


class Gate:
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
def gate(note: Callable[[str], None]) -> Iterator[Gate]:
    """Handle the signals inside; must be entered in the main thread."""
    one = Gate(note)
    before = {number: signal.signal(number, one.handle) for number in SIGNALS}
    try:
        yield one
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
