"""What the service says of datasets."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel

from iojoule.api.http.moments import moment

if TYPE_CHECKING:
    from iojoule.api.state.datasets import StoredDataset
    from iojoule.api.state.pages import Page

FORMATS = {
    "application/vnd.apache.parquet": "parquet",
    "text/csv": "csv",
    "application/json": "fio",
}
"""Content type of an upload -> the importer that reads it."""

_CSV = """operation,pattern,request_bytes,queue_depth,iops,device_power_watts
read,random,4096,1,12000,3.1
read,random,4096,16,160000,5.2
"""

_FIO: dict[str, Any] = {
    "fio version": "fio-3.33",
    "jobs": [
        {
            "jobname": "randread", "error": 0, "job_runtime": 30000,
            "job options": {"rw": "randread", "bs": "4k", "iodepth": "16", "ioengine": "io_uring",
                            "direct": "1", "runtime": "30"},
            "read": {"io_bytes": 19660800000, "bw_bytes": 655360000, "iops": 160000.0,
                     "runtime": 30000, "total_ios": 4800000,
                     "lat_ns": {"mean": 99000.0, "N": 4800000}},
        }
    ],
}  # fmt: skip

UPLOAD: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "The file itself. Columns of Parquet and CSV are fields of the schema, in "
        "its units; JSON is what fio writes with --output-format=json or json+.",
        "content": {
            "text/csv": {"schema": {"type": "string"},
                         "examples": {"worked": {"summary": "Two runs", "value": _CSV}}},
            "application/json": {"schema": {"type": "object"},
                                 "examples": {"worked": {"summary": "A run of fio",
                                                         "value": _FIO}}},
            "application/vnd.apache.parquet": {"schema": {"type": "string", "format": "binary"}},
        },
    }
}  # fmt: skip
"""The upload as OpenAPI describes it."""


class DatasetSummary(BaseModel):
    """Measurements that were uploaded.

    Attributes:
        device: The one drive that they name, if they do.
        rows: How many measurements.
        fields: Known in at least one of them.
        warnings: How many doubts there were; the side-car at `sidecar_url` says which.
        upload_sha256: Hash of the file as it was sent.
        data_sha256: Hash of the dataset's Parquet file.
        owner: Whose it is; null: nobody's.
        shared: Whether others may read it.
    """

    id: str
    format: str
    device: str | None
    rows: int
    fields: list[str]
    warnings: int
    upload_sha256: str
    data_sha256: str
    created_at: datetime
    url: str
    data_url: str
    sidecar_url: str
    owner: str | None
    shared: bool

    @classmethod
    def of(cls, kept: StoredDataset) -> Self:
        """What is said of a dataset."""
        url = f"/datasets/{kept.id}"
        return cls(
            id=kept.id, format=kept.format, device=kept.device, rows=kept.rows, fields=kept.fields,
            warnings=kept.warnings, upload_sha256=kept.upload_sha256, data_sha256=kept.data_sha256,
            created_at=moment(kept.created_at), url=url, data_url=f"{url}/data",
            sidecar_url=f"{url}/sidecar", owner=kept.owner, shared=kept.shared,
        )  # fmt: skip


class DatasetList(BaseModel):
    """Datasets, the newest first.

    Attributes:
        next_cursor: What to ask for next; null: this is the end.
    """

    datasets: list[DatasetSummary]
    next_cursor: str | None

    @classmethod
    def of(cls, page: Page[StoredDataset]) -> Self:
        """What is said of a page of datasets."""
        listed = [DatasetSummary.of(one) for one in page.items]
        return cls(datasets=listed, next_cursor=page.next_cursor)
