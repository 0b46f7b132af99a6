"""`iojoule exporter`: watts and joules of this host's drives for Prometheus and OpenTelemetry."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Annotated

import typer
from prometheus_client import start_http_server

from iojoule.api.application.meter import LiveMeter, MeterOptions, assigned, kernel_name
from iojoule.api.cli import console
from iojoule.api.cli.meter import (
    AskOption,
    CgroupsOption,
    ControllersOption,
    DrivesOption,
    InstrumentsOption,
    IntervalOption,
    ProcOption,
    ProfilesOption,
    SysfsOption,
)
from iojoule.api.exporter import opentelemetry
from iojoule.api.exporter.prometheus import registry_of, textfile_writer
from iojoule.api.exporter.publication import Publisher
from iojoule.datasets.errors import InputError
from iojoule.measure.host.guard import signal_handler
from iojoule.meter.group_sums import NAMED_MAX

PORT = 10900
"""Outside of the range that Prometheus' list of exporters has given away."""


def exporter(
    host: Annotated[
        str, typer.Option(help="Address to listen on: who reaches it, reads all series.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = PORT,
    textfile: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write a file for node_exporter's textfile collector instead of listening; below "
            "/run, so that no drive is written.",
        ),
    ] = None,
    drive: DrivesOption = None,
    profile: ProfilesOption = None,
    power: InstrumentsOption = None,
    interval: IntervalOption = 1.0,
    ask_drive: AskOption = False,
    controller: ControllersOption = None,
    groups: Annotated[
        bool, typer.Option("--groups/--no-groups", help="Whose joules, by control group.")
    ] = True,
    groups_max: Annotated[
        int,
        typer.Option(metavar="N", min=0, help="So many groups have their own series; others one."),
    ] = NAMED_MAX,
    proc: ProcOption = Path("/proc"),
    sysfs: SysfsOption = Path("/sys"),
    cgroups: CgroupsOption = Path("/sys/fs/cgroup"),
) -> None:
    """Publish watts and joules of drives for Prometheus and OpenTelemetry.

    Needs no root and, without --ask-drive, sends no command to a drive. Joules are counters, so
    rate() of them is watts; intervals are their own series. $OTEL_EXPORTER_OTLP_ENDPOINT pushes
    the same by OTLP besides (extra otel).
    """
    options = MeterOptions(
        drives=tuple(kernel_name(name) for name in drive or ()),
        profiles=assigned(profile or (), "--profile"),
        instruments=assigned(power or (), "--power"),
        interval_seconds=interval,
        proc=proc,
        sysfs=sysfs,
        cgroups=cgroups if groups else None,
        named_max=groups_max,
        groups_optional=True,
        ask_drives=ask_drive,
        controllers=assigned(controller or (), "--controller"),
    )
    with suppress(KeyboardInterrupt), signal_handler(console.note), ExitStack() as stack:
        publisher = Publisher(stack.enter_context(LiveMeter(options)))
        registry = registry_of(publisher)
        if textfile is not None:
            publisher.after = textfile_writer(registry, textfile, console.warn)
        stack.enter_context(publisher)
        if textfile is None:
            stack.enter_context(_listening(host, port, registry))
        if any(os.environ.get(name) for name in opentelemetry.ENDPOINTS):
            stack.callback(opentelemetry.push(publisher, max(interval, 1.0)).shutdown)
        publisher.wait()


@contextmanager
def _listening(host: str, port: int, registry: object) -> Iterator[None]:
    try:
        server, thread = start_http_server(port, host, registry)  # type: ignore[arg-type]
    except OSError as error:
        raise InputError(
            f"--port {port}: cannot listen on {host}: {error.strerror}; name another"
        ) from None
    where = f"[{host}]" if ":" in host else host
    console.note(f"http://{where}:{server.server_port}/metrics")
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
