"""Tasks of Ansible that install the udev rule and the tmpfiles.d file, and apply them at once.

Only modules of ansible-core. `!unsafe` keeps Ansible from reading braces of a value as a template.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from iojoule.api.acting.exports import boot_files
from iojoule.api.acting.exports.material import comment, heading, not_expressed, text_of
from iojoule.api.acting.persistence import boot_lines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from iojoule.api.acting.exports.material import Material


def tasks(material: Material) -> str:
    """A file of tasks, for `import_tasks` in a play that has `become: true`."""
    found = boot_lines(material.proposal.drive, material.settings)
    where = "A file of tasks: name it in import_tasks of a play with become: true."
    lines: list[str] = []
    if found.rules:
        lines += _copy(found.rule_path(), boot_files.rules(material), "iojoule_rule")
        lines += _command("Read the rules of udev", "udevadm control --reload", "iojoule_rule")
        lines += _command(
            "Apply them to drives",
            "udevadm trigger --action=change --subsystem-match=block",
            "iojoule_rule",
        )
        if any('SUBSYSTEM=="nvme"' in rule for rule in found.rules):
            lines += _command(
                "Apply them to controllers",
                "udevadm trigger --action=add --subsystem-match=nvme",
                "iojoule_rule",
            )
    if found.values:
        path = found.values_path()
        lines += _copy(path, boot_files.values(material), "iojoule_values")
        lines += _command(
            "Set the values of the CPUs", f"systemd-tmpfiles --create {path}", "iojoule_values"
        )
    if not lines:
        nothing = comment("No setting of the host is recommended that a file could hold.")
        lines = [nothing, "[]"]
    left = not_expressed([*found.left, *material.left])
    return text_of(heading(material, where), left, lines)


def _copy(path: Path, content: str, register: str) -> Iterator[str]:
    yield f"- name: Install {path.name}"
    yield "  ansible.builtin.copy:"
    yield f"    dest: {json.dumps(str(path))}"
    # JSON strings are YAML.
    yield f"    content: !unsafe {json.dumps(content)}"
    yield '    owner: "root"'
    yield '    group: "root"'
    yield '    mode: "0644"'
    yield f"  register: {register}"


def _command(name: str, command: str, after: str) -> Iterator[str]:
    yield f"- name: {name}"
    yield f"  ansible.builtin.command: {json.dumps(command)}"
    yield f"  when: {after} is changed"
    yield "  changed_when: true"
