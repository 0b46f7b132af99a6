"""A drive that says it may have several controllers: Linux shows a head and hides what is below."""

from pathlib import Path

import pytest

from iojoule.measure.campaign.folder import RunRecord
from tests.qemu.machine import Exit


@pytest.fixture(scope="module")
def record(results: Path, ended: Exit) -> RunRecord:
    code, said = ended("shared")
    assert code == 0, said
    [file] = results.glob("shared/runs/*/run.json")
    return RunRecord.model_validate_json(file.read_text())


def test_its_commands_are_counted_below_the_head(record: RunRecord) -> None:
    assert record.measurement is not None
    found = record.measurement.observations
    assert found.device_commands_per_second == pytest.approx(found.iops, rel=0.25)
    assert any("c" in name.removeprefix("diskstats:") for name in record.sensors if "disk" in name)


def test_its_controller_answers(record: RunRecord) -> None:
    assert record.measurement is not None
    assert record.measurement.conditions.firmware
    assert record.measurement.conditions.temperature_celsius_mean == 50
