"""GET and POST /datasets, and the two files of each."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import FileResponse

from iojoule.api.http.datasets import service
from iojoule.api.http.datasets.schemas import FORMATS, UPLOAD, DatasetList, DatasetSummary
from iojoule.api.http.gate import Asking
from iojoule.api.http.problems import RESPONSES
from iojoule.api.http.stored import (
    Cursor,
    Idempotency,
    Limit,
    SharingBody,
    Store,
    off_loop,
    tag,
)
from iojoule.api.http.strict_json import refuse_unread
from iojoule.api.state import datasets
from iojoule.api.state.errors import UnsupportedKindError
from iojoule.datasets.importers.column_map import public_maps

router = APIRouter(prefix="/datasets", tags=["datasets"], responses=RESPONSES)

DatasetId = Annotated[
    str,
    Path(
        description="Id that the upload was answered with.", max_length=32,
        examples=["019c1d2e3f405a6b7c8d9e0f1a2b"],
    ),
]  # fmt: skip
Device = Annotated[
    str | None,
    Query(
        max_length=200, examples=["samsung-980-pro-1tb"],
        description="Id, model or alias of the drive, where the file does not name it.",
    ),
]  # fmt: skip
Columns = Annotated[
    str | None,
    Query(
        max_length=200, description="Name of a column map that comes with iojoule, for a table.",
        json_schema_extra={"enum": [*public_maps()]},
    ),
]  # fmt: skip


@router.get("", summary="Which datasets are there?")
async def list_datasets(
    store: Store, asking: Asking, limit: Limit = 50, cursor: Cursor = None
) -> DatasetList:
    """List your datasets and those that are shared, the newest first."""
    return DatasetList.of(await off_loop(service.page, store, asking, limit, cursor))


@router.post("", summary="Upload measurements", status_code=201, openapi_extra=UPLOAD)
async def upload_dataset(
    store: Store,
    asking: Asking,
    request: Request,
    named: Idempotency,
    response: Response,
    device: Device = None,
    columns: Columns = None,
) -> DatasetSummary:
    """Check measurements and keep them; the body is the file, its content type says which kind."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    refuse_unread(request, service.UPLOAD_BYTES_MAX)
    if kind not in FORMATS:
        raise UnsupportedKindError(
            f"send the file as it is, with Content-Type {' or '.join(FORMATS)}",
            field="Content-Type",
        )
    kept = await service.upload(
        store, asking, request.stream(), FORMATS[kind], device, columns, named
    )
    response.headers["Location"] = f"/datasets/{kept.id}"
    return DatasetSummary.of(kept)


@router.get("/{id}", summary="What does a dataset hold?")
async def show_dataset(store: Store, asking: Asking, id: DatasetId) -> DatasetSummary:  # noqa: A002
    """Show what is known of a dataset."""
    return DatasetSummary.of(await off_loop(service.dataset, store, asking, id))


@router.patch("/{id}", summary="Share a dataset, or take that back")
async def share_dataset(
    store: Store,
    asking: Asking,
    id: DatasetId,  # noqa: A002
    wanted: SharingBody,
) -> DatasetSummary:
    """Let everybody with a key read a dataset, or its owner alone."""
    return DatasetSummary.of(await off_loop(service.share, store, asking, id, wanted.shared))


@router.delete("/{id}", summary="Delete a dataset", status_code=204)
async def delete_dataset(store: Store, asking: Asking, id: DatasetId) -> None:  # noqa: A002
    """Delete a dataset; 409 where a calibration names it."""
    await off_loop(service.delete, store, asking, id)


@router.get("/{id}/data", summary="The measurements", response_class=FileResponse)
async def download_data(store: Store, asking: Asking, id: DatasetId) -> FileResponse:  # noqa: A002
    """Give the measurements as Parquet."""
    kept = await off_loop(service.dataset, store, asking, id)
    path = await off_loop(datasets.data_file, store, kept)
    return FileResponse(
        path,
        media_type="application/vnd.apache.parquet",
        filename=f"{kept.id}.parquet",
        headers={"ETag": tag(kept.data_sha256)},
    )


@router.get("/{id}/sidecar", summary="Where the measurements come from")
async def download_sidecar(store: Store, asking: Asking, id: DatasetId) -> dict[str, object]:  # noqa: A002
    """Give the provenance: sources, doubts, and what was left out."""
    kept = await off_loop(service.dataset, store, asking, id)
    content = await off_loop(datasets.sidecar, store, kept)
    headers = {"ETag": tag(kept.sidecar_sha256)}
    return Response(content, media_type="application/json", headers=headers)  # type: ignore[return-value]
