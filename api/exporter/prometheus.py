"""The meter for Prometheus: over HTTP, or as a file for node_exporter's textfile collector.

Names and units follow Prometheus' conventions. `device` and `serial` are labels of node_exporter's
disk series (smartctl_exporter has `serial_number`), `container_id` and `pod_id` those of Kepler.
Every counter of a drive has its serial: another drive may take the name, and two may swap theirs.
A scrape reads what the meter has published and computes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from iojoule.api.exporter.publication import Publisher
from iojoule.datasets.atomic import output_file, write_atomically
from iojoule.datasets.errors import InputError
from iojoule.meter.cgroup_names import names_of
from iojoule.meter.cpu import CpuReading
from iojoule.meter.group_sums import GroupReadings
from iojoule.meter.readings import Reading

_INFO = ("device", "serial", "wwid", "model", "firmware", "profile", "source")
_GROUP = (
    "device",
    "serial",
    "cgroup",
    "unit",
    "container_id",
    "pod_id",
    "virtual_machine",
    "source",
)
_SIDES = (("low", "Lower"), ("high", "Upper"))


class MeterCollector(Collector):
    """Series of what a publisher has published last."""

    def __init__(self, publisher: Publisher) -> None:
        self._publisher = publisher

    def collect(self) -> Iterator[Metric]:
        """All of them; a drive without an estimate in the last interval has no watts."""
        now = self._publisher.last
        yield from _drives(now.readings)
        if now.cpu is not None:
            yield from _cpu(now.readings, now.cpu)
        if now.groups is not None:
            yield from _groups(now.groups, now.readings, of_cpu=now.cpu is not None)
        left_out = GaugeMetricFamily(
            "iojoule_left_out_device_info",
            "Block devices that are no drive of their own, so that nothing counts twice.",
            labels=("device", "reason"),
        )
        for device, reason in sorted(now.left_out.items()):
            left_out.add_metric((device, reason), 1.0)
        yield left_out
        yield GaugeMetricFamily(
            "iojoule_meter_step_seconds", "Time that the last step took.", now.step_seconds
        )
        yield GaugeMetricFamily(
            "iojoule_meter_step_timestamp_seconds", "When the last step ended.", now.unix_seconds
        )
        yield CounterMetricFamily("iojoule_meter_steps", "Steps of the meter.", now.steps)


def registry_of(publisher: Publisher) -> CollectorRegistry:
    """The meter's series, and what the exporter itself costs (`process_*`)."""
    registry = CollectorRegistry()
    registry.register(MeterCollector(publisher))
    ProcessCollector(registry=registry)
    return registry


def write_textfile(registry: CollectorRegistry, path: Path) -> None:
    """Write all series, whole or not at all; not synced, since that would wake a drive."""
    with output_file(path):
        write_atomically(path, lambda stream: stream.write(generate_latest(registry)), sync=False)


def textfile_writer(
    registry: CollectorRegistry, path: Path, warn: Callable[[str], None]
) -> Callable[[object], None]:
    """Write all series now, and return what writes them again: a full disk costs no joules.

    Args:
        registry: Of the series.
        path: The file.
        warn: Told once when the file cannot be written any more.

    Raises:
        InputError: It cannot be written now.
    """
    write_textfile(registry, path)
    failing = False

    def write(_: object) -> None:
        nonlocal failing
        try:
            write_textfile(registry, path)
        except InputError as error:
            if not failing:
                warn(error.message)
            failing = True
        else:
            failing = False

    return write


