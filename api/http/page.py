"""GET /ui/: the page and what it consists of."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from fastapi import APIRouter, FastAPI, HTTPException
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse
from fastapi.staticfiles import StaticFiles
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import Receive, Scope, Send

from iojoule.api import page

BUILT = Path(page.__file__).parent / "built"

IMMUTABLE = "public, max-age=31536000, immutable"
"""Names of scripts and style sheets change with what is in them (RFC 8246)."""

SMALL_BYTES = 1000
"""Below this, compressing saves less than a packet."""

router = APIRouter(include_in_schema=False)


class _Assets(StaticFiles):
    """Files whose names change with their content."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; of files this small a part is never sent."""
        headers = [(name, value) for name, value in scope["headers"] if name != b"range"]
        await super().__call__({**scope, "headers": headers}, receive, send)

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
def show(place: str) -> HTMLResponse:
    """The page at any of its paths.

    Raises:
        HTTPException: 404 for a file that is not there, or where the page was not built.
    """
    if PurePosixPath(place).suffix:  # no place of the page has one
        raise HTTPException(404)
    index = BUILT / "index.html"
    if not index.is_file():
        raise HTTPException(404, "the page was not built here; `make setup` builds it")
    return HTMLResponse(index.read_bytes(), headers={"Cache-Control": "no-cache"})
