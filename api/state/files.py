"""Large things as files that are named by the hash of their content.

A file is synced to the disk before a row may name it, so a row never names what is not there; files
that no row names, left by whoever was killed in between, are swept after an hour.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import secrets
import shutil
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path

from iojoule.api.state.errors import DamagedError, StorageFullError, UnavailableError
from iojoule.datasets.atomic import sync_folder

SWEEP_AFTER_SECONDS = 3600.0
"""Longer than any upload takes, and than any clock of a file server is off."""

FULL = (errno.ENOSPC, errno.EDQUOT)
"""What a system says when there is no room."""


NO_ROOM = "the state folder's disk has no room left; nothing was kept: make room there"


class ContentStore:
    """Files by the SHA-256 of their content, below one folder.

    Args:
        folder: Made where it is missing; replicas share it.
    """

    def __init__(self, folder: Path) -> None:
        self._kept, self._incoming = folder / "content", folder / "incoming"
        self._lock = folder / "content.lock"

    def prepare(self) -> None:
        """Make the folders; raises StorageFullError or UnavailableError."""
        with telling():
            for path in (self._kept, self._incoming):
                path.mkdir(parents=True, exist_ok=True)
            self._lock.touch()

    def probe(self) -> None:
        """Write a little; raises StorageFullError or UnavailableError where that fails."""
        with self.incoming() as folder, telling():
            (folder / "probe").write_bytes(b"x")

    @contextmanager
    def incoming(self) -> Iterator[Path]:
        """A folder for files that are not kept yet; what is left there goes when the block ends."""
        path = self._incoming / secrets.token_hex(16)
        with telling():
            path.mkdir()
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """Nothing is swept until the block ends: between keeping a file and naming it in a row."""
        with telling(), self._lock.open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH)
            yield

    def keep(self, path: Path) -> str:
        """Take over a file by moving it; it is durable when this returns its hash.

        Raises:
            StorageFullError: There is no room.
            UnavailableError: The folder cannot be written.
        """
        with telling():
            with path.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
                os.fsync(stream.fileno())
            kept = self.path(digest)
            kept.parent.mkdir(exist_ok=True)
            path.replace(kept)
            sync_folder(kept.parent)
            sync_folder(self._kept)
        return digest

    def keep_bytes(self, content: bytes) -> str:
        """Likewise some bytes."""
        with telling(), self.incoming() as folder:
            (folder / "content").write_bytes(content)
            return self.keep(folder / "content")

    def path(self, digest: str) -> Path:
        """Where the file of a hash is, if there is one."""
        return self._kept / digest[:2] / digest

    def read(self, digest: str, what: str = "a stored file") -> bytes:
        """The content of a hash.

        Args:
            digest: The hash.
            what: Is told where it is damaged, such as "the result of job 12".

        Raises:
            DamagedError: It was changed or lost since it was kept.
            UnavailableError: It cannot be read.
        """
        with self.opened(digest, what) as stream:
            content = stream.read()
        if hashlib.sha256(content).hexdigest() != digest:
            raise damaged(what, digest)
        return content

    def checked(self, digest: str, what: str = "a stored file") -> Path:
        """Where the file of a hash is, once its content has proved to be what was kept.

        The file is read through and not held in memory. Raises as `read`.
        """
        with self.opened(digest, what) as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
        if found != digest:
            raise damaged(what, digest)
        return self.path(digest)

    @contextmanager
    def opened(self, digest: str, what: str) -> Iterator[BufferedReader]:
        """The file of a hash, whose content the caller checks; raises as `read`."""
        with telling():
            try:
                stream = self.path(digest).open("rb")
            except FileNotFoundError:
                # a folder that is not mounted comes back; a file missing from one that is does not
                if not self._kept.is_dir():
                    raise
                raise damaged(what, digest, "is missing") from None
            with stream:
                yield stream

    def sweep(self, named: Collection[str], after_seconds: float = SWEEP_AFTER_SECONDS) -> int:
        """Delete what no row names and nobody has touched for a while.

        Args:
            named: The hashes that rows name, read after `sweeping` was entered.
            after_seconds: Since a file was kept or last written.

        Returns:
            How many files went.
        """
        before, swept = time.time() - after_seconds, 0
        for path in (*self._kept.glob("??/*"), *self._incoming.iterdir()):
            if path.name in named:
                continue
            with suppress(FileNotFoundError):
                if path.stat().st_mtime < before:
                    _delete(path)
                    swept += 1
        return swept

    @contextmanager
    def sweeping(self) -> Iterator[bool]:
        """Whether the caller alone may sweep until the block ends: nobody is keeping anything."""
        with telling(), self._lock.open("rb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            yield True


def damaged(what: str, digest: str, how: str = "is damaged") -> DamagedError:
    """What is said of a kept file that is not what was kept any more."""
    return DamagedError(
        f"{what} cannot be given: its file {digest} {how}; restore the state from a backup "
        "(`iojoule restore`)"
    )


def _delete(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink()


@contextmanager
def telling() -> Iterator[None]:
    """Say what fails in the state folder as one of our own errors."""
    try:
        yield
    except OSError as error:
        if error.errno in (*FULL, errno.EFBIG):
            raise StorageFullError(NO_ROOM) from error
        raise UnavailableError(
            f"the state folder cannot be used ({error.strerror or error}); check it"
        ) from error
