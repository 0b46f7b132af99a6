"""Names of containers, pods, units and virtual machines from paths of control groups."""

import pytest

from iojoule.meter.cgroup_names import GroupNames, names_of

ID = "0123456789abcdef" * 4
UID = "8f6c9a50-1c2d-4e3f-9a8b-7c6d5e4f3a2b"
BURSTABLE = "/kubepods.slice/kubepods-burstable.slice"
SLICE = f"pod{UID.replace('-', '_')}.slice"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/", GroupNames()),
        ("/user.slice", GroupNames(unit="user.slice")),
        ("/system.slice/nginx.service", GroupNames(unit="nginx.service")),
        (
            f"/system.slice/docker-{ID}.scope",
            GroupNames(ID, "docker", unit=f"docker-{ID}.scope"),
        ),
        (f"/docker/{ID}", GroupNames(ID, "docker")),
        (
            f"{BURSTABLE}/kubepods-burstable-{SLICE}/cri-containerd-{ID}.scope",
            GroupNames(ID, "containerd", UID, f"cri-containerd-{ID}.scope"),
        ),
        (
            f"/kubepods.slice/kubepods-{SLICE}/crio-{ID}.scope/container",
            GroupNames(ID, "cri-o", UID, f"crio-{ID}.scope"),
        ),
        (f"/kubepods/besteffort/pod{UID}/{ID}", GroupNames(ID, None, UID)),
        (
            f"/machine.slice/libpod-{ID}.scope/container",
            GroupNames(ID, "podman", unit=f"libpod-{ID}.scope"),
        ),
        (
            f"/machine.slice/libpod-conmon-{ID}.scope",
            GroupNames(unit=f"libpod-conmon-{ID}.scope"),
        ),
        (
            r"/machine.slice/machine-qemu\x2d3\x2dweb\x2d1.scope/libvirt/emulator",
            GroupNames(virtual_machine="web-1", unit=r"machine-qemu\x2d3\x2dweb\x2d1.scope"),
        ),
        ("/qemu.slice/101.scope", GroupNames(virtual_machine="101", unit="101.scope")),
        ("/lxc/204/ns/init.scope", GroupNames("204", "lxc", unit="init.scope")),
        ("/lxc.payload.mail", GroupNames("mail", "lxc")),
        (
            "/machine.slice/systemd-nspawn@db.service/payload",
            GroupNames("db", "nspawn", unit="systemd-nspawn@db.service"),
        ),
        (
            "/user.slice/user-1000.slice/user@1000.service/app.slice/app-editor.service",
            GroupNames(unit="app-editor.service"),
        ),
    ],
)
def test_names(path: str, expected: GroupNames) -> None:
    assert names_of(path) == expected
