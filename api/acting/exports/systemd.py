"""Properties of a unit of systemd that a recommendation implies, as a drop-in.

Source: systemd.resource-control(5) and systemd.exec(5) of systemd 252. IODeviceLatencyTargetSec is
a target of the mean, so only a bound on mean latency is one. A demand is what is needed and no
limit, so it sets no bandwidth.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from iojoule.api.acting.exports.material import (
    as_left,
    comment,
    heading,
    not_expressed,
    plain,
    text_of,
)
from iojoule.api.acting.proposal import Left

if TYPE_CHECKING:
    from collections.abc import Iterator

    from iojoule.api.acting.exports.material import Material

_MEAN = "latency_mean_ns_max"
_NUMA = "job_numa_node"


def drop_in(material: Material) -> str:
    """The drop-in of the service that runs the workload."""
    answer, device = material.answer, material.proposal.drive.device
    lines = ["", "[Service]"]
    left: list[Left] = []
    for bound, limit in answer.sla.bounds().items():
        if bound == _MEAN and bound not in (*answer.sla.directions, *answer.sla.soft):
            microseconds = max(int(limit // 1000), 1)
            lines.append(f"IODeviceLatencyTargetSec={plain(str(device.path))} {microseconds}us")
        else:
            left.append(Left(bound, f"{limit:g}", "systemd has no such property"))
    node = answer.recommended.configuration.job_numa_node
    cpus = None if node is None else _cpus(material, node)
    if cpus is not None:
        lines.append(f"CPUAffinity={plain(cpus)}")
    left += [one for one in material.left if cpus is None or one.what != _NUMA]
    left += as_left(material.settings, "not a property of a service: use the udev format")
    where = "Belongs to /etc/systemd/system/SERVICE.service.d/50-iojoule.conf"
    return text_of(heading(material, where), _weights(material), not_expressed(left), lines)


def _weights(material: Material) -> Iterator[str]:
    demand = material.answer.demand_bytes_per_second
    if demand is not None:
        yield comment(
            f"IOReadBandwidthMax and IOWriteBandwidthMax are not set: {demand:.0f} B/s is what the "
            "workload demands, no limit of it."
        )
    yield comment("IOWeight is not set: the recommendation is about one workload.")


def _cpus(material: Material, node: int) -> str | None:
    """CPUs of a NUMA node, as numactl --cpunodebind would take; None where the host has none."""
    root = material.proposal.drive.device.sysfs
    try:
        return (root / f"devices/system/node/node{node}/cpulist").read_text().strip() or None
    except OSError:
        return None
