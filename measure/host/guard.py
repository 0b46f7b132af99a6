"""Works on a drive that is held, and puts back what was changed on every way out."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import TypeVar

from iojoule.measure.drive.block_device import BlockDevice
from iojoule.measure.drive.safety import held
from iojoule.measure.host.journal import HostState
from iojoule.measure.host.signals import Interrupted, gate

T = TypeVar("T")


def guarded(
    device: BlockDevice,
    say: Callable[[str], None],
    interrupted: str,
    work: Callable[[HostState], T],
    *,
    in_use: bool = False,
) -> T:
    """Do some work on a drive; afterwards drive and host are as they were, whatever happened.

    A function and not a context manager: a signal may arrive anywhere, also between the lines of
    contextlib that would stand between the work and the restoring.

    Args:
        device: Held exclusively meanwhile, unless it is in use.
        say: Tells people what is restored.
        interrupted: What a signal means for them, behind its name.
        work: Is given what remembers its changes.
        in_use: Whether others may use the drive meanwhile: its settings are changed, not its data.

    Raises:
        UnsafeDriveError: Somebody else holds the drive.
        HostStateError: Something could not be put back.
        Interrupted: A signal ended the work.
    """
    with gate(say) as signals, nullcontext() if in_use else held(device):
        state = HostState(str(device.path), note=say)
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
