"""GET and POST /datasets, and the two files of each dataset."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path as FilePath
from typing import Annotated, Any

import anyio
from fastapi import APIRouter, HTTPException, Path, Query, Request, Response
from fastapi.responses import FileResponse
from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope, Send

from iojoule.api.http.access import CurrentCaller
from iojoule.api.http.problems import RESPONSES
from iojoule.api.http.requests import (
    CHECKS,
    Cursor,
    Idempotency,
    IdempotencyKey,
    Limit,
    SharingBody,
    Store,
    etag_of,
    off_loop,
    off_loop_within,
    read_store,
    refuse_unread,
    write_store,
)
from iojoule.api.http.schemas import FORMATS, DatasetList, DatasetSummary
from iojoule.api.state import datasets, ownership
from iojoule.api.state.callers import Caller
from iojoule.api.state.datasets import StoredDataset
from iojoule.api.state.errors import TooLargeError, UnsupportedKindError
from iojoule.api.state.files import telling
from iojoule.api.state.idempotency import Key, first_time
from iojoule.api.state.ids import new_id
from iojoule.api.state.place import State
from iojoule.api.uploads.checking import check
from iojoule.datasets.catalogue import load_catalogue
from iojoule.datasets.importers.column_map import public_map, public_maps

UPLOAD_BYTES_MAX = 64 * 1024 * 1024
PIECE_SECONDS = 30.0
"""Longest pause in an upload."""
UPLOAD_SECONDS = 600.0
_WRITE_BYTES = 1 << 20

_CSV = """operation,pattern,request_bytes,queue_depth,iops,device_power_watts
read,random,4096,1,12000,3.1
read,random,4096,16,160000,5.2
"""

_FIO: dict[str, Any] = {
    "fio version": "fio-3.33",
    "jobs": [
        {
            "jobname": "randread",
            "error": 0,
            "job_runtime": 30000,
            "job options": {
                "rw": "randread",
                "bs": "4k",
                "iodepth": "16",
                "ioengine": "io_uring",
                "direct": "1",
                "runtime": "30",
            },
            "read": {
                "io_bytes": 19660800000,
                "bw_bytes": 655360000,
                "iops": 160000.0,
                "runtime": 30000,
                "total_ios": 4800000,
                "lat_ns": {"mean": 99000.0, "N": 4800000},
            },
        }
    ],
}

UPLOAD: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "The file itself. Columns of Parquet and CSV are fields of the schema, in "
        "its units; JSON is what fio writes with --output-format=json or json+; an archive holds a "
        "folder of fio's results, searched as `iojoule import fio` does.",
        "content": {
            "text/csv": {
                "schema": {"type": "string"},
                "examples": {"worked": {"summary": "Two runs", "value": _CSV}},
            },
            "application/json": {
                "schema": {"type": "object"},
                "examples": {"worked": {"summary": "A run of fio", "value": _FIO}},
            },
            "application/vnd.apache.parquet": {"schema": {"type": "string", "format": "binary"}},
            "application/zip": {"schema": {"type": "string", "format": "binary"}},
        },
    }
}
"""The upload as OpenAPI describes it."""

router = APIRouter(prefix="/datasets", tags=["datasets"], responses=RESPONSES)

DatasetId = Annotated[
    str,
    Path(
        description="Id that the upload was answered with.",
        max_length=32,
        examples=["019c1d2e3f405a6b7c8d9e0f1a2b"],
    ),
]
Device = Annotated[
    str | None,
    Query(
        max_length=200,
        examples=["samsung-980-pro-1tb"],
        description="Id, model or alias of the drive, where the file does not name it.",
    ),
]
Columns = Annotated[
    str | None,
    Query(
        max_length=200,
        description="Name of a column map that comes with iojoule, for a table.",
        json_schema_extra={"enum": [*public_maps()]},
    ),
]


@router.get("", summary="Which datasets are there?")
async def list_datasets(
    store: Store, caller: CurrentCaller, limit: Limit = 50, cursor: Cursor = None
) -> DatasetList:
    """List your datasets and those that are shared, the newest first."""
    return DatasetList.of(await read_store(store, datasets.listed, limit, cursor, caller))


@router.post("", summary="Upload measurements", status_code=201, openapi_extra=UPLOAD)
async def upload_dataset(
    store: Store,
    caller: CurrentCaller,
    request: Request,
    idempotency: Idempotency,
    response: Response,
    device: Device = None,
    columns: Columns = None,
) -> DatasetSummary:
    """Check measurements and store them; the body is the file in the format of Content-Type."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    refuse_unread(request, UPLOAD_BYTES_MAX)
    if kind not in FORMATS:
        raise UnsupportedKindError(
            f"send the file as it is, with Content-Type {' or '.join(FORMATS)}",
            field="Content-Type",
        )
    stored = await store_upload(
        store, caller, request.stream(), FORMATS[kind], device, columns, idempotency
    )
    response.headers["Location"] = f"/datasets/{stored.id}"
    return DatasetSummary.of(stored)


