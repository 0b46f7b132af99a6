"""`iojoule idle` under Linux' own driver: what it reads, and which commands reach the drives."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.qemu.machine import PREFIX, Exit

SYSTEM = f"{PREFIX}system"
"""The guest's own programs are read from it meanwhile."""


@pytest.fixture(scope="module")
def drives(ended: Exit) -> dict[str, dict[str, Any]]:
    code, said = ended("idle")
    assert code == 0, said
    return {one["serial"]: one for one in json.loads(said)}


def commands(results: Path, name: str, controller: str) -> list[str]:
    """Commands to a controller, as the driver traced them."""
    pattern = re.compile(rf"nvme_setup_cmd: {controller}: .*cmd=\((\w+)")
    return pattern.findall((results / f"{name}.trace").read_text())


def test_every_drive_is_there_with_what_rules_its_rest(drives: dict[str, dict[str, Any]]) -> None:
    assert set(drives) == {f"{PREFIX}{name}" for name in ("system", "results", "shared", "target")}
    for found in drives.values():
        assert found["interface"] == "nvme"
        assert found["transitions"]["supported"] is False  # QEMU's drive has no such table
        assert found["transitions"]["linux_rule"]["primary_timeout_ms"] == 100
        assert found["aspm"]["policy"] == "default"
        (device,) = found["runtime"]
        assert (device["control"], device["power_state"]) == ("on", "D0")
        assert device["active_seconds"] > 0


def test_no_command_reaches_a_drive_that_rests(
    drives: dict[str, dict[str, Any]], results: Path
) -> None:
    for serial, found in drives.items():
        if serial != SYSTEM:
            assert commands(results, "idle", found["controller"]) == []
            assert found["watch"]["only_rest"] is True


def test_a_drive_that_is_asked_gets_the_commands_that_are_stated(
    ended: Exit, results: Path
) -> None:
    code, said = ended("idle-asked")
    assert code == 0, said
    (found,) = json.loads(said)
    sent = commands(results, "idle-asked", found["controller"])
    assert len(sent) == found["commands_sent"] > 0
    assert set(sent) <= {
        "nvme_admin_identify",
        "nvme_admin_get_log_page",
        "nvme_admin_get_features",
    }
