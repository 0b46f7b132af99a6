"""The journal of changes, from which every exit path restores.

The value before is written to a journal, flushed to disk, before anything is changed. The end of a
campaign, an error and a signal restore it at once; after a kill -9 the next start finds the journal
of a dead process and restores from it.

A journal or undo file says what root writes where. It is obeyed only if it is a plain file of the
effective user, not writable by group or others, in a folder of the same kind or of root; symbolic
links are refused. The opened file is checked, so that nothing can be put in its place meanwhile.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from io import BufferedRandom
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from iojoule.datasets.atomic import write_atomically
from iojoule.datasets.errors import IojouleError
from iojoule.measure.errors import CampaignError, HostStateError
from iojoule.measure.host.changes import Change, Record, to_record
from iojoule.measure.host.host_files import boot_id, process_start

_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def read_trusted(path: Path) -> str:
    """The text of a file that only this user can have written.

    Raises:
        FileNotFoundError: It does not exist.
        OSError: It cannot be read.
        CampaignError: Another user owns it, may write it, or could have put it there.
    """
    require_own_folder(path.parent)
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        if path.is_symlink():
            raise _refusal(path, "is a symbolic link") from error
        raise
    with os.fdopen(handle, encoding="utf-8") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise _refusal(path, "is no plain file")
        if status.st_uid != os.geteuid():
            raise _refusal(path, f"belongs to user {status.st_uid}")
        if status.st_mode & _OTHERS:
            raise _refusal(path, "may be written by others")
        return file.read()


def require_own_folder(folder: Path) -> None:
    """Refuse a folder into which others can put files.

    Raises:
        FileNotFoundError: It does not exist.
        CampaignError: Another user owns it or may write it.
    """
    status = folder.stat()
    if status.st_uid not in (os.geteuid(), 0):
        raise _refusal(folder, f"belongs to user {status.st_uid}")
    # in a sticky folder (/tmp) users can replace only their own files, and owners are checked
    if status.st_mode & _OTHERS and not status.st_mode & stat.S_ISVTX:
        raise _refusal(folder, "may be written by others")


def _refusal(path: Path, why: str) -> CampaignError:
    return CampaignError(
        f"{path}: {why}, so what is in it is not obeyed; look at what it says, and remove it or "
        "give it to the user who runs this"
    )


def write_trusted(path: Path, text: str) -> None:
    """Write a file that `read_trusted` obeys, whatever the umask; else what was there stays.

    Raises:
        OSError: It cannot be written.
        CampaignError: Others could put another file there.
    """
    require_own_folder(path.parent)

    def write(stream: BufferedRandom) -> None:
        os.fchmod(stream.fileno(), stat.S_IRUSR | stat.S_IWUSR)
        stream.write(text.encode())

    # a link that another user put there must not lead root elsewhere
    write_atomically(path, write, follow=False)


JOURNALS_VARIABLE = "IOJOULE_JOURNALS"
"""Environment variable that names the folder of the journals."""

_OF_ROOT = Path("/var/lib/iojoule-root")
"""Never the folder of the service, which runs as another user: root obeys what lies there."""


def journals_folder() -> Path:
    """Where journals are kept: $IOJOULE_JOURNALS, else a folder of this user's own."""
    stated = os.environ.get(JOURNALS_VARIABLE)
    if stated:
        return Path(stated)
    if os.geteuid() == 0:
        return _OF_ROOT
    base = os.environ.get("XDG_STATE_HOME")
    state = Path(base) if base else Path.home() / ".local" / "state"
    return state / "iojoule" / "journals"


class Journal(BaseModel):
    """What a process changed, and which process of which boot that was."""

    model_config = ConfigDict(strict=True)

    format: Literal["iojoule-restore"] = "iojoule-restore"
    schema_version: Literal[1] = 1
    drive: str
    pid: int
    pid_started: int | None
    boot_id: str
    changes: list[Record]


