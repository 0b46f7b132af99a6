"""The file of a backup: a zip of the database and of every kept file, with a manifest of hashes."""

from __future__ import annotations

import errno
import hashlib
import re
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import IO, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from iojoule.api.state.errors import DamagedError, StorageFullError
from iojoule.api.state.files import FULL
from iojoule.datasets.errors import InputError, SchemaVersionError
from iojoule.datasets.input_file import json_of

MANIFEST = "manifest.json"
SQLITE = "database.sqlite"
"""Member: the whole database, where it is SQLite."""

PIECE_BYTES = 1 << 20
MANIFEST_BYTES_MAX = 1 << 30
VERSION = 1

_CONTENT = re.compile(r"content/([0-9a-f]{2})/(\1[0-9a-f]{62})")

# What zipfile and zlib raise where the bytes are not what was written: the place of a changed byte
# decides whether it is a length, a method, a flag, a name or a checksum.
_UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    struct.error,
    OverflowError,
    KeyError,
    IndexError,
    OSError,
)

_Hash = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]
_Name = Annotated[str, StringConstraints(pattern="^[a-z_0-9]{1,63}$")]


class Member(BaseModel):
    """A file of the archive."""

    model_config = ConfigDict(extra="forbid")

    sha256: _Hash
    bytes: int = Field(ge=0)


class Manifest(BaseModel):
    """What a backup holds.

    Attributes:
        revision: The newest migration that the database had seen.
        identity: The database's own id, which binds the files to it.
        columns: Of each table of PostgreSQL in the order in which they are loaded.
        files: All members but this one.
    """

    model_config = ConfigDict(extra="forbid")

    format: Literal["iojoule-backup"] = "iojoule-backup"
    version: int = VERSION
    iojoule_version: str
    created_at: datetime
    database: Literal["sqlite", "postgresql"]
    revision: _Name
    identity: Annotated[str, StringConstraints(pattern="^[0-9a-f]{32}$")]
    columns: dict[_Name, list[_Name]]
    files: dict[str, Member]

    @property
    def content(self) -> dict[str, str]:
        """The members that are kept files, by their hashes."""
        found = ((_CONTENT.fullmatch(name), name) for name in self.files)
        return {match[2]: name for match, name in found if match}


def content_member(digest: str) -> str:
    """The member that holds a kept file."""
    return f"content/{digest[:2]}/{digest}"


def table_member(table: str) -> str:
    """The member that holds the rows of a table of PostgreSQL, as COPY writes them."""
    return f"tables/{table}.copy"


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Say what fails where a backup is written as one of our own errors."""
    try:
        yield
    except OSError as error:
        if error.errno in (*FULL, errno.EFBIG):
            raise StorageFullError(
                f"{path}: its disk has no room left; no backup was made: make room there"
            ) from error
        raise InputError(
            f"{path}: cannot be written ({error.strerror or error}); name another file"
        ) from error


class Writer:
    """Writes members one after the other, `finish` the manifest and what closes the archive.

    Raises:
        InputError: The file cannot be written.
        StorageFullError: There is no room for it.
    """

    def __init__(self, stream: IO[bytes], path: Path) -> None:
        self._path = path
        self._zip = zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1)
        self.files: dict[str, Member] = {}

    def add(self, name: str, pieces: Iterable[bytes]) -> str:
        """Write a member; the hash of it."""
        digest, size = hashlib.sha256(), 0
        with writing(self._path), self._zip.open(name, "w", force_zip64=True) as stream:
            for piece in pieces:
                digest.update(piece)
                size += len(piece)
                stream.write(piece)
        self.files[name] = Member(sha256=digest.hexdigest(), bytes=size)
        return digest.hexdigest()

    def finish(self, manifest: Manifest) -> None:
        """Write the manifest and what closes the archive."""
        with writing(self._path):
            self._zip.writestr(MANIFEST, manifest.model_dump_json(indent=1))
            self._zip.close()

    def close(self) -> None:
        """Let go of a file that may be half written."""
        with suppress(OSError, ValueError):
            self._zip.close()


class Archive:
    """A backup that is read; `opened` makes one."""

    def __init__(self, path: Path, zipped: zipfile.ZipFile) -> None:
        self.path, self._zip = path, zipped
        names = zipped.namelist()
        if len(set(names)) < len(names):
            raise self._damaged(MANIFEST)
        self.manifest = self._manifest()
        if set(names) != {*self.manifest.files, MANIFEST}:
            odd = sorted(set(names) ^ {*self.manifest.files, MANIFEST})
            raise self._damaged(odd[0])
        self._check_names()

    def _manifest(self) -> Manifest:
        try:
            if self._zip.getinfo(MANIFEST).file_size > MANIFEST_BYTES_MAX:
                raise self._damaged(MANIFEST)
            told = json_of(self._zip.read(MANIFEST))
            version = told.get("version") if isinstance(told, dict) else None
            if isinstance(version, int) and version > VERSION:
                raise SchemaVersionError(
                    f"{self.path}: a backup of version {version}, and this iojoule reads up to "
                    f"{VERSION}; upgrade iojoule"
                )
            return Manifest.model_validate(told)
        except (ValidationError, *_UNREADABLE) as error:
            raise self._damaged(MANIFEST) from error

    def _check_names(self) -> None:
        """Nothing but what a backup writes: no path leads elsewhere."""
        manifest = self.manifest
        own = {table_member(table) for table in manifest.columns}
        if manifest.database == "sqlite":
            own = {SQLITE}
        for digest, name in manifest.content.items():
            if manifest.files[name].sha256 != digest:
                raise self._damaged(name)
        odd = own ^ (set(manifest.files) - set(manifest.content.values()))
        if odd:
            raise self._damaged(min(odd))

    def pieces(self, name: str) -> Iterator[bytes]:
        """A member in pieces; raises DamagedError, at the latest after the last of them."""
        told, digest, size = self.manifest.files[name], hashlib.sha256(), 0
        try:
            with self._zip.open(name) as stream:
                while piece := stream.read(PIECE_BYTES):
                    digest.update(piece)
                    size += len(piece)
                    if size > told.bytes:  # one that unfolds without end is not read to it
                        break
                    yield piece
        except _UNREADABLE as error:
            raise self._damaged(name) from error
        if (size, digest.hexdigest()) != (told.bytes, told.sha256):
            raise self._damaged(name)

    def check(self) -> None:
        """Read all of it; raises DamagedError for the first member that is not what was written."""
        for name in self.manifest.files:
            for _ in self.pieces(name):
                pass

    def _damaged(self, member: str) -> DamagedError:
        return DamagedError(
            f"{self.path}: the backup is damaged ({member}); nothing was restored: use another one"
        )


@contextmanager
def opened(path: Path) -> Iterator[Archive]:
    """A backup, to be checked by whoever uses it.

    Raises:
        InputError: There is no such file, or it cannot be read.
        DamagedError: It is no backup, or not a whole one.
        SchemaVersionError: A newer iojoule wrote it.
    """
    try:
        stream = path.open("rb")
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror}); name a file that `iojoule backup` wrote"
        ) from None
    with stream:
        try:
            zipped = zipfile.ZipFile(stream)
        except _UNREADABLE as error:
            raise DamagedError(
                f"{path}: no backup, or not a whole one ({error}); nothing was restored: use "
                "another one"
            ) from error
        with zipped:
            yield Archive(path, zipped)
