"""GET /ui/: the page and what it consists of."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter, FastAPI, HTTPException
from fastapi.responses import FileResponse, RedirectResponse
from fastapi.staticfiles import StaticFiles
from starlette.middleware.gzip import GZipMiddleware

from iojoule.api import page

BUILT = Path(page.__file__).parent / "built"

IMMUTABLE = "public, max-age=31536000, immutable"
"""Names of scripts and style sheets change with what is in them (RFC 8246)."""

SMALL_BYTES = 1000
"""Below this, compressing saves less than a packet."""

router = APIRouter(include_in_schema=False)


class _Assets(StaticFiles):
    """Files whose names change with their content."""

    def file_response(self, *args: object, **named: object) -> FileResponse:
        response = super().file_response(*args, **named)  # type: ignore[arg-type]
        response.headers["Cache-Control"] = IMMUTABLE
        return response  # type: ignore[return-value]


def install(app: FastAPI) -> None:
    """Serve the page, where it was built."""
    app.include_router(router)
    if (BUILT / "assets").is_dir():
        # only these: compressing an answer beside what a client sent tells its secrets (BREACH)
        assets = GZipMiddleware(_Assets(directory=BUILT / "assets"), minimum_size=SMALL_BYTES)
        app.mount("/ui/assets", assets, name="assets")
    app.include_router(paths)


@router.get("/")
def root() -> RedirectResponse:
    """Redirects to the page."""
    return RedirectResponse("/ui/")


paths = APIRouter(include_in_schema=False)


@paths.get("/ui/{place:path}")
def show(place: str) -> FileResponse:
    """The page at any of its paths; raises HTTPException 404 where it was not built."""
    index = BUILT / "index.html"
    if not index.is_file():
        raise HTTPException(404, "the page was not built here; `make setup` builds it")
    return FileResponse(index, headers={"Cache-Control": "no-cache"})
