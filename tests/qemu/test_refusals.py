"""What must not be touched is refused under the true driver too, with its exit code."""

import pytest

from iojoule.measure.errors import CampaignError, UnsafeDriveError
from tests.qemu.machine import Exit


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("partition", "is a partition of /dev/nvme"),
        ("mounted", "is mounted on /"),
        ("character-node", "is a character device"),
        ("no-serial", "--serial iojoule-qemu-target"),
        ("wrong-serial", "serial number is iojoule-qemu-target, not iojoule-qemu-system"),
    ],
)
def test_a_drive_is_refused(ended: Exit, name: str, words: str) -> None:
    code, said = ended(name)
    assert code == UnsafeDriveError.exit_code
    assert words in " ".join(said.split())


def test_a_power_state_that_the_drive_does_not_have_is_refused(ended: Exit) -> None:
    """Without the borrowed one QEMU's drive has only state 0."""
    code, said = ended("no-such-state")
    assert code == CampaignError.exit_code
    assert "power_state 1 is none of the drive's operational states (0)" in said
