"""The undo file: what was set permanently on drive and host, and how it is undone.

It is written, flushed to disk, before anything is set, and again with the values that were set, so
that `undo` notices later changes by others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from iojoule.datasets.errors import InputError, IojouleError
from iojoule.measure.errors import CampaignError, HostStateError
from iojoule.measure.host.changes import Change, Record, to_record
from iojoule.measure.host.guard import signal_handler
from iojoule.measure.host.journal import HostState, read_trusted, write_trusted


class _Content(BaseModel):
    """The file as it is written."""

    model_config = ConfigDict(strict=True)

    format: Literal["iojoule-undo"] = "iojoule-undo"
    schema_version: Literal[1] = 1
    drive: str
    controller: str | None
    serial: str
    changes: list[Record]


@dataclass(frozen=True)
class Entry:
    """One setting; `after` is None where the value follows from another one or was not set yet."""

    change: Change
    before: str
    after: str | None


@dataclass(frozen=True)
class UndoFile:
    """What was set on one drive and its host, in order."""

    drive: str
    controller: str | None
    serial: str
    entries: tuple[Entry, ...]

    def create(self, path: Path) -> None:
        """Write it where there is no file.

        Raises:
            InputError: There is one.
            HostStateError: It cannot be written.
        """
        try:
            path.touch(exist_ok=False)
        except FileExistsError:
            raise InputError(
                f"{path}: holds what takes back an earlier change; `iojoule undo {path}` first, or "
                "name another file with --undo"
            ) from None
        except OSError as error:
            raise _unwritable(path, error) from None
        try:
            self.write(path)
        except IojouleError:
            path.unlink(missing_ok=True)
            raise

    def write(self, path: Path) -> None:
        """Write it atomically. Raises HostStateError if it cannot be written."""
        content = _Content(
            drive=self.drive,
            controller=self.controller,
            serial=self.serial,
            changes=[to_record(entry.change, entry.before, entry.after) for entry in self.entries],
        )
        try:
            write_trusted(path, content.model_dump_json(indent=1) + "\n")
        except OSError as error:
            raise _unwritable(path, error) from None

    def now(self) -> UndoFile:
        """The same with the values that are in force now as those that were set."""
        entries = (
            replace(entry, after=entry.change.get() if entry.change.is_there() else None)
            for entry in self.entries
        )
        return replace(self, entries=tuple(entries))


def _unwritable(path: Path, error: OSError) -> HostStateError:
    return HostStateError(
        f"{path}: the undo file cannot be written ({error.strerror}), so nothing is set; name "
        "another place with --undo"
    )


def entries_of(settings: Sequence[tuple[Change, str]]) -> tuple[Entry, ...]:
    """What these settings change, in this order, preceded by what they disturb.

    Raises:
        DriveError: The drive does not answer.
        HostStateError: The host does not tell a value.
    """
    own = {change: Entry(change, change.get(), value) for change, value in settings}
    others: dict[Change, Entry] = {}
    for change in own:
        for disturbed in change.disturbs():
            if disturbed not in own and (value := disturbed.readable_value()) is not None:
                others.setdefault(disturbed, Entry(disturbed, value, None))
    # put back the other way round: what others disturb last
    return (*others.values(), *_disturbed_first(own))


def _disturbed_first(own: dict[Change, Entry]) -> list[Entry]:
    disturbed = {other for change in own for other in change.disturbs()}
    return sorted(own.values(), key=lambda setting: setting.change not in disturbed)


def read_undo_file(path: Path) -> UndoFile:
    """Read an undo file. Raises CampaignError if it is missing, damaged, or of another version."""
    try:
        content = _Content.model_validate_json(read_trusted(path))
    except FileNotFoundError:
        raise CampaignError(
            f"{path}: there is no such file; `iojoule apply --run` says where it writes it, and "
            "`iojoule undo` removes it when everything is back"
        ) from None
    except (OSError, UnicodeDecodeError, ValidationError):
        raise CampaignError(f"{path}: is no undo file that this iojoule can read") from None
    entries = (Entry(record.change(), record.before, record.after) for record in content.changes)
    return UndoFile(content.drive, content.controller, content.serial, tuple(entries))


def take_back(undo: UndoFile, say: Callable[[str], None], *, force: bool = False) -> int:
    """Restore everything, the last change first; goes on where one fails.

    With `force` also what others changed since. Returns how many values were restored.

    Raises HostStateError if others changed something since or will put it back (nothing is done
    then), or something could not be restored; names the command that does so.
    """
    strangers = [entry for entry in undo.entries if _changed_by_others(entry)]
    if strangers and not force:
        listed = "; ".join(
            f"{entry.change.name} was set to {entry.after} and is now {entry.change.get()}"
            for entry in strangers
        )
        raise HostStateError(
            f"another program has changed what is to be restored: {listed}. Nothing was done; say "
            "--force to put back what was there before all of it"
        )
    with signal_handler(say) as signals:
        signals.close()
        # a killed undo is completed by the next start
        state = HostState(undo.drive, note=say)
        state.adopt({entry.change: entry.before for entry in undo.entries})
        try:
            return state.restore()
        finally:
            state.release()


def _changed_by_others(entry: Entry) -> bool:
    try:
        known = entry.after is not None and entry.change.is_there()
        return known and entry.change.get() not in (entry.before, entry.after)
    except IojouleError:
        return False  # what cannot be asked fails where it is put back, with its command
