"""Files that are obeyed: what this user wrote, and nobody else could have written.

A journal or an undo file says what is written where, as root often. It is obeyed only if it is a
plain file of the effective user that neither group nor others may write, in a folder of which the
same holds or that belongs to root; a symbolic link in its place is refused. All of it is asked of
the file that was opened, so that nothing can be put in its place meanwhile.
"""

from __future__ import annotations

import os
import stat
from io import BufferedRandom
from pathlib import Path

from iojoule.datasets.atomic import write_atomically
from iojoule.measure.errors import CampaignError

_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def read_trusted(path: Path) -> str:
    """The text of a file that only this user can have written.

    Raises:
        FileNotFoundError: There is none.
        OSError: It cannot be read.
        CampaignError: Somebody else owns it, may write it, or could have put it there.
    """
    require_own_folder(path.parent)
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        if path.is_symlink():
            raise _refusal(path, "is a symbolic link") from error
        raise
    with os.fdopen(handle, encoding="utf-8") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise _refusal(path, "is no plain file")
        if found.st_uid != os.geteuid():
            raise _refusal(path, f"belongs to user {found.st_uid}")
        if found.st_mode & _OTHERS:
            raise _refusal(path, "may be written by others")
        return file.read()


def require_own_folder(folder: Path) -> None:
    """Refuse a folder into which others can put files.

    Raises:
        FileNotFoundError: There is none.
        CampaignError: Somebody else owns it or may write it.
    """
    found = folder.stat()
    if found.st_uid not in (os.geteuid(), 0):
        raise _refusal(folder, f"belongs to user {found.st_uid}")
    # in a sticky folder (/tmp) nobody can replace what is not theirs, and owners are asked for
    if found.st_mode & _OTHERS and not found.st_mode & stat.S_ISVTX:
        raise _refusal(folder, "may be written by others")


def _refusal(path: Path, why: str) -> CampaignError:
    return CampaignError(
        f"{path}: {why}, so what is in it is not obeyed; look at what it says, and remove it or "
        "give it to the user who runs this"
    )


def write_trusted(path: Path, text: str) -> None:
    """Write a file that `read_trusted` obeys, whatever the umask: for its user alone.

    Raises:
        OSError: It cannot be written; what was there stays as it was.
    """

    def write(stream: BufferedRandom) -> None:
        os.fchmod(stream.fileno(), stat.S_IRUSR | stat.S_IWUSR)
        stream.write(text.encode())

    write_atomically(path, write)
