"""The description of the service at /openapi.json: every error is one schema."""

from __future__ import annotations

import sys
from typing import Any

import orjson
from fastapi import FastAPI

from iojoule.api.http.operations import Operation, needed
from iojoule.api.problem_document import Problem

_KEY = {
    "type": "http",
    "scheme": "bearer",
    "description": "A key made with `iojoule key create`. Each operation names the scope it needs; "
    "admin includes write, and write includes read.",
}


def _plain_parameter(parameter: dict[str, Any]) -> None:
    """Remove null from a parameter's types: it may be absent, but a query cannot write null."""
    schema = parameter["schema"]
    kinds = [kind for kind in schema.pop("anyOf", ()) if kind != {"type": "null"}]
    if len(kinds) == 1:
        parameter["schema"] = {**kinds[0], **schema}
    if parameter["name"] == "If-Match":  # without it the answer is 428, which FastAPI cannot say
        parameter["required"] = True


def _security(operation: Operation, required: bool) -> list[dict[str, list[str]]]:
    if operation.scope is None:
        return []
    anybody: list[dict[str, list[str]]] = [] if required else [{}]
    return [*anybody, {"key": [operation.scope.value]}]


def describe(app: FastAPI) -> None:
    """Let the OpenAPI document describe errors as problem documents."""
    plain = app.openapi
    required = app.state.access.required

    def with_problems() -> dict[str, Any]:
        if app.openapi_schema is None:
            described = plain()
            schemas = described["components"]["schemas"]
            own = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
            schemas |= own.pop("$defs") | {"Problem": own}
            for name in ("HTTPValidationError", "ValidationError"):
                schemas.pop(name, None)
            described["components"]["securitySchemes"] = {"key": _KEY}
            for path, methods in described["paths"].items():
                for method, operation in methods.items():
                    operation["responses"].pop("422", None)
                    for parameter in operation.get("parameters", ()):
                        _plain_parameter(parameter)
                    operation["security"] = _security(needed(method.upper(), path), required)
            app.openapi_schema = described
        return app.openapi_schema

    app.openapi = with_problems  # type: ignore[method-assign]


def main() -> None:
    """Write the description of the service to standard output."""
    from iojoule.api.http.app import create_app

    sys.stdout.buffer.write(orjson.dumps(create_app().openapi(), option=orjson.OPT_SORT_KEYS))


if __name__ == "__main__":
    main()
