"""Recommendations as the command line and the service hand them out: with all versions in them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iojoule import __version__
from iojoule.api.reports.summary import Summary, summarise
from iojoule.api.settings import ApplicationSettings, check_request, settings_of
from iojoule.datasets.errors import InputError
from iojoule.datasets.input_file import toml_of
from iojoule.datasets.vocabulary import Operation
from iojoule.recommender.request import WorkloadProfile, load_workload, with_fields
from iojoule.recommender.response import Recommendation
from iojoule.recommender.workloads.presets import find_preset

if TYPE_CHECKING:
    from iojoule.recommender.recommend import Recommender


class RecommendationAnswer(Recommendation):
    """A recommendation in brief and in full, and the version of iojoule that computed it.

    Attributes:
        summary: The answer in brief.
        settings: The recommended configuration in the settings of an application; None where none
            was named, or nothing is recommended.
        iojoule_version: Version that computed it.
    """

    summary: Summary
    settings: ApplicationSettings | None = None
    iojoule_version: str = __version__


def answer(
    recommender: Recommender, workload: WorkloadProfile, settings: str | None = None
) -> RecommendationAnswer:
    """Recommend; raises as `Recommender.recommend`.

    Args:
        recommender: Of the drive.
        workload: The request.
        settings: An application and its version, as `postgresql=17`, in whose settings the
            recommended configuration is stated too.
    """
    if settings is not None:
        check_request(settings)
    found = recommender.recommend(workload)
    fields = {name: getattr(found, name) for name in Recommendation.model_fields}
    summary = summarise(found, recommender.profile.interface)
    stated = None
    if settings is not None and found.recommended is not None:
        writes = workload.workload.operation is not Operation.READ
        stated = settings_of(settings, found.recommended.configuration, writes=writes)
    return RecommendationAnswer.model_construct(
        summary=summary, settings=stated, **fields, iojoule_version=__version__
    )


def workload_with(
    path: Path, changes: Mapping[str, Any], *, job: str | None = None
) -> WorkloadProfile:
    """Read a workload profile and replace some of its fields.

    Args:
        path: A .toml, .json or fio job file, or the name of a preset.
        changes: Dotted field -> value, such as `sla.latency_p99_ns_max`.
        job: Section of a fio job file.

    Raises:
        InputError: The file or a change is not what it must be; names file and field.
    """
    return with_fields(_stated(path, job), changes, f"{path} with --set")


def _stated(path: Path, job: str | None) -> WorkloadProfile:
    """What a file or the name of a preset says."""
    if path.suffix or path.exists() or path.parent != Path():
        return load_workload(path, job=job)
    if job is not None:
        raise InputError(f"{path}: only a fio job file has jobs to choose from", field="job")
    return find_preset(str(path))


def stated_value(text: str) -> Any:
    """The value of `--set FIELD=VALUE` as TOML writes it; what is no TOML is a word."""
    try:
        return toml_of(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
