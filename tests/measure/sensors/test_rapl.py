from pathlib import Path

import numpy as np
import pytest

from iojoule.measure.errors import SensorError
from iojoule.measure.sensors import open_sensor
from iojoule.measure.sensors.protocol import Scope
from iojoule.measure.sensors.rapl import Rapl

RANGE_UJ = 262_143_328_850


def zone(root: Path, folder: str, name: str, energy_uj: int, range_uj: int = RANGE_UJ) -> Path:
    made = root / folder
    made.mkdir(parents=True)
    (made / "name").write_text(f"{name}\n", encoding="ascii")
    (made / "energy_uj").write_text(f"{energy_uj}\n", encoding="ascii")
    (made / "max_energy_range_uj").write_text(f"{range_uj}\n", encoding="ascii")
    return made


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Two packages, numbered against their names, with psys and a second view of a package."""
    zone(tmp_path, "intel-rapl:0", "package-1", 100)
    zone(tmp_path, "intel-rapl:1", "package-0", 200)
    zone(tmp_path, "intel-rapl:1:0", "core", 50)
    zone(tmp_path, "intel-rapl:1/intel-rapl:1:1", "dram", 30)
    zone(tmp_path, "intel-rapl:2", "psys", 900)
    zone(tmp_path, "intel-rapl-mmio:0", "package-0", 200)
    return tmp_path


def joules(sensor: Rapl) -> dict[str, float]:
    names = [rail.name for rail in sensor.probe().rails]
    chunk = sensor.read(1.0)
    return dict(zip(names, np.round(chunk.values[0], 9).tolist(), strict=True))


def test_zones_are_told_apart_by_name(tree: Path) -> None:
    rails = {rail.name: rail for rail in open_sensor(f"rapl:{tree}").probe().rails}
    assert {name: (rail.scope, rail.counts) for name, rail in rails.items()} == {
        "package-0": (Scope.CPU, True),
        "package-1": (Scope.CPU, True),
        "package-0-core": (Scope.CPU, False),
        "package-0-dram": (Scope.DRAM, True),
        "psys": (Scope.SYSTEM, True),
    }


@pytest.mark.parametrize(
    "controls", [("intel-rapl", "intel-rapl-tpmi"), ("intel-rapl-tpmi", "intel-rapl-mmio")]
)
def test_a_package_that_two_interfaces_see_counts_once(
    tmp_path: Path, controls: tuple[str, ...]
) -> None:
    for control in controls:
        zone(tmp_path, f"{control}:0", "package-0", 100)
        zone(tmp_path, f"{control}:0:0", "dram", 30)
    zone(tmp_path, f"{controls[1]}:1", "package-1", 100)
    rails = Rapl(tmp_path).probe().rails
    assert [rail.name for rail in rails] == ["package-0", "package-0-dram", "package-1"]


def test_counters_start_at_zero_and_wrap(tmp_path: Path) -> None:
    package = zone(tmp_path, "intel-rapl:0", "package-0", 900_000, range_uj=1_000_000)
    sensor = Rapl(tmp_path, interval_seconds=0.001)
    sensor.start()
    seen = []
    for energy_uj in (900_000, 950_000, 150_000, 150_000, 50_000):
        (package / "energy_uj").write_text(str(energy_uj), encoding="ascii")
        seen.append(joules(sensor)["package-0"])
    assert seen == pytest.approx([0, 0.05, 0.25, 0.25, 1.15])


def test_silence_longer_than_a_wrap_is_a_gap(tree: Path) -> None:
    sensor = Rapl(tree)
    sensor.probe()
    assert sensor.missed(60) == 0
    assert sensor.missed(RANGE_UJ * 1e-6 / 100) > 0


def test_no_counters(tmp_path: Path) -> None:
    with pytest.raises(SensorError, match="no RAPL counters"):
        Rapl(tmp_path).probe()


def test_a_refused_permission_names_the_remedies(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # root may read everything, so the refusal is played
    read_text = Path.read_text

    def refuse(path: Path, *arguments: str, **options: str) -> str:
        if path.name == "energy_uj":
            raise PermissionError(13, "Permission denied")
        return read_text(path, *arguments, **options)

    monkeypatch.setattr(Path, "read_text", refuse)
    with pytest.raises(SensorError, match=r"root only.*CAP_DAC_READ_SEARCH.*udev"):
        Rapl(tree).probe()


def test_a_damaged_tree_is_named(tree: Path) -> None:
    (tree / "intel-rapl:0" / "energy_uj").write_text("many", encoding="ascii")
    with pytest.raises(SensorError, match="holds 'many'"):
        Rapl(tree).probe()


@pytest.mark.parametrize("energy_uj", [1_000_000, 200_000_000_000])
def test_a_counter_that_was_reset_is_no_wrap(tmp_path: Path, energy_uj: int) -> None:
    package = zone(tmp_path, "intel-rapl:0", "package-0", 100_000_000_000)
    sensor = Rapl(tmp_path, interval_seconds=0.001)
    sensor.start()
    sensor.read(1.0)
    (package / "energy_uj").write_text(str(energy_uj), encoding="ascii")
    with pytest.raises(SensorError, match=r"intel-rapl:0.*the counter was reset"):
        sensor.read(1.0)


def test_a_range_of_nothing_is_refused(tmp_path: Path) -> None:
    zone(tmp_path, "intel-rapl:0", "package-0", 100, range_uj=0)
    with pytest.raises(SensorError, match="max_energy_range_uj holds 0"):
        Rapl(tmp_path).probe()
