"""What can be wrong between a client and its service, and which error a problem stands for."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from iojoule.datasets.errors import IojouleError


class UnreachableError(IojouleError):
    """The service does not answer."""

    exit_code = 53
    http_status = 502
    title = "Service not reached"


class ServiceError(IojouleError):
    """The service met a fault of its own, or what answers is not one that this client knows."""

    exit_code = 54
    http_status = 502
    title = "Fault of the service"


_MEMBERS = {
    "type": str,
    "status": int,
    "title": str,
    "detail": str,
    "field": str,
    "request_id": str,
}


def members_of(problem: object) -> dict[str, Any]:
    """What is known of a problem; members of another type are ignored (RFC 9457, 3.1)."""
    if not isinstance(problem, Mapping):
        return {}
    return {
        name: problem[name]
        for name, kind in _MEMBERS.items()
        if isinstance(problem.get(name), kind)
    }


def error_of(problem: Mapping[str, Any], where: str = "") -> IojouleError:
    """The error that a problem (RFC 9457) stands for, as the service raised it.

    Args:
        problem: Of an answer, or of a job that failed.
        where: What was asked, for problems that do not say.

    Returns:
        Its class by the problem's type, else by its status; with the pointer of the field and the
        id of the request.
    """
    status = int(problem.get("status") or 0)
    kind = _by_slug().get(str(problem.get("type", "")).rpartition(":")[2]) or _by_status(status)
    detail = str(problem.get("detail") or problem.get("title") or f"HTTP status {status}")
    pointer = problem.get("field")
    error = kind(
        f"{where}: {detail}" if where and kind is ServiceError else detail,
        field=_dotted(pointer) if pointer else None,
    )
    error.pointer, error.request_id = pointer, problem.get("request_id")
    return error


def _dotted(pointer: str) -> str:
    parts = pointer.removeprefix("/").split("/")
    return ".".join(part.replace("~1", "/").replace("~0", "~") for part in parts)


@cache
def _by_slug() -> dict[str, type[IojouleError]]:
    from iojoule.api.exit_codes import error_classes
    from iojoule.api.problem_document import slug_of

    named = {slug_of(kind): kind for kind in error_classes() if "title" in vars(kind)}
    return named | {slug_of(IojouleError): ServiceError}


def _by_status(status: int) -> type[IojouleError]:
    """Of what a server, or a proxy before it, says by status alone."""
    from iojoule.api.state import errors
    from iojoule.datasets.errors import InputError

    found = {
        401: errors.NoKeyError,
        403: errors.ForbiddenError,
        404: errors.NotFoundError,
        412: errors.ChangedError,
        413: errors.TooLargeError,
        415: errors.UnsupportedKindError,
        429: errors.TooManyError,
        503: errors.UnavailableError,
        507: errors.StorageFullError,
    }
    return found.get(status) or (InputError if 400 <= status < 500 else ServiceError)
