"""Datasets that were uploaded: a row each, and the pair of files that `read_dataset` reads."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, RowMapping, insert, select

from iojoule.api.state import audit, quotas
from iojoule.api.state.callers import SERVICE, Caller
from iojoule.api.state.database import now
from iojoule.api.state.errors import NotFoundError
from iojoule.api.state.files import telling
from iojoule.api.state.ids import is_id
from iojoule.api.state.pages import Page, page_of
from iojoule.api.state.place import State
from iojoule.api.state.tables import datasets


@dataclass(frozen=True)
class StoredDataset:
    """A row of the table."""

    id: str
    format: str
    device: str | None
    rows: int
    fields: list[str]
    warnings: int
    upload_sha256: str
    data_sha256: str
    sidecar_sha256: str
    created_at: float
    owner: str | None
    shared: bool
    bytes: int


@dataclass(frozen=True)
class Checked:
    """An upload that proved to be a dataset.

    Attributes:
        data: Its measurements, Parquet.
        sidecar: The JSON beside it.
        device: The one drive they name, if they do.
        fields: Known in at least one row.
        warnings: How many the metadata file holds.
    """

    data: Path
    sidecar: Path
    format: str
    device: str | None
    rows: int
    fields: Sequence[str]
    warnings: int
    upload_sha256: str


def _stored(row: RowMapping) -> StoredDataset:
    return StoredDataset(**row)


def add(
    connection: Connection, state: State, id_: str, checked: Checked, caller: Caller = SERVICE
) -> None:
    """Keep a dataset; to be called while files are being kept (`ContentStore.keeping`).

    Raises:
        StorageQuotaError: The caller's limits do not allow so many bytes.
    """
    with telling():
        bytes_ = checked.data.stat().st_size + checked.sidecar.stat().st_size
    quotas.admit_bytes(connection, caller, bytes_)
    connection.execute(
        insert(datasets).values(
            id=id_,
            format=checked.format,
            device=checked.device,
            rows=checked.rows,
            fields=list(checked.fields),
            warnings=checked.warnings,
            created_at=now(),
            upload_sha256=checked.upload_sha256,
            data_sha256=state.files.keep(checked.data),
            sidecar_sha256=state.files.keep(checked.sidecar),
            bytes=bytes_,
            owner=caller.owner,
            shared=caller.owner is None,
        )
    )
    audit.add(connection, caller, "dataset.upload", f"dataset/{id_}", bytes=bytes_)


def find(
    connection: Connection, id_: str, caller: Caller = SERVICE, *, hold: bool = False
) -> StoredDataset:
    """The dataset of an id.

    Args:
        connection: The transaction.
        id_: The id.
        caller: Who asks.
        hold: Let nobody delete it before the transaction has ended.

    Raises:
        NotFoundError: There is none that the caller may read.
    """
    query = select(datasets).where(datasets.c.id == id_, caller.may_read(datasets))
    if hold:  # not written for SQLite, where the whole transaction is the only writer
        query = query.with_for_update(read=True)
    row = connection.execute(query).mappings().first() if is_id(id_) else None
    if row is None:
        raise NotFoundError(f"there is no dataset {id_}; GET /datasets lists them")
    return _stored(row)


def listed(
    connection: Connection, limit: int, after: str | None, caller: Caller = SERVICE
) -> Page[StoredDataset]:
    """Datasets that the caller may read, the newest first."""
    query = select(datasets).where(caller.may_read(datasets))
    return page_of(connection, query, datasets.c.id, limit, after, _stored)


def data_file(state: State, kept: StoredDataset) -> Path:
    """The file of a dataset's measurements; raises DamagedError and UnavailableError."""
    return state.files.checked(kept.data_sha256, f"the data of dataset {kept.id}")


def sidecar(state: State, kept: StoredDataset) -> bytes:
    """The content of a dataset's metadata file; raises as `data_file`."""
    return state.files.read(kept.sidecar_sha256, _sidecar(kept))


def _sidecar(kept: StoredDataset) -> str:
    return f"the metadata file of dataset {kept.id}"


def laid_out(state: State, kept: StoredDataset, folder: Path) -> Path:
    """The name under which `read_dataset` finds a dataset below a folder, as links to its files.

    Raises:
        DamagedError: One of them is not what was kept.
        UnavailableError: It cannot be read.
    """
    pairs = (
        (data_file(state, kept), ".parquet"),
        (state.files.checked(kept.sidecar_sha256, _sidecar(kept)), ".json"),
    )
    with telling():
        folder.mkdir(parents=True, exist_ok=True)
        for path, suffix in pairs:
            link = folder / f"{kept.id}{suffix}"
            with suppress(FileExistsError):  # of an attempt before: datasets never change
                link.symlink_to(path)
    return folder / f"{kept.id}.parquet"
