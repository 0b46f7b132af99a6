"""GET /workloads/presets and POST /workloads."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from iojoule import __version__
from iojoule.api.http.computed_schemas import PresetList
from iojoule.api.http.problems import RESPONSES
from iojoule.api.http.requests import StrictRoute, body_text, text_body
from iojoule.api.http.served_profiles import ServedProfiles
from iojoule.api.http.workers import Workers
from iojoule.recommender.request import (
    WorkloadProfile,
    is_json,
    is_workload_text,
    parse_workload_text,
)
from iojoule.recommender.workloads.fio_job import parse_fio_job
from iojoule.recommender.workloads.from_summary import from_summary
from iojoule.recommender.workloads.page_cache import PageCache, page_cache
from iojoule.recommender.workloads.presets import presets as known_presets
from iojoule.recommender.workloads.sources import SourceKind, kind_of, summary_of

EXAMPLE = """\
[global]
ioengine=libaio
iodepth=16
bs=8k
[oltp]
rw=randrw
rwmixread=70
rate_iops=14000,6000
"""

UPLOADED = Path("uploaded")
"""Path in error messages: an upload has no name."""

router = APIRouter(
    prefix="/workloads", tags=["workloads"], responses=RESPONSES, route_class=StrictRoute
)


@router.get("/presets", summary="Which benchmarks are known as workloads?")
def presets() -> PresetList:
    """List workload profiles of well-known benchmarks, with the sources of their numbers."""
    return PresetList(iojoule_version=__version__, presets=list(known_presets()))


@router.post(
    "",
    summary="Which workload does a file describe?",
    response_model=WorkloadProfile,
    response_model_exclude_unset=True,
    openapi_extra=text_body(EXAMPLE),
)
async def read(
    request: Request,
    workers: Workers,
    kind: Annotated[
        SourceKind | None, Query(description="Format of the text; default: by its first line.")
    ] = None,
    job: Annotated[str | None, Query(description="Section of a fio job file.")] = None,
    memory: Annotated[
        str | None,
        Query(
            alias="page_cache",
            description="Memory that keeps the files of buffered jobs, for instance 16GiB.",
        ),
    ] = None,
    read_ahead: Annotated[
        str | None, Query(description="With page_cache: read_ahead_kb of the drive; else 128KiB.")
    ] = None,
) -> Response:
    """Read a workload profile (TOML, JSON), or make one of a fio job file, iolog or trace."""
    text = await body_text(request)
    content = await workers(workload_json, text, kind, job, page_cache(memory, read_ahead))
    return Response(content, media_type="application/json")


def workload_json(
    _: ServedProfiles,
    text: str,
    kind: SourceKind | None,
    job: str | None,
    cache: PageCache | None = None,
) -> bytes:
    """The workload profile that the text of a file describes, as JSON; raises InputError."""
    if kind is None and job is None and is_workload_text(text):
        stored = parse_workload_text(text, str(UPLOADED), as_json=is_json(text))
        return stored.model_dump_json(exclude_unset=True).encode()
    kind = kind or kind_of(text, UPLOADED)
    if kind is SourceKind.FIO_JOB:
        profile = parse_fio_job(text, UPLOADED, job=job, cache=cache)
    else:
        profile = from_summary(summary_of(UPLOADED, text, kind))
    return profile.model_dump_json(exclude_unset=True).encode()
