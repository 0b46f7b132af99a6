"""Takes uploads in, has them checked, keeps them."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
from fastapi import HTTPException

from iojoule.api.http.stored import CHECKS, Named, off_loop, off_loop_within
from iojoule.api.state import datasets, ownership
from iojoule.api.state.callers import Caller
from iojoule.api.state.datasets import StoredDataset
from iojoule.api.state.errors import TooLargeError
from iojoule.api.state.files import telling
from iojoule.api.state.idempotency import Key, first_time
from iojoule.api.state.ids import new_id
from iojoule.api.state.pages import Page
from iojoule.api.state.place import State
from iojoule.api.uploads.checking import check
from iojoule.datasets.catalogue import load_catalogue
from iojoule.datasets.importers.column_map import public_map

UPLOAD_BYTES_MAX = 64 * 1024 * 1024
PIECE_SECONDS = 30.0
"""How long a client may send nothing."""
UPLOAD_SECONDS = 600.0
_WRITE_BYTES = 1 << 20


async def upload(
    store: State,
    asking: Caller,
    body: AsyncIterator[bytes],
    form: str,
    device: str | None,
    columns: str | None,
    named: Named,
) -> StoredDataset:
    """Keep an upload, once it is known to be a set of measurements.

    Raises:
        InputError: It is none, or of another drive; says where.
        TooLargeError: It is larger than UPLOAD_BYTES_MAX.
        StorageQuotaError: The caller's limits do not allow it.
        HTTPException: 408 where it does not arrive.
    """
    device_id = load_catalogue().get(device).id if device is not None else None
    if columns is not None:
        public_map(columns)
    folders = store.files.incoming()
    folder = await off_loop(folders.__enter__)
    try:
        path = folder / "upload"
        digest = await _receive(body, path)
        for word in (form, device_id, columns):
            digest.update(f"\0{word}".encode())
        key = named.of_hash(digest)
        checked = await off_loop_within(CHECKS, check, path, form, device_id, columns)
        return await off_loop(_keep, store, asking, checked, key)
    finally:
        with anyio.CancelScope(shield=True):
            await off_loop(folders.__exit__, None, None, None)


async def _receive(body: AsyncIterator[bytes], path: Path) -> hashlib._Hash:
    """Write an upload to its place as it comes; the hash of it."""
    digest, size, waiting = hashlib.sha256(), 0, bytearray()
    pieces = aiter(body)
    with telling(), path.open("wb", buffering=0) as stream:
        try:
            with anyio.fail_after(UPLOAD_SECONDS):
                while True:
                    with anyio.fail_after(PIECE_SECONDS):
                        piece = await anext(pieces, None)
                    size += len(piece or b"")
                    if size > UPLOAD_BYTES_MAX:
                        raise TooLargeError(
                            f"the upload is larger than {UPLOAD_BYTES_MAX} bytes; split it"
                        )
                    waiting += piece or b""
                    if len(waiting) >= _WRITE_BYTES or piece is None:
                        digest.update(waiting)
                        await off_loop(stream.write, bytes(waiting))
                        waiting.clear()
                    if piece is None:
                        return digest
        except TimeoutError:
            raise HTTPException(408, "the upload did not arrive in time; send it again") from None


def _keep(
    store: State, asking: Caller, checked: datasets.Checked, key: Key | None
) -> StoredDataset:
    with store.files.keeping(), store.database.write() as connection:
        id_ = new_id()
        made = first_time(connection, key, id_)
        if made is None:
            datasets.add(connection, store, id_, checked, asking)
        return datasets.find(connection, made or id_, asking)


def page(store: State, asking: Caller, limit: int, cursor: str | None) -> Page[StoredDataset]:
    """Datasets that the caller may read, the newest first."""
    with store.database.read() as connection:
        return datasets.listed(connection, limit, cursor, asking)


def dataset(store: State, asking: Caller, id_: str) -> StoredDataset:
    """One dataset; raises NotFoundError."""
    with store.database.read() as connection:
        return datasets.find(connection, id_, asking)


def share(store: State, asking: Caller, id_: str, shared: bool) -> StoredDataset:
    """Let everybody read a dataset, or only its owner; raises as `ownership.share_dataset`."""
    with store.database.write() as connection:
        return ownership.share_dataset(connection, id_, shared, asking)


def delete(store: State, asking: Caller, id_: str) -> None:
    """Delete a dataset; raises as `ownership.delete_dataset`."""
    with store.database.write() as connection:
        ownership.delete_dataset(connection, id_, asking)
