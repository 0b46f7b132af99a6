"""The card's section on the host: costs by path, watts of the CPU and at the wall."""

from __future__ import annotations

from collections.abc import Sequence

from iojoule.api.documents.content import Block, Section, Table, Text, percent
from iojoule.api.words.quantities import digits, quantity
from iojoule.datasets.profile import DeviceProfile, HostPath, Parameter, path_key


def host_section(profile: DeviceProfile) -> Section:
    """What the host adds in time, and what it draws."""
    host = profile.host
    blocks: list[Block] = [
        Text(
            f"Host {host.host_id}, {host.cpu_cores} cores. Added latency and core time of one "
            "request by engine and completion; a wake-up is shared by the requests of a deep queue."
        ),
        Table.of(
            ("path", "latency", "core time", "wake-up", "sd", "evidence", "source"),
            [_path(one) for one in host.paths],
            (1, 2, 3, 4),
        ),
    ]
    if host.schedulers:
        rows = [
            (
                one.scheduler.value,
                quantity("latency_ns", one.added_latency_ns),
                quantity("latency_ns", one.added_core_time_ns),
                quantity("latency_ns", one.serial_ns),
                percent(one.relative_sd, 0),
                one.evidence.value,
                one.source,
            )
            for one in host.schedulers
        ]
        headings = ("scheduler", "latency", "core time", "under one lock", "sd", "evidence",
                    "source")  # fmt: skip
        blocks.append(Table.of(headings, rows, (1, 2, 3, 4)))
    blocks += _cpu(profile)
    blocks += _wall(profile)
    return Section("The host", tuple(blocks))


def _path(one: HostPath) -> tuple[str, ...]:
    name = path_key(one.engine.value, one.completion.value, one.submission_polling, "")
    return (
        name.removesuffix("/"),
        quantity("latency_ns", one.added_latency_ns),
        quantity("latency_ns", one.core_time_ns),
        quantity("latency_ns", one.wakeup_ns),
        percent(one.relative_sd, 0),
        one.evidence.value,
        one.source,
    )


def _cpu(profile: DeviceProfile) -> list[Block]:
    law = profile.host_power
    if law is None:
        return [Text("Watts of the CPU are not known, so none are answered.")]
    return [
        Text(f"Watts of the CPU: {law.scope}; host {law.host_id}, {law.cpu_cores} cores."),
        _parameters(law.parameters),
    ]


def _wall(profile: DeviceProfile) -> list[Block]:
    law = profile.system_power
    if law is None:
        return [Text("Watts at the wall are not known, so none are answered.")]
    return [
        Text(
            "Watts at the wall: floor + slope x (CPU + drive), supply losses included; host "
            f"{law.host_id}, misses its points by {percent(law.relative_sd)} (sd)."
        ),
        _parameters([law.floor_watts, law.slope]),
    ]


def _parameters(parameters: Sequence[Parameter]) -> Table:
    rows = [
        (
            one.name,
            f"{digits(one.value)} {one.unit if one.unit != '1' else ''}".rstrip(),
            digits(one.sd),
            one.evidence.value,
            one.source,
        )
        for one in parameters
    ]
    return Table.of(("parameter", "value", "sd", "evidence", "source"), rows, (1, 2))
