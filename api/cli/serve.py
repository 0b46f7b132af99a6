"""`iojoule serve`: the HTTP service on this machine."""

from __future__ import annotations

import socket
from typing import Annotated

import typer

from iojoule.api.cli import console
from iojoule.datasets.errors import InputError

LOOPBACK = ("127.0.0.1", "::1", "localhost")


def serve(
    host: Annotated[str, typer.Option(help="Address to listen on; loopback only.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8080,
) -> None:
    """Answer over HTTP until interrupted; /ui/ is the page, /ui/api its interface."""
    if host not in LOOPBACK:
        raise typer.BadParameter(
            f"--host {host}: the service asks nobody who they are yet, so it listens on loopback "
            f"only ({', '.join(LOOPBACK)}); reach it through an SSH tunnel or a proxy"
        )
    listener = _listen(host, port)
    import uvicorn

    from iojoule.api.http.app import create_app

    address = f"[{host}]" if ":" in host else host
    console.note(f"listening on http://{address}:{listener.getsockname()[1]} (Ctrl-C ends)")
    config = uvicorn.Config(
        create_app(), loop="uvloop", http="httptools", log_level="warning", access_log=False
    )
    with listener:
        uvicorn.Server(config).run(sockets=[listener])


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(128)  # so that nobody who reads the address comes too early
    except OSError as error:
        listener.close()
        raise InputError(
            f"{host} port {port}: cannot be listened on ({error.strerror}); choose another one "
            "with --port, 0 takes a free one"
        ) from None
    return listener
