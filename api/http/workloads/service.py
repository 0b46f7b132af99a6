"""Reads presets, and files that say what a workload does."""

from __future__ import annotations

from pathlib import Path

from iojoule import __version__
from iojoule.api.http.predictors import ServedProfiles
from iojoule.api.http.workloads.schemas import PresetList
from iojoule.recommender.workload import WorkloadProfile
from iojoule.recommender.workloads.fio_job import parse_fio_job
from iojoule.recommender.workloads.from_summary import from_summary
from iojoule.recommender.workloads.presets import presets
from iojoule.recommender.workloads.sources import SourceKind, kind_of, summary_of

SENT = Path("uploaded")
"""What errors call it: uploads keep no name of their own."""


def list_presets() -> PresetList:
    """Every preset."""
    return PresetList(iojoule_version=__version__, presets=list(presets()))


def read(text: str, kind: SourceKind | None, job: str | None) -> WorkloadProfile:
    """The workload profile that a file's text describes; raises InputError."""
    kind = kind or kind_of(text, SENT)
    if kind is SourceKind.FIO_JOB:
        return parse_fio_job(text, SENT, job=job)
    return from_summary(summary_of(SENT, text, kind))


def answer(_: ServedProfiles, text: str, kind: SourceKind | None, job: str | None) -> bytes:
    """Likewise as JSON, for what computes."""
    return read(text, kind, job).model_dump_json(exclude_unset=True).encode()
