"""Sets what a proposal says: journaled first, read back, and taken back where anything fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from iojoule.api.acting.proposal import Proposal, Step
from iojoule.measure.campaign.session import inspect_drive
from iojoule.measure.campaign.settings import wake
from iojoule.measure.errors import HostStateError, UnsafeDriveError
from iojoule.measure.host.guard import guarded
from iojoule.measure.host.journal import HostState, restore_abandoned
from iojoule.measure.host.undo_file import UndoFile, entries_of, read_undo_file, take_back

Say = Callable[[str], None]

Watch = Callable[[], None]
"""Watches what was set for a while; raises where it has to be taken back."""


def require_consent(proposal: Proposal, typed: str | None) -> None:
    """Refuse to change settings of a drive whose serial number was not typed out.

    Raises:
        UnsafeDriveError: It was not, or another one was.
    """
    drive = proposal.drive
    if typed is None:
        raise UnsafeDriveError(
            f"{drive.device.path}: to set this, type out the drive's serial number "
            f"(--serial {drive.serial})"
        )
    if typed.strip() != drive.serial:
        raise UnsafeDriveError(
            f"{drive.device.path}: its serial number is {drive.serial}, not {typed.strip()}; "
            "nothing was done to it"
        )


def apply(
    proposal: Proposal,
    steps: Sequence[Step],
    controller: str | None,
    undo_path: Path,
    say: Say,
    *,
    watch: Watch | None = None,
) -> UndoFile:
    """Set all steps, in order; the drive may be in use.

    The undo file is written before anything is set. Until the end a journal remembers everything
    as well: an error, a signal and, at the next start, a kill -9 take everything back. What an
    earlier process left changed has to be restored before the proposal is made.

    Args:
        proposal: Says which drive.
        steps: What to set.
        controller: Node of the drive's controller.
        undo_path: Where the undo file goes.
        say: Told of what is set and taken back.
        watch: Watches what was set before it is set for good.

    Raises:
        InputError: The undo file is there already.
        DriveError: The drive refuses or ignores a value; everything is as it was.
        HostStateError: The host does; likewise.
        SlaBreachedError: The watch saw a breach; everything is as it was.
    """
    device = proposal.drive.device
    settings = [(step.change, step.then) for step in steps]
    undo = UndoFile(str(device.path), controller, proposal.drive.serial, entries_of(settings))

    kept: list[UndoFile] = []
    changes: list[HostState] = []

    def work(state: HostState) -> UndoFile:
        changes.append(state)
        for step in steps:
            state.set(step.change, step.then)
            say(f"set: {step.command}")
        if watch is not None:
            watch()
        if controller is not None:  # asleep an NVMe drive names its sleep; a disk stays as it is
            wake(device)
        kept.append(undo.now())
        kept[0].write(undo_path)
        state.release()
        return kept[0]

    undo.create(undo_path)
    try:
        return guarded(device, say, "what was set is taken back", work, in_use=True)
    finally:
        if not kept and not any(state.changed for state in changes):  # everything is back
            undo_path.unlink(missing_ok=True)


def take_back_file(path: Path, say: Say, *, force: bool = False) -> int:
    """Take back what an undo file says, and remove the file.

    Args:
        path: The undo file.
        say: Told of everything that is put back.
        force: Also what somebody else has changed since.

    Returns:
        How many values were put back.

    Raises:
        CampaignError: The file is missing or damaged.
        UnsafeDriveError: Another drive sits at the node.
        HostStateError: Somebody else has changed something since, or something cannot be put back.
    """
    for line in restore_abandoned():
        say(line)
    known = read_undo_file(path)
    node = Path(known.drive)
    controller = Path(known.controller) if known.controller else None
    facts, _ = inspect_drive(node, controller)
    if facts.serial != known.serial:
        raise UnsafeDriveError(
            f"{node}: is now the drive {facts.serial}, but {path} takes back what was set on "
            f"{known.serial}; nothing was done. A restart may have renamed it, and has reset it "
            "then: see `iojoule apply` for what is in force, and remove the file"
        )
    wake(facts.device)
    done = take_back(known, say, force=force)
    try:
        path.unlink()
    except OSError as error:
        raise HostStateError(
            f"{path}: everything is back, but the file cannot be removed ({error.strerror})"
        ) from None
    return done
