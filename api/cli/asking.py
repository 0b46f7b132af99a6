"""What was asked on the command line, for reports of the answer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from iojoule.api.reports import Asked
    from iojoule.datasets.profile import SourceRecord
    from iojoule.recommender.workload import WorkloadProfile

ReportOption = Annotated[
    Path | None,
    typer.Option(
        "--report", metavar="FILE.html", help="Write question and answer as one page to keep."
    ),
]


def check_report(path: Path | None) -> None:
    """Refuse early what cannot be written; raises InputError."""
    if path is not None:
        from iojoule.api.reports import check_target

        check_target(path)


def asked_of(device: str, workload: WorkloadProfile, **more: Any) -> dict[str, Any]:
    """The question as the body of a request; what is not stated is left out.

    Args:
        device: The drive.
        workload: The question.
        more: Further fields, models or values.
    """
    stated = {
        name: value.model_dump(mode="json", exclude_none=True)
        if hasattr(value, "model_dump")
        else value
        for name, value in {"workload_profile": workload, **more}.items()
    }
    return {"device": device, **stated}


def asked_now(
    ctx: typer.Context,
    operation: str | None,
    request: dict[str, Any],
    sources: Sequence[SourceRecord],
) -> Asked:
    """The command as it was typed, and its question.

    Args:
        ctx: Of the command.
        operation: Of the service that answers the same; None: none does.
        request: Its body.
        sources: What the profiles that answered were fitted on.
    """
    from datetime import UTC, datetime

    from iojoule.api.reports import Asked

    return Asked(
        at=datetime.now(UTC),
        operation=operation,
        request=request,
        command=list(ctx.obj),
        sources=tuple(sources),
    )
