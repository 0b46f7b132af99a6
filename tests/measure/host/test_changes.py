"""Changes are read back, and what the drive adds of its own is no refusal."""

from __future__ import annotations

import pytest

from iojoule.measure.drive.nvme import POWER_MANAGEMENT, VOLATILE_WRITE_CACHE, NvmeController
from iojoule.measure.errors import DriveError
from iojoule.measure.host.changes import NvmeFeature

HINT = 2 << 5
"""Sequential writes as workload hint, in bits 5 to 7."""


def answering(monkeypatch: pytest.MonkeyPatch, kept: int) -> None:
    """A controller that is always at one value."""
    monkeypatch.setattr(NvmeController, "set_feature", lambda *_: None)
    monkeypatch.setattr(NvmeController, "feature", lambda *_: kept)


def test_a_power_state_is_held_whatever_hints_the_drive_keeps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answering(monkeypatch, HINT | 1)
    feature = NvmeFeature("/dev/nvme0", 1, POWER_MANAGEMENT)
    feature.set("1")
    with pytest.raises(DriveError):
        feature.set("2")


def test_other_features_are_compared_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, HINT | 1)
    with pytest.raises(DriveError):
        NvmeFeature("/dev/nvme0", 1, VOLATILE_WRITE_CACHE).set("1")
