"""The udev rule and the tmpfiles.d file of `apply --persist`, for other hosts to copy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iojoule.api.acting.exports.material import heading, not_expressed, text_of
from iojoule.api.acting.persistence import boot_lines
from iojoule.api.acting.proposal import Left

if TYPE_CHECKING:
    from iojoule.api.acting.exports.material import Material


def rules(material: Material) -> str:
    """Settings of the drive as a rule of udev(7)."""
    found = boot_lines(material.proposal.drive, material.settings)
    elsewhere = Left("settings of the CPUs", f"{len(found.values)}", "use the tmpfiles format")
    left = [*([elsewhere] if found.values else []), *found.left, *material.left]
    where = f"Belongs to {found.rule_path()}; then: udevadm control --reload"
    return text_of(heading(material, where), not_expressed(left), found.rules)


def values(material: Material) -> str:
    """Settings of the CPUs as lines of tmpfiles.d(5)."""
    found = boot_lines(material.proposal.drive, material.settings)
    elsewhere = Left("settings of the drive", f"{len(found.rules)}", "use the udev format")
    left = [*([elsewhere] if found.rules else []), *found.left, *material.left]
    path = found.values_path()
    where = f"Belongs to {path}; then: systemd-tmpfiles --create {path}"
    return text_of(heading(material, where), not_expressed(left), found.values)
