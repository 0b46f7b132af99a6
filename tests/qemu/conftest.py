"""Boots the guest once; every test looks at what it left."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from iojoule.measure.campaign.folder import RunRecord
from tests.qemu import image
from tests.qemu.machine import Exit, GuestError, boot

SECONDS = 900.0
"""It takes three to four minutes on two busy cores."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.qemu)


@pytest.fixture(scope="session")
def results(root: Path) -> Path:
    """What the guest left; a guest that hangs gets a second chance."""
    build = root / "build" / "qemu"
    if not (build / "vmlinuz").exists():
        pytest.fail("there is no kernel for the guest; say `make test-qemu`")
    image.build(root, build / "system.img")
    try:
        return boot(root, build / "run", seconds=SECONDS)
    except GuestError:
        return boot(root, build / "run", seconds=SECONDS)


@pytest.fixture(scope="session")
def runs(results: Path) -> list[RunRecord]:
    """The records of the campaign on the drive that is measured."""
    files = sorted((results / "true-driver" / "runs").glob("*/run.json"))
    return [RunRecord.model_validate_json(file.read_text()) for file in files]


@pytest.fixture(scope="session")
def ended(results: Path) -> Exit:
    """Exit code and words of a command that the guest ran."""

    def look(name: str) -> tuple[int, str]:
        said = (results / f"{name}.log").read_text()
        return int((results / f"{name}.exit").read_text()), said

    return look


@pytest.fixture(scope="session")
def seen(results: Path) -> Callable[[str], dict[str, str | int]]:
    """What was on the drive and how it was set, `before` and `after` the campaign."""
    return lambda when: json.loads((results / f"{when}.json").read_text())
