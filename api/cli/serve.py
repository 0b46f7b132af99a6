"""`iojoule serve`: the HTTP service on this machine; `iojoule worker`: what runs its jobs."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Annotated

import typer

from iojoule.api.cli import console
from iojoule.datasets.errors import InputError

LOOPBACK = ("127.0.0.1", "::1", "localhost")

GRACE_SECONDS = 3
"""How long a request may go on after the service was asked to end."""

StateOption = Annotated[
    Path | None,
    typer.Option(
        "--state", metavar="DIR",
        help="What is kept; default: $IOJOULE_STATE, else iojoule below $XDG_STATE_HOME.",
    ),
]  # fmt: skip
DatabaseOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="postgresql://USER@HOST/NAME, for several replicas; default: $IOJOULE_DATABASE, else "
        "SQLite in the folder.",
    ),
]


def serve(
    host: Annotated[str, typer.Option(help="Address to listen on; loopback only.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8080,
    workers: Annotated[
        int, typer.Option(min=0, max=256, help="Processes that run jobs; 0: `iojoule worker` does.")
    ] = 1,
    state: StateOption = None,
    database: DatabaseOption = None,
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
    from iojoule.api.jobs.supervisor import Supervisor
    from iojoule.api.state.place import Place, State

    address = f"[{host}]" if ":" in host else host
    with listener:
        store = State(Place.of(state, database))
        store.open()
        console.note(f"listening on http://{address}:{listener.getsockname()[1]} (Ctrl-C ends)")
        config = uvicorn.Config(
            create_app(store), loop="uvloop", http="httptools", log_level="warning",
            access_log=False, timeout_graceful_shutdown=GRACE_SECONDS,
        )  # fmt: skip
        with Supervisor(store, workers):
            uvicorn.Server(config).run(sockets=[listener])


def worker(state: StateOption = None, database: DatabaseOption = None) -> None:
    """Run the jobs of a service until interrupted, on any machine that reaches its state."""
    from iojoule.api.jobs.process import work

    work(state, database)


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
