"""Parameters of the kernel's I/O cost controller, from the profile of the drive.

Source: Documentation/admin-guide/cgroup-v2.rst, io.cost.model and io.cost.qos, and
block/blk-iocost.c (calc_lcoefs, ioc_qos_write) of Linux 6.1: bps are the maxima of sequential
bytes, seqiops and randiops those of requests of 4 KiB, percentiles have two decimals, latencies are
in microseconds. Parameters that a line leaves out keep the kernel's value.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from iojoule.api.acting.exports.material import (
    as_left,
    comment,
    heading,
    not_expressed,
    plain,
    text_of,
)
from iojoule.api.acting.proposal import Left
from iojoule.api.application.fields import FieldTable
from iojoule.datasets.errors import InputError
from iojoule.datasets.schema import AskedConditions

if TYPE_CHECKING:
    from iojoule.api.acting.exports.material import Material
    from iojoule.api.application.backend import Backend
    from iojoule.recommender.sla import BoundName

_PAGE = 4096
_LARGE = (131072, 262144, 524288, 1048576)
_LOADS = ((32, 1), (32, 4), (64, 4), (128, 4), (256, 4), (64, 16))
"""Depth and jobs that saturate a drive; the recommended ones are added."""

_RATE = "throughput_bytes_per_second"


@dataclass(frozen=True)
class _Parameter:
    name: str
    operation: str
    pattern: str
    quantity: str
    sizes: tuple[int, ...] = (_PAGE,)


PARAMETERS = (
    _Parameter("rbps", "read", "sequential", _RATE, _LARGE),
    _Parameter("rseqiops", "read", "sequential", "iops"),
    _Parameter("rrandiops", "read", "random", "iops"),
    _Parameter("wbps", "write", "sequential", _RATE, _LARGE),
    _Parameter("wseqiops", "write", "sequential", "iops"),
    _Parameter("wrandiops", "write", "random", "iops"),
)

_PERCENTILES: dict[BoundName, float] = {
    "latency_p999_ns_max": 99.9,
    "latency_p99_ns_max": 99.0,
    "latency_p50_ns_max": 50.0,
}
"""Hard bounds that io.cost.qos can hold; for each direction the highest percentile counts."""

_ONLY = {"read": "r", "write": "w"}


def commands(material: Material) -> str:
    """Shell lines that write the model and, where the SLA bounds a percentile, the qos."""
    with material.backend() as backend:
        known = {one.name: _best(one, material, backend) for one in PARAMETERS}
    values = [
        f"{one.name}={int(found[one.quantity])}"
        for one, found in zip(PARAMETERS, known.values(), strict=True)
        if not isinstance(found, str)
    ]
    qos, held = _qos(material)
    left = [
        Left(bound, f"{limit:g}", "io.cost.qos holds one percentile of each direction")
        for bound, limit in material.answer.sla.bounds().items()
        if bound not in held
    ]
    left += as_left(material.settings, "no matter of io.cost")
    number = plain(material.proposal.drive.device.number)
    model = f"{number} ctrl=user model=linear {' '.join(values)}"
    lines = [_echo(model, "model")] if values else []
    lines += [_echo(f"{number} enable=1 ctrl=user {qos}", "qos")] if qos else []
    where = "Shell lines for the root cgroup (v2); device numbers may change at a restart."
    return text_of(
        ["#!/bin/sh"],
        heading(material, where),
        (_evidence(one, known[one.name]) for one in PARAMETERS),
        _of_qos(qos),
        not_expressed([*left, *material.left]),
        lines,
    )


def _echo(line: str, file: str) -> str:
    return f"echo '{line}' > /sys/fs/cgroup/io.cost.{file}"


def _best(one: _Parameter, material: Material, backend: Backend) -> Mapping[str, Any] | str:
    """The highest rate that the profile is sure of, in the recommended power state.

    The row whose interval begins highest: the highest value of many would be the luckiest
    extrapolation. Without any, why there is none.
    """
    wanted = material.answer.recommended.configuration
    loads = dict.fromkeys([*_LOADS, (wanted.queue_depth, wanted.jobs)])
    fixed = {"operation": one.operation, "pattern": one.pattern}
    if wanted.power_state is not None:
        fixed["power_state"] = str(wanted.power_state)
    rows = [
        [*fixed.values(), str(size), str(depth), str(jobs)]
        for size in one.sizes
        for depth, jobs in loads
    ]
    names = [*fixed, "request_bytes", "queue_depth", "jobs"]
    try:
        table = FieldTable(one.name, names, rows, [])
        found = list(backend.predict(table, AskedConditions()).records())
    except InputError as error:
        return error.message
    rates = [row for row in found if _is_rate(row[one.quantity])]
    if not rates:
        return "the profile predicts none"
    return max(rates, key=lambda row: row[f"{one.quantity}_low"] or 0.0)


def _is_rate(value: object) -> bool:
    return isinstance(value, float) and math.isfinite(value) and value >= 1


def _evidence(one: _Parameter, found: Mapping[str, Any] | str) -> str:
    if isinstance(found, str):
        return comment(f"{one.name} is left out, the kernel's value stays: {found}")
    low, high = (found[f"{one.quantity}_{end}"] for end in ("low", "high"))
    interval = ", ".join("unknown" if end is None else f"{float(end):.0f}" for end in (low, high))
    return comment(
        f"{one.name}: {found['evidence_by_quantity'][one.quantity]}, 90 % interval [{interval}], "
        f"at {found['request_bytes']} B, depth {found['queue_depth']}, {found['jobs']} jobs"
    )


def _qos(material: Material) -> tuple[str, set[str]]:
    """Percentiles and latencies of io.cost.qos, and the bounds of the SLA that they hold."""
    sla = material.answer.sla
    bounds = sla.bounds()
    said: dict[str, str] = {}
    held: set[str] = set()
    for bound, percentile in _PERCENTILES.items():
        limit = bounds.get(bound)
        if limit is None or bound in sla.soft:
            continue
        letters = ["r", "w"]
        if bound in sla.directions:
            letters = [_ONLY[sla.directions[bound]]]
        fresh = [letter for letter in letters if f"{letter}pct" not in said]
        for letter in fresh:
            said[f"{letter}pct"] = f"{percentile:.2f}"
            said[f"{letter}lat"] = str(max(int(limit // 1000), 1))
        if fresh == letters:
            held.add(bound)
    return " ".join(f"{name}={value}" for name, value in said.items()), held


def _of_qos(qos: str) -> Iterator[str]:
    if qos:
        yield comment(
            "Latencies of io.cost.qos are of the drive, those of the SLA of the whole request: "
            "they are upper limits. The range of its rate (min, max) stays as the kernel has it."
        )
    else:
        yield comment(
            "No line for io.cost.qos, which also enables io.cost: the SLA bounds no percentile."
        )
