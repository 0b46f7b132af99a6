"""Atomic writing: a reader sees the old file or the new one, never a part."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedRandom
from pathlib import Path
from typing import TypeVar

from iojoule.datasets.errors import InputError

Told = TypeVar("Told")


def write_atomically(
    path: Path,
    write: Callable[[BufferedRandom], Told],
    *,
    follow: bool = True,
    sync: bool = True,
) -> Told:
    """Write a file beside its place, sync it to the disk, move it there and sync the folder.

    Args:
        path: The file to replace or make. A device, a pipe or a socket is neither replaced nor
            written to: writers read back what they wrote.
        write: Writes it to a stream that it may also read back.
        follow: A symbolic link stays, and the file that it names is written; else the link is
            replaced.
        sync: Wait until it lasts.

    Returns:
        What `write` returns.

    Raises:
        OSError: The folder is missing, full or may not be written, or the path is not a regular
            file; what was there stays as it was.
    """
    refuse_other_kinds(path, follow=follow)
    if follow and path.is_symlink():
        path = path.resolve()
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with temporary.open("x+b") as stream:
            result = write(stream)
            stream.flush()
            if sync:
                os.fsync(stream.fileno())
        temporary.replace(path)
        if sync:
            sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)
    return result


def refuse_other_kinds(path: Path, *, follow: bool = True) -> None:
    """Refuse what `write_atomically` would not replace.

    Raises:
        OSError: It is a folder, a device, a pipe or a socket.
    """
    try:
        mode = path.stat(follow_symlinks=follow).st_mode
    except FileNotFoundError:  # also a link to a file that is not there yet
        return
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "is a folder", str(path))
    if not stat.S_ISREG(mode) and not stat.S_ISLNK(mode):
        raise OSError(errno.EINVAL, "is not a regular file", str(path))


def write_text_atomically(path: Path, text: str) -> None:
    """Likewise a UTF-8 text file."""
    write_atomically(path, lambda stream: stream.write(text.encode()))


@contextmanager
def output_file(path: Path) -> Iterator[None]:
    """Within it, a file that a user named is written.

    Raises:
        InputError: It cannot be written.
    """
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written ({error.strerror or error}); check the folder, its "
            "permissions and the free space"
        ) from error


def sync_folder(folder: Path) -> None:
    """Sync a folder to the disk, so that the names in it last."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
