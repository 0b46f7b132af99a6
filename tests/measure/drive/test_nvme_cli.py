"""The controller through a stand-in `nvme` that answers as the real one does."""

from pathlib import Path

import pytest

from iojoule.measure.drive.nvme import POWER_MANAGEMENT, NvmeController
from iojoule.measure.errors import DriveError, HostStateError
from tests.stand_ins import SYSTEM, look_in

NODE = "stand-in"


@pytest.fixture
def nvme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / NODE).touch()

    def install(body: str) -> NvmeController:
        program = tmp_path / "nvme"
        program.write_text(f"#!/bin/sh\n{body}\n")
        program.chmod(0o755)
        look_in(monkeypatch, tmp_path, *SYSTEM)
        return NvmeController(tmp_path / NODE)

    return install


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("get-feature:0x02 (Power Management), Current value:00000000", 0),
        ("get-feature:0x2 (Power Management), Current value:0x00000002", 2),
        ("get-feature:0x02 (Power Management), Current value: 0x0000001f", 31),
    ],
)
def test_the_value_of_a_feature_is_read_whatever_the_version(nvme, said: str, value: int) -> None:
    assert nvme(f"echo '{said}'").feature(POWER_MANAGEMENT) == value


def test_a_refusal_says_what_the_drive_said(nvme) -> None:
    controller = nvme("echo 'NVMe status: Feature Not Changeable(0x210e)' >&2; exit 1")
    with pytest.raises(DriveError, match="Feature Not Changeable"):
        controller.set_feature(POWER_MANAGEMENT, 2)


def test_a_missing_permission_names_the_capability(nvme) -> None:
    with pytest.raises(HostStateError, match="CAP_SYS_ADMIN"):
        nvme("echo 'open: Permission denied' >&2; exit 1").identify()


def test_a_controller_that_is_gone_is_said_to_be(nvme, tmp_path: Path) -> None:
    controller = nvme("echo 'identify failed' >&2; exit 1")
    (tmp_path / NODE).unlink()
    with pytest.raises(DriveError, match="is gone or never was there"):
        controller.identify()


def test_without_nvme_cli_the_remedy_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look_in(monkeypatch, tmp_path)
    with pytest.raises(HostStateError, match="apt-get install nvme-cli"):
        NvmeController(tmp_path).identify()


def test_the_table_of_transitions_is_read_from_binary_and_from_a_dump(nvme) -> None:
    assert nvme("head -c 256 /dev/zero").transitions() == bytes(256)
    dump = "\n".join(f"{16 * row:04x}:" + " 0a" * 16 + ' "................"' for row in range(16))
    assert nvme(f"cat <<'E'\n{dump}\nE").transitions() == b"\x0a" * 256
