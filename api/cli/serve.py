"""`iojoule serve`: the HTTP service on this machine; `iojoule worker`: what runs its jobs."""

from __future__ import annotations

import gc
import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from iojoule.api import logs
from iojoule.api.cli import console
from iojoule.api.logs import LogForm
from iojoule.api.state.errors import NoKeyError
from iojoule.datasets.errors import InputError

if TYPE_CHECKING:
    from iojoule.api.state.place import State

LOOPBACK = ("127.0.0.1", "::1", "localhost")

DESCRIPTORS = 16384
"""Enough for thousands of connections, few enough that these do not fill the memory."""

GRACE_SECONDS = 3
"""How long a request may go on after the service was asked to end."""

StateOption = Annotated[
    Path | None,
    typer.Option(
        "--state",
        metavar="DIR",
        help="What is kept; default: $IOJOULE_STATE, else iojoule below $XDG_STATE_HOME.",
    ),
]
DatabaseOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="postgresql://USER@HOST/NAME, for several replicas; default: $IOJOULE_DATABASE, else "
        "SQLite in the folder.",
    ),
]


LogOption = Annotated[
    LogForm | None,
    typer.Option(
        help="text: warnings and worse; json: one object a line, every request too. Default: "
        "$IOJOULE_LOG, else text.",
    ),
]


def serve(
    host: Annotated[
        str, typer.Option(help="Address to listen on; a key is needed on all but loopback.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8080,
    workers: Annotated[
        int, typer.Option(min=0, max=256, help="Processes that run jobs; 0: `iojoule worker` does.")
    ] = 1,
    processes: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=256,
            show_default=False,
            help="Processes that compute answers; default: 2; 0: threads of the service itself.",
        ),
    ] = None,
    require_key: Annotated[
        bool,
        typer.Option("--require-key", help="Ask for a key on loopback too, as behind a proxy."),
    ] = False,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Answer requests for this host and from its pages too."),
    ] = None,
    proxy: Annotated[
        list[str] | None,
        typer.Option(metavar="ADDRESS", help="A proxy whose X-Forwarded headers are believed."),
    ] = None,
    keep_days: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Jobs go N days after they ended, unused datasets N days after their upload; "
            "default: kept for ever.",
        ),
    ] = None,
    audit_days: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Lines of the audit log go after N days; default: kept for ever.",
        ),
    ] = None,
    state: StateOption = None,
    database: DatabaseOption = None,
    log: LogOption = None,
) -> None:
    """Answer over HTTP until interrupted; /ui/ is the page, /ui/api its interface."""
    listener = _listen(host, port)
    gc.disable()  # nothing of what is imported is garbage, and looking costs a sixth of the start
    import uvicorn

    from iojoule.api.http.app import create_app
    from iojoule.api.http.protocol import GuardedProtocol
    from iojoule.api.http.workers import PROCESSES, WorkerPool
    from iojoule.api.jobs.supervisor import Supervisor
    from iojoule.api.state.place import Place, State

    address = f"[{host}]" if ":" in host else host
    asks = require_key or host not in LOOPBACK
    form = logs.set_up(log)
    place = Place.of(state, database)
    count = PROCESSES if processes is None else processes
    _take_descriptors()
    with listener, _frozen(), WorkerPool(place, count, [listener]) as pool:
        gc.enable()
        store = State(place)
        store.open()
        if asks:
            _refuse_without_key(store, host)
        console.note(f"listening on http://{address}:{listener.getsockname()[1]} (Ctrl-C ends)")
        config = uvicorn.Config(
            create_app(
                store,
                require_key=asks,
                hosts=allow_host or (),
                workers=pool,
                keep_days=keep_days,
                audit_days=audit_days,
            ),
            loop="uvloop",
            http=GuardedProtocol,
            ws="none",
            log_level="warning",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=bool(proxy),
            forwarded_allow_ips=proxy or [],
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
        with Supervisor(store, workers, log=form):
            uvicorn.Server(config).run(sockets=[listener])


def _take_descriptors() -> None:
    """Raise the soft limit, usually 1024: each connection needs one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, DESCRIPTORS)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))


@contextmanager
def _frozen() -> Iterator[None]:
    """Nobody looks for garbage in what is in memory now: it stays memory that processes share."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _refuse_without_key(store: State, host: str) -> None:
    from sqlalchemy import select

    from iojoule.api.state import api_keys
    from iojoule.api.state.database import now

    with store.database.read() as connection:
        at = connection.scalar(select(now())) or 0.0
        if all(key.expired(at) for key in api_keys.valid(connection).values()):
            raise NoKeyError(
                f"--host {host}: who asks there needs a key, and there is none; make one with "
                "`iojoule key create --name NAME --scope admin` (and --state or --database as here)"
            )


def worker(
    state: StateOption = None, database: DatabaseOption = None, log: LogOption = None
) -> None:
    """Run the jobs of a service until interrupted, wherever its state is reached."""
    from iojoule.api.jobs.process import work

    work(state, database, log=log)


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