@router.get("/{id}", summary="What does a dataset hold?")
async def show_dataset(store: Store, caller: CurrentCaller, id: DatasetId) -> DatasetSummary:  # noqa: A002
    """Show what is known of a dataset."""
    return DatasetSummary.of(await read_store(store, datasets.find, id, caller))


@router.patch("/{id}", summary="Share a dataset, or take that back")
async def share_dataset(
    store: Store,
    caller: CurrentCaller,
    id: DatasetId,  # noqa: A002
    wanted: SharingBody,
) -> DatasetSummary:
    """Let everybody with a key read a dataset, or its owner alone."""
    shared = wanted.shared
    return DatasetSummary.of(await write_store(store, ownership.share_dataset, id, shared, caller))


@router.delete("/{id}", summary="Delete a dataset", status_code=204)
async def delete_dataset(store: Store, caller: CurrentCaller, id: DatasetId) -> None:  # noqa: A002
    """Delete a dataset; 409 where a calibration names it."""
    await write_store(store, ownership.delete_dataset, id, caller)


class _DataFile(FileResponse):
    """Measurements; a range that cannot be sent is a problem document like every error."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it, or the range that is asked for."""

        async def send_file(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] >= 400:
                sizes = Headers(raw=message["headers"]).get("content-range")
                raise HTTPException(
                    message["status"],
                    "Range: no part of the file; ask for bytes=FIRST-LAST within it",
                    None if sizes is None else {"Content-Range": sizes},
                )
            await send(message)

        await super().__call__(scope, receive, send_file)


@router.get("/{id}/data", summary="The measurements", response_class=FileResponse)
async def download_data(store: Store, caller: CurrentCaller, id: DatasetId) -> FileResponse:  # noqa: A002
    """Give the measurements as Parquet."""
    stored = await read_store(store, datasets.find, id, caller)
    return _DataFile(
        await off_loop(datasets.data_file, store, stored),
        media_type="application/vnd.apache.parquet",
        filename=f"{stored.id}.parquet",
        headers={"ETag": etag_of(stored.data_sha256)},
    )


@router.get("/{id}/sidecar", summary="Where the measurements come from")
async def download_sidecar(store: Store, caller: CurrentCaller, id: DatasetId) -> dict[str, object]:  # noqa: A002
    """Give the metadata file: sources, warnings, and what was left out."""
    stored = await read_store(store, datasets.find, id, caller)
    content = await off_loop(datasets.sidecar, store, stored)
    headers = {"ETag": etag_of(stored.sidecar_sha256)}
    return Response(content, media_type="application/json", headers=headers)  # type: ignore[return-value]


async def store_upload(
    store: State,
    caller: Caller,
    body: AsyncIterator[bytes],
    form: str,
    device: str | None,
    columns: str | None,
    idempotency: IdempotencyKey,
) -> StoredDataset:
    """Check an upload and store it.

    Raises:
        InputError: It is no dataset, or of another drive; says where.
        TooLargeError: It is larger than UPLOAD_BYTES_MAX.
        StorageQuotaError: The caller's limits do not allow it.
        HTTPException: 408, it did not arrive in time.
    """
    device_id = load_catalogue().get(device).id if device is not None else None
    if columns is not None:
        public_map(columns)
    incoming = store.files.incoming()
    folder = await off_loop(incoming.__enter__)
    try:
        path = folder / "upload"
        digest = await _receive(body, path)
        for parameter in (form, device_id, columns):
            digest.update(f"\0{parameter}".encode())
        key = idempotency.of_hash(digest)
        checked = await off_loop_within(CHECKS, check, path, form, device_id, columns)
        return await off_loop(_keep, store, caller, checked, key)
    finally:
        with anyio.CancelScope(shield=True):
            await off_loop(incoming.__exit__, None, None, None)


async def _receive(body: AsyncIterator[bytes], path: FilePath) -> hashlib._Hash:
    """Write an upload to a file as it arrives; its hash."""
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
    store: State, caller: Caller, checked: datasets.Checked, key: Key | None
) -> StoredDataset:
    with store.files.keeping(), store.database.write() as connection:
        id_ = new_id()
        made = first_time(connection, key, id_)
        if made is None:
            datasets.add(connection, store, id_, checked, caller)
        return datasets.find(connection, made or id_, caller)
