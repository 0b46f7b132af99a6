"""The description of the service at /openapi.json: every error is one schema."""

from __future__ import annotations

import sys
from typing import Any

import orjson
from fastapi import FastAPI

from iojoule.api.http.problems import Problem


def describe(app: FastAPI) -> None:
    """Let the application describe its errors as what they are."""
    plain = app.openapi

    def with_problems() -> dict[str, Any]:
        if app.openapi_schema is None:
            described = plain()
            schemas = described["components"]["schemas"]
            own = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
            schemas |= own.pop("$defs") | {"Problem": own}
            for name in ("HTTPValidationError", "ValidationError"):
                schemas.pop(name, None)
            for path in described["paths"].values():
                for operation in path.values():
                    operation["responses"].pop("422", None)
            app.openapi_schema = described
        return app.openapi_schema

    app.openapi = with_problems  # type: ignore[method-assign]


def main() -> None:
    """Write the description of the service to standard output."""
    from iojoule.api.http.app import create_app

    sys.stdout.buffer.write(orjson.dumps(create_app().openapi(), option=orjson.OPT_SORT_KEYS))


if __name__ == "__main__":
    main()
