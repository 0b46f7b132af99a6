"""What is expected of a drive of which only its kind is known: the prior, and hardly any fact.

Such a profile is right within wide intervals: those by which drives of a kind differ.
"""

from __future__ import annotations

from iojoule.datasets.catalogue import Drive, Fact
from iojoule.datasets.profile import DeviceProfile
from iojoule.model.prior.build import build_profile
from iojoule.model.prior.facts import facts_of

_SOURCE = "the host's kernel"
_UNTOLD = "the host does not tell"


def class_profile(
    *,
    rotates: bool,
    nvme: bool,
    capacity_bytes: int | None = None,
    pcie_generation: int | None = None,
    pcie_lanes: int | None = None,
) -> DeviceProfile:
    """The profile of some hard disk, SATA SSD or NVMe SSD.

    Args:
        rotates: Whether it is a hard disk.
        nvme: Whether it speaks NVMe; else it is taken for a SATA drive.
        capacity_bytes: None where unknown, likewise the link.
        pcie_generation: Of the link.
        pcie_lanes: Of the link.
    """
    kind = "hard disk" if rotates else "NVMe SSD" if nvme else "SATA SSD"
    link = (pcie_generation, pcie_lanes) if nvme else (None, None)
    counts = {"pcie_generation": link[0], "pcie_lanes": link[1]}
    facts = [
        Fact(metric=metric, value=value, unit="count", source=_SOURCE)
        for metric, value in counts.items()
        if value is not None
    ]
    if capacity_bytes is not None:
        facts.append(Fact(metric="capacity", value=capacity_bytes, unit="bytes", source=_SOURCE))
    drive = Drive(
        id=f"class-{kind.lower().replace(' ', '-')}",
        model=f"some {kind}",
        vendor="unknown",
        interface="nvme" if nvme and not rotates else "sata",
        medium="disk" if rotates else "solid_state",
        drive_class="unknown",
        drive_class_source=_UNTOLD,
        facts=tuple(facts),
    )
    return build_profile(facts_of(drive))