def _drives(readings: Iterable[Reading]) -> list[Metric]:
    energy = CounterMetricFamily(
        "iojoule_device_energy_joules",
        "Energy of a drive since the exporter began.",
        labels=("device", "serial"),
    )
    by_part = CounterMetricFamily(
        "iojoule_device_energy_by_part_joules",
        "The same by what it was drawn for; the parts add up to it.",
        labels=("device", "serial", "part"),
    )
    energy_bounds = _energy_bounds("iojoule_device_energy", "a drive's energy")
    power = GaugeMetricFamily(
        "iojoule_device_power_watts",
        "Mean power of a drive in the last interval.",
        labels=("device",),
    )
    power_bounds = [
        GaugeMetricFamily(
            f"iojoule_device_power_{side}_watts",
            f"{text} end of the 90 % interval of a drive's power.",
            labels=("device",),
        )
        for side, text in _SIDES
    ]
    unmetered = CounterMetricFamily(
        "iojoule_device_unmetered_seconds",
        "Time of which nothing is known: the drive was away, its counters began anew, or the "
        "machine was suspended.",
        labels=("device", "serial"),
    )
    info = GaugeMetricFamily(
        "iojoule_device_info",
        "A drive, and what its estimate rests on: profile, catalogue or class.",
        labels=_INFO,
    )
    corrected = GaugeMetricFamily(
        "iojoule_device_corrected",
        "Whether an instrument measures the drive or has corrected the estimate.",
        labels=("device",),
    )
    reasons = GaugeMetricFamily(
        "iojoule_device_reason",
        "Why the last interval is less certain, or absent.",
        labels=("device", "reason"),
    )
    for reading in readings:
        drive = reading.drive
        device, own = (drive.name,), _own(reading)
        energy.add_metric(own, reading.joules)
        for part, joules in reading.part_joules.items():
            by_part.add_metric((*own, part), joules)
        for family, joules in zip(
            energy_bounds, (reading.joules_low, reading.joules_high), strict=True
        ):
            family.add_metric(own, joules)
        if not math.isnan(reading.watts):
            power.add_metric(device, reading.watts)
            for gauge, watts in zip(
                power_bounds, (reading.watts_low, reading.watts_high), strict=True
            ):
                gauge.add_metric(device, watts)
        unmetered.add_metric(own, reading.unmetered_seconds)
        corrected.add_metric(device, float(reading.corrected))
        profile = reading.basis.profile
        known = (drive.serial, drive.wwid, drive.model, drive.firmware, profile.device)
        info.add_metric((*device, *(value or "" for value in known), reading.basis.source), 1.0)
        for reason in reading.reasons:
            reasons.add_metric((*device, reason), 1.0)
    families: list[Metric] = [energy, by_part, *energy_bounds, power, *power_bounds]
    return [*families, unmetered, info, corrected, reasons]


def _energy_bounds(name: str, what: str) -> list[CounterMetricFamily]:
    """The series of both ends of an energy's interval."""
    return [
        CounterMetricFamily(
            f"{name}_{side}_joules",
            f"{text} end of the 90 % interval of {what}.",
            labels=("device", "serial"),
        )
        for side, text in _SIDES
    ]


def _own(reading: Reading) -> tuple[str, str]:
    """Labels of a drive's counters."""
    return reading.drive.name, reading.drive.serial or ""


def _cpu(readings: Iterable[Reading], cpu: Mapping[str, CpuReading]) -> list[Metric]:
    energy = CounterMetricFamily(
        "iojoule_device_cpu_energy_joules",
        "What the CPU packages drew for the commands of a drive: part of RAPL's joules.",
        labels=("device", "serial"),
    )
    low, high = _energy_bounds("iojoule_device_cpu_energy", "that energy of the CPU")
    for reading in readings:
        drawn = cpu.get(reading.drive.key)
        if drawn is not None:
            own = _own(reading)
            energy.add_metric(own, drawn.joules)
            low.add_metric(own, drawn.joules_low)
            high.add_metric(own, drawn.joules_high)
    return [energy, low, high]


def _groups(groups: GroupReadings, readings: Iterable[Reading], *, of_cpu: bool) -> list[Metric]:
    serials = dict(map(_own, readings))
    family = CounterMetricFamily(
        "iojoule_cgroup_energy_joules",
        "Energy of a drive by who caused it. `idle`, `unattributed`, `ended` and `other` included, "
        "its increase is that of the drive.",
        labels=_GROUP,
    )
    cpu = CounterMetricFamily(
        "iojoule_cgroup_cpu_energy_joules",
        "What the CPU packages drew for the commands of a drive by who caused them, likewise.",
        labels=_GROUP,
    )
    for group in groups.counters():
        names = names_of(group.group)
        known = (names.unit, names.container_id, names.pod_uid, names.virtual_machine)
        told = (group.group, *(value or "" for value in known), group.quality)
        labels = (group.drive, serials.get(group.drive, ""), *told)
        family.add_metric(labels, group.joules)
        cpu.add_metric(labels, group.cpu_joules)
    return [family, cpu] if of_cpu else [family]
