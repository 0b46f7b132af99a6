"""What a control group is, from its path: container, pod, unit of systemd, virtual machine.

Sources: systemd's Control Group APIs and Delegation; cgroup drivers of runc, containerd, CRI-O,
Podman and the kubelet (`kubepods[-besteffort|-burstable][-]pod<uid>`); machine names of libvirt,
systemd-nspawn, LXC and Proxmox.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_CONTAINER = re.compile(r"^(?:(?P<runtime>[a-z][a-z-]*?)-)?(?P<id>[0-9a-f]{64})(?:\.scope)?$")
_POD = re.compile(r"^(?:kubepods(?:-[a-z]+)?-)?pod(?P<uid>[0-9a-fA-F_-]{32,36})(?:\.slice)?$")
_UNIT = re.compile(r"^.+\.(?:service|scope|slice|socket|mount|swap)$")
_QEMU = re.compile(r"^machine-qemu-\d+-(?P<name>.+)\.scope$")
_MACHINE = re.compile(r"^machine-(?P<name>.+)\.scope$")
_NSPAWN = re.compile(r"^systemd-nspawn@(?P<name>.+)\.service$")
_LXC = re.compile(r"^lxc\.payload\.(?P<name>.+)$")
_ESCAPE = re.compile(r"(?:\\x[0-9a-f]{2})+")
_RUNTIMES = {"cri-containerd": "containerd", "crio": "cri-o", "libpod": "podman"}
_PARENT_RUNTIMES = {
    "docker": "docker",
    "k8s.io": "containerd",
    "ecs": "ecs",
    "buildkit": "buildkit",
}


@dataclass(frozen=True)
class GroupNames:
    """Names of a control group; None where its path has none.

    Attributes:
        container_id: 64 hexadecimal digits, or the name of a container of LXC or nspawn.
        runtime: Of the container, where the path names it.
        pod_uid: Of Kubernetes, with dashes.
        unit: The innermost unit of systemd.
        virtual_machine: Its name (libvirt) or number (Proxmox).
    """

    container_id: str | None = None
    runtime: str | None = None
    pod_uid: str | None = None
    unit: str | None = None
    virtual_machine: str | None = None


def names_of(path: str) -> GroupNames:
    """The names in the path of a control group, outer ones included."""
    names: dict[str, str] = {}
    parts = [part for part in path.split("/") if part]
    for position, part in enumerate(parts):
        outer = parts[position - 1] if position else ""
        names |= _of_part(unescape(part), outer)
        if _UNIT.match(part):
            names["unit"] = part
    return GroupNames(**names)


def unescape(name: str) -> str:
    r"""A unit's name without systemd's escapes (`\x2d` is a dash, systemd.unit(5))."""

    def character(escape: re.Match[str]) -> str:
        codes = escape.group().split("\\x")[1:]
        return bytes(int(code, 16) for code in codes).decode("utf-8", "replace")

    return _ESCAPE.sub(character, name)


def _of_part(part: str, outer: str) -> dict[str, str]:
    container = _CONTAINER.match(part)
    if container is not None:
        if (container["runtime"] or "").endswith("conmon"):
            return {}  # the monitor of a container
        runtime = container["runtime"] or _PARENT_RUNTIMES.get(outer)
        names = {"container_id": container["id"]}
        if runtime is not None:
            names["runtime"] = _RUNTIMES.get(runtime, runtime)
        return names
    pod = _POD.match(part)
    if pod is not None:
        return {"pod_uid": pod["uid"].replace("_", "-")}
    for pattern, key, runtime in (
        (_QEMU, "virtual_machine", None),
        (_MACHINE, "container_id", "nspawn"),
        (_NSPAWN, "container_id", "nspawn"),
        (_LXC, "container_id", "lxc"),
    ):
        match = pattern.match(part)
        if match is not None:
            return {key: match["name"], **({"runtime": runtime} if runtime else {})}
    if outer == "qemu.slice" and re.match(r"^\d+\.scope$", part):
        return {"virtual_machine": part.removesuffix(".scope")}
    if outer == "lxc" and part != "ns":
        return {"container_id": part, "runtime": "lxc"}
    return {}
