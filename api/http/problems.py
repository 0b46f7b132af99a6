"""Errors as application/problem+json (RFC 9457), whatever went wrong and wherever."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import orjson
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from iojoule.api.http.operations import methods_at
from iojoule.api.problem_document import MEDIA_TYPE, FieldProblem, Problem, pointer, problem_of
from iojoule.api.state.errors import LimitReached
from iojoule.datasets.errors import IojouleError

_NAMED = re.compile(r"([a-z_0-9.]+): ")

_log = logging.getLogger(__name__)


RESPONSES: dict[int | str, dict[str, Any]] = {
    "default": {
        "description": "What went wrong, and where",
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
}
"""The error response of every operation."""


def install(app: FastAPI) -> None:
    """Send every error as a problem document."""
    app.add_exception_handler(IojouleError, _iojoule)
    app.add_exception_handler(RequestValidationError, _validation)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(ClientDisconnect, _gone)
    app.add_exception_handler(Exception, _unexpected)


def response_of(
    request: Request, error: IojouleError, headers: Mapping[str, str] | None = None
) -> Response:
    """The response to a request that ended with one of our own errors."""
    fields = problem_of(error)
    field = fields.get("field")
    errors = [FieldProblem(field=field, detail=error.message)] if field else None
    retry = {"Retry-After": _retry_after(error)} if fields["status"] in _RETRY else {}
    problem = Problem(**fields, instance=request.url.path, errors=errors)
    return respond(request, problem, {**retry, **(headers or {})})


def _retry_after(error: IojouleError) -> str:
    """Whole seconds until a retry may succeed."""
    limit = error.exceeded if isinstance(error, LimitReached) else None
    left = None if limit is None else limit.frees_in_seconds
    return "2" if left is None else str(max(1, math.ceil(left)))


_RETRY = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)


def respond(
    request: Request, problem: Problem, headers: Mapping[str, str] | None = None
) -> Response:
    """A problem as a response."""
    problem.request_id = getattr(request.state, "request_id", None)
    body = orjson.dumps(problem.model_dump(exclude_none=True))
    named = {"X-Request-Id": problem.request_id} if problem.request_id else {}
    return Response(body, problem.status, {**named, **(headers or {})}, MEDIA_TYPE)


async def _iojoule(request: Request, error: Exception) -> Response:
    assert isinstance(error, IojouleError)
    return response_of(request, error)


async def _validation(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    errors = error.errors()
    if any(entry["type"] == "json_invalid" for entry in errors):
        return _plain(request, 400, f"the body is no valid JSON: {errors[0]['ctx']['error']}")
    problems = [_field_problem(entry) for entry in errors if not _follows(entry, errors)]
    if not problems[0].field and request.method == "POST" and not _is_json(request):
        return _plain(request, 415, "send the body as JSON: Content-Type: application/json")
    first = problems[0]
    return respond(
        request,
        Problem(
            type="urn:iojoule:problem:invalid-input",
            title="Invalid input",
            status=422,
            detail=f"{first.field or 'the body'}: {first.detail}",
            instance=request.url.path,
            field=first.field,
            errors=problems,
        ),
    )


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:  # Starlette names those of one route
        error.headers = {"Allow": ", ".join(methods_at(request.url.path))}
    return _plain(request, error.status_code, _DETAILS.get(error.status_code), error)


async def _gone(request: Request, error: Exception) -> Response:
    return _plain(request, 400, "the connection was closed before the whole body had come")


async def _unexpected(request: Request, error: Exception) -> Response:
    extra = {"request_id": getattr(request.state, "request_id", None)}
    _log.error("%s %s", request.method, request.url.path, exc_info=error, extra=extra)
    return _plain(request, 500, "a fault of the service, not of the request; please report it")


_DETAILS = {
    404: "there is nothing at this path; /openapi.json lists what there is",
    405: "this path does not know that method; /openapi.json lists what there is",
}


def _plain(
    request: Request, status: int, detail: str | None, error: HTTPException | None = None
) -> Response:
    known = HTTPStatus(status)
    problem = Problem(
        type="about:blank",
        title=known.phrase,
        status=status,
        detail=detail or (error.detail if error else known.phrase),
        instance=request.url.path,
    )
    return respond(request, problem, error.headers if error else None)


def _is_json(request: Request) -> bool:
    return "json" in request.headers.get("content-type", "")


def _follows(error: Any, errors: Sequence[Any]) -> bool:
    """Whether it only says that a list is too short once what is wrong in it is left out."""
    path = error["loc"]
    return error["type"] == "too_short" and any(
        other["loc"][: len(path)] == path for other in errors if other is not error
    )


def _field_problem(error: Any) -> FieldProblem:
    """One of pydantic's errors; a rule between fields names its field in the message."""
    # a union of types adds the type to the path, as "literal['unbounded']"
    kind, *path = [part for part in error["loc"] if "[" not in str(part)]
    message = str(error["msg"]).removeprefix("Value error, ")
    named = _NAMED.match(message) if error["type"] == "value_error" else None
    if named:
        path += named[1].split(".")
        message = message[named.end() :]
    elif isinstance(error.get("input"), str | int | float | bool):
        message = f"{message} (found {error['input']!r})"
    field = pointer(path) if kind == "body" else ".".join(map(str, [kind, *path]))
    return FieldProblem(field=field, detail=message)
