"""A recommendation as a file of other programs: TuneD, Ansible, io.cost, systemd, udev, tmpfiles.

Each format is one module with a function from `Material` to text and one line in `FORMATS`. What a
format cannot express is a comment in its file.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from iojoule.api.acting.exports import ansible, boot_files, iocost, systemd, tuned
from iojoule.api.acting.exports.material import Material, material_of

__all__ = ["FORMATS", "ExportFormat", "Material", "export", "material_of"]


class ExportFormat(StrEnum):
    """The program that is to read the file."""

    TUNED = "tuned"
    ANSIBLE = "ansible"
    IOCOST = "iocost"
    SYSTEMD = "systemd"
    UDEV = "udev"
    TMPFILES = "tmpfiles"


FORMATS: dict[ExportFormat, Callable[[Material], str]] = {
    ExportFormat.TUNED: tuned.profile,
    ExportFormat.ANSIBLE: ansible.tasks,
    ExportFormat.IOCOST: iocost.commands,
    ExportFormat.SYSTEMD: systemd.drop_in,
    ExportFormat.UDEV: boot_files.rules,
    ExportFormat.TMPFILES: boot_files.values,
}


def export(kind: ExportFormat, material: Material) -> str:
    """The text of the file, newline at its end."""
    return FORMATS[kind](material)
