"""The meter for OpenTelemetry, pushed by OTLP; its environment variables say where to.

Names of energy and power are those of the semantic conventions for hardware (`hw.energy`,
`hw.power` of a `physical_disk`); what they do not have is below `iojoule.`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from iojoule import __version__
from iojoule.api.exporter.publication import Publisher
from iojoule.datasets.errors import InputError

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics import MeterProvider

    from iojoule.meter.readings import Reading

ENDPOINTS = ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


def push(publisher: Publisher, interval_seconds: float) -> MeterProvider:
    """Begin to push; `shutdown` of what is returned pushes once more and ends.

    Raises:
        InputError: Its libraries are not installed.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.metrics import Observation
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
    except ModuleNotFoundError:
        raise InputError(
            f"{' or '.join(ENDPOINTS)} is set, but the libraries for it are not installed: "
            "pip install 'iojoule[otel]', or unset it"
        ) from None
    reader = PeriodicExportingMetricReader(
        OTLPMetricExporter(), export_interval_millis=1e3 * interval_seconds
    )
    resource = Resource.create({SERVICE_NAME: "iojoule-exporter", SERVICE_VERSION: __version__})
    provider = MeterProvider([reader], resource)
    meter = provider.get_meter("iojoule", __version__)

    def observed(values: Callable[[Reading], Iterable[tuple[float, dict[str, str]]]]) -> Any:
        def callback(_: object) -> Iterable[Observation]:
            for reading in publisher.last.readings:
                for value, more in values(reading):
                    if not math.isnan(value):
                        yield Observation(value, {**_attributes(reading), **more})

        return [callback]

    meter.create_observable_counter(
        "hw.energy", observed(lambda reading: [(reading.joules, {})]), "J", "Energy of a drive."
    )
    meter.create_observable_gauge(
        "hw.power", observed(lambda reading: [(reading.watts, {})]), "W", "Power of a drive."
    )
    meter.create_observable_gauge(
        "iojoule.power.bound",
        observed(
            lambda reading: [
                (reading.watts_low, {"iojoule.side": "low"}),
                (reading.watts_high, {"iojoule.side": "high"}),
            ]
        ),
        "W",
        "Ends of the 90 % interval of a drive's power.",
    )
    meter.create_observable_counter(
        "iojoule.energy",
        observed(
            lambda reading: [
                (joules, {"iojoule.part": part}) for part, joules in reading.part_joules.items()
            ]
        ),
        "J",
        "Energy of a drive by what it was drawn for.",
    )

    def cpu(reading: Reading) -> Iterable[tuple[float, dict[str, str]]]:
        own = (publisher.last.cpu or {}).get(reading.drive.key)
        return [] if own is None else [(own.joules, {})]

    meter.create_observable_counter(
        "iojoule.cpu.energy", observed(cpu), "J", "What the CPU drew for the commands of a drive."
    )

    def groups(_: object) -> Iterable[Observation]:
        now = publisher.last
        keys = {drive.name: drive.key for drive in now.readings.drive}
        for group in now.groups.counters() if now.groups is not None else ():
            known = {"hw.id": keys.get(group.drive, ""), "hw.name": group.drive}
            yield Observation(group.joules, {**known, "iojoule.cgroup": group.group})

    meter.create_observable_counter(
        "iojoule.cgroup.energy", [groups], "J", "Energy of a drive by who caused it."
    )
    return provider


def _attributes(reading: Reading) -> dict[str, str]:
    drive = reading.drive
    known = {
        "hw.id": drive.key,
        "hw.type": "physical_disk",
        "hw.name": drive.name,
        "hw.model": drive.model,
        "hw.serial_number": drive.serial,
        "hw.firmware_version": drive.firmware,
        "iojoule.source": reading.basis.source,
    }
    return {name: value for name, value in known.items() if value is not None}