class HostState:
    """Changes of this process to drive and host; a context manager that restores them."""

    def __init__(
        self, drive: str, folder: Path | None = None, note: Callable[[str], None] | None = None
    ) -> None:
        self._drive = drive
        self._path = (folder or journals_folder()) / f"restore-{os.getpid()}-{id(self):x}.json"
        self._before: dict[Change, str] = {}
        self._serials: dict[Change, str | None] = {}
        self._now: dict[Change, str] = {}
        self._note = note or (lambda _: None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.restore()

    @property
    def changed(self) -> dict[Change, str]:
        """What was changed and is not restored yet, with the value before."""
        return dict(self._before)

    def set(self, change: Change, value: str) -> None:
        """Set a value, and remember the first one; nothing is written where it is in force already.

        Raises:
            DriveError: The drive refuses or ignores the value.
            HostStateError: The host refuses it, or the journal cannot be written.
        """
        if self._now.get(change) == value:
            return
        if change not in self._before:
            if change.has_value(value):
                self._now[change] = value
                return
            self._keep(change, change.get())
        self._now.pop(change, None)
        change.set(value)
        self._now[change] = value
        for disturbed in change.disturbs():
            if (wanted := self._now.get(disturbed)) is not None:
                disturbed.set(wanted)

    def put_back(self, change: Change) -> None:
        """Set the value that was there first, and what setting it disturbs; else do nothing.

        Raises as `set`.
        """
        if change not in self._before:
            return
        self.set(change, self._before[change])
        for disturbed in reversed(change.disturbs()):
            before = self._before.get(disturbed)
            if before is not None and disturbed not in self._now and disturbed.get() != before:
                disturbed.set(before)

    def put_back_all(self, changes: Iterable[Change]) -> None:
        """Put back these as far as they are taken; what fails is tried again at the end."""
        for change in changes:
            self.forget(change)
            with suppress(IojouleError):
                self.put_back(change)

    def remember(self, change: Change) -> None:
        """Restore its present value at the end, whatever changes it.

        Raises as `set`.
        """
        if change not in self._before:
            self._keep(change, change.get())

    def forget(self, change: Change) -> None:
        """Set it again at the next `set`, whatever it was last told: it may have been reset."""
        self._now.pop(change, None)

    def adopt(self, changes: Mapping[Change, str]) -> None:
        """Restore these values at the end, the last one first; raises as `set`."""
        self._remember(dict(changes))

    def release(self) -> None:
        """Leave everything as it is now: another record holds the earlier values.

        Raises HostStateError if the journal cannot be removed.
        """
        self._end()
        self._before.clear()
        self._now.clear()

    def restore(self) -> int:
        """Restore everything, the last change first; goes on where one fails.

        Returns how many values were set.

        Raises HostStateError if something could not be restored; names the command that does so,
        and the journal stays for the next start.
        """
        count, failed = _put_back(self._before, self._serials, "restored", self._note)
        self._before = {change: self._before[change] for change in self._before if change in failed}
        self._now.clear()
        if failed:
            with suppress(OSError, CampaignError):
                self._write(self._before)
            raise HostStateError(
                f"{self._drive}: not everything could be put back; do it by hand: "
                + "; ".join(failed.values())
            )
        self._end()
        return count

    def _end(self) -> None:
        if not self._path.exists():
            return  # nor does a folder that is read-only let anything be removed
        try:
            self._path.unlink()
        except OSError as error:
            raise HostStateError(
                f"{self._path}: the journal of what is over cannot be removed ({error.strerror}); "
                "remove it, or the next start restores from it again"
            ) from None

    def _keep(self, change: Change, before: str) -> None:
        others = {
            disturbed: value
            for disturbed in change.disturbs()
            if (value := disturbed.readable_value()) is not None
        }
        # behind them, so that it is put back before them
        self._remember({**others, **self._before, change: before})

    def _remember(self, changes: dict[Change, str]) -> None:
        folder = self._path.parent
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with _locked(folder):
                new = changes.keys() - self._before.keys()
                _require_free(folder, new)
                self._serials |= {change: _known_serial(change) for change in new}
                self._write(changes)
        except OSError as error:
            raise HostStateError(
                f"{self._path}: the journal that restores the host cannot be written "
                f"({error.strerror}), so nothing is changed; free space, or name another folder "
                f"with {JOURNALS_VARIABLE}"
            ) from None
        self._before = changes

    def _write(self, changes: Mapping[Change, str]) -> None:
        content = Journal(
            drive=self._drive,
            pid=os.getpid(),
            pid_started=process_start(os.getpid()),
            boot_id=boot_id() or "unknown",
            changes=[
                to_record(change, before, serial=self._serials[change])
                for change, before in changes.items()
            ],
        )
        write_trusted(self._path, content.model_dump_json(indent=1))


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep other processes from journaling and from restoring meanwhile. Raises OSError."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _require_free(folder: Path, changes: Collection[Change]) -> None:
    """Raise HostStateError where another running process will put back one of these."""
    for path in sorted(folder.glob("restore-*.json")):
        try:
            content = _journal(path)
            journaled = {step.change() for step in content.changes}
        except (IojouleError, FileNotFoundError):
            continue  # the next start tells of it
        shared = [change for change in changes if change in journaled]
        if shared and content.pid != os.getpid() and _alive(content):
            raise HostStateError(
                f"{content.drive}: process {content.pid} of iojoule has changed what is to be "
                f"changed here ({shared[0].name}) and puts it back when it ends, so nothing is "
                "changed; end that one first"
            )


def _known_serial(change: Change) -> str | None:
    try:
        return change.serial()
    except IojouleError:
        return None  # what the drive does not tell is not compared


def _put_back(
    changes: Mapping[Change, str],
    serials: Mapping[Change, str | None],
    done: str,
    say: Callable[[str], None],
) -> tuple[int, dict[Change, str]]:
    """Set these values, the last one first; goes on where one fails.

    A name of the kernel may belong to another drive since: a value is set only on the drive with
    the serial number that it was taken from. `done` and the command is said of what was set.

    Returns how many were set, and the command of each that failed, with the reason.
    """
    count, failed = 0, {}
    for change, value in reversed(list(changes.items())):
        if not change.is_there():
            say(f"not restored, it is gone: {change.name}")
            continue
        command = change.command(value)
        try:
            before = serials.get(change)
            if before is not None and before != (now := change.serial()):
                say(
                    f"not restored, drive {now or 'without serial number'} has taken the place of "
                    f"{before}: {command}"
                )
            elif change.restore(value):
                say(f"{done}: {command}")
                count += 1
        except IojouleError as error:
            failed[change] = f"`{command}` ({error.message})"
    return count, failed


def restore_abandoned(folder: Path | None = None) -> list[str]:
    """Restore the changes of killed campaigns, and report them.

    What kernel or drive forget at a reboot is not written again after one. Goes on where a journal
    or a change fails; its journal stays.

    Raises:
        HostStateError: Something could not be restored.
        CampaignError: There is a journal that is not obeyed.
    """
    folder = folder or journals_folder()
    messages: list[str] = []
    failed: list[IojouleError] = []
    try:
        with _locked(folder):
            for path in sorted(folder.glob("restore-*.json")):
                try:
                    messages += _restore(path)
                except FileNotFoundError:
                    continue  # its process has ended meanwhile
                except IojouleError as error:
                    failed.append(error)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise HostStateError(
            f"{folder}: the folder of the journals cannot be used ({error.strerror}); name another "
            f"one with {JOURNALS_VARIABLE}"
        ) from None
    if failed:
        raise type(failed[0])("; ".join(error.message for error in failed))
    return messages


def _restore(path: Path) -> list[str]:
    content = _journal(path)
    if _alive(content):
        return []
    if content.boot_id != (boot_id() or "unknown"):
        path.unlink(missing_ok=True)
        return [f"{content.drive}: the host was restarted since, which restored it"]
    # all of it is known before any of it is obeyed
    steps = {step.change(): step for step in content.changes}
    messages: list[str] = []
    _, failed = _put_back(
        {change: step.before for change, step in steps.items()},
        {change: step.serial for change, step in steps.items()},
        "restored after a crash",
        lambda text: messages.append(f"{content.drive}: {text}"),
    )
    if failed:
        raise HostStateError(
            f"{content.drive}: an interrupted campaign left it changed: "
            f"{'; '.join(failed.values())}; do it by hand, then remove {path}"
        )
    path.unlink(missing_ok=True)
    return messages


def _journal(path: Path) -> Journal:
    """The journal. Raises FileNotFoundError, and CampaignError if it is not obeyed."""
    try:
        return Journal.model_validate_json(read_trusted(path))
    except FileNotFoundError:
        raise
    except (OSError, UnicodeDecodeError, ValidationError):
        raise CampaignError(
            f"{path}: is not a journal that this iojoule can read; see what it says, restore "
            "by hand, and remove it"
        ) from None


def _alive(content: Journal) -> bool:
    started = process_start(content.pid)
    return started is not None and started == content.pid_started
