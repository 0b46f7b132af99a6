"""The drives that ship: every number has a source, and they do what their sources say."""

import tomllib
from collections.abc import Iterator
from typing import Any

import pytest

from iojoule.datasets.catalogue import load_catalogue
from iojoule.datasets.errors import InputError
from iojoule.sim.engines.embedded import EmbeddedEngine
from iojoule.sim.formats.files import read_drive
from iojoule.sim.physical_options import HostEngine, HostOptions
from iojoule.sim.presets import drive_path, preset_names, preset_path
from iojoule.sim.result import Mode, ScenarioResult
from iojoule.sim.workload import FlowConfig, Scenario

SAMSUNG, OPTANE = "samsung-980-pro-1tb", "intel-optane-dc-p4800x-375gb"


def leaves(table: dict[str, Any], prefix: str) -> Iterator[str]:
    for name, value in table.items():
        path = f"{prefix}.{name}" if prefix else name
        if isinstance(value, dict):
            yield from leaves(value, path)
        else:
            yield path


def has_source(path: str, sources: dict[str, str]) -> bool:
    while path:
        if path in sources:
            return True
        path = path.rpartition(".")[0]
    return False


@pytest.mark.parametrize("name", preset_names())
def test_every_number_has_a_source(name: str) -> None:
    tables = tomllib.loads(preset_path(name).read_text(encoding="utf-8"))
    sources = tables.pop("sources")
    stated = [
        path if section == "physical" else path.partition(".")[2]
        for section in tables
        if isinstance(tables[section], dict)
        for path in leaves({section: tables[section]}, "")
    ]
    assert [path for path in stated if not has_source(path, sources)] == []
    assert [
        said for said in sources.values() if said.startswith("assumed") and ":" not in said
    ] == []


@pytest.mark.parametrize("name", preset_names())
def test_nothing_is_left_to_a_default(name: str) -> None:
    drive = read_drive(preset_path(name))
    assert drive.findings == ()
    assert drive.device.mode is Mode.PHYSICAL
    assert drive.drive.title


def test_a_preset_is_found_by_its_name_and_a_file_by_its_path() -> None:
    assert drive_path(SAMSUNG) == preset_path(SAMSUNG)
    assert str(drive_path("here/samsung-980-pro-1tb")) == "here/samsung-980-pro-1tb"
    with pytest.raises(InputError, match=r"did you mean samsung-980-pro-1tb\?"):
        drive_path("samsung-980-pro-2tb")


def test_power_states_are_those_of_the_catalogue() -> None:
    states = read_drive(preset_path(SAMSUNG)).device.physical.power.states
    declared = load_catalogue().get(SAMSUNG).power_states
    assert [
        (each.max_power_watts, each.operational, each.entry_latency_ns, each.exit_latency_ns)
        for each in states
    ] == [
        (
            each.max_power_watts,
            each.operational,
            1000 * (each.entry_latency_us or 0),
            1000 * (each.exit_latency_us or 0),
        )
        for each in declared
    ]


def run(name: str, **flow: Any) -> ScenarioResult:
    device = read_drive(preset_path(name)).device.model_copy(update={"preconditioning": False})
    values = {"stop_ns": 50_000_000, **flow}
    return EmbeddedEngine().run(device, Scenario(flows=(FlowConfig(**values),)))


def test_the_980_pro_reads_4_kib_in_what_was_measured() -> None:
    # 16583 IOPS with SPDK at depth 1, 233552 at 16: icpe24_io_scheduler_study_artifact
    host = HostOptions(engine=HostEngine.spdk)
    assert run(SAMSUNG, host=host).flows[0].iops == pytest.approx(16_583, rel=0.01)
    assert run(SAMSUNG, host=host, queue_depth=16).flows[0].iops == pytest.approx(233_552, rel=0.05)


def test_the_980_pro_moves_what_its_data_sheet_promises() -> None:
    reads = run(SAMSUNG, queue_depth=32, size_mean_sectors=256)
    # long enough that the 64 MiB of buffer do not matter
    writes = run(SAMSUNG, queue_depth=32, size_mean_sectors=256, read_percent=0, stop_ns=4 * 10**8)
    assert reads.flows[0].bandwidth_bytes_per_second == pytest.approx(7.0e9, rel=0.02)
    assert writes.flows[0].bandwidth_bytes_per_second == pytest.approx(5.0e9, rel=0.05)


def test_optane_is_as_fast_and_draws_as_much_as_published() -> None:
    # 8.9 us at depth 1 (measured), 2400 and 2000 MB/s, 8 and 13 W (data sheet)
    assert run(OPTANE).flows[0].drt_ns == pytest.approx(8_900, rel=0.03)
    reads = run(OPTANE, queue_depth=32, size_mean_sectors=128)
    writes = run(OPTANE, queue_depth=32, size_mean_sectors=128, read_percent=0)
    assert reads.flows[0].bandwidth_bytes_per_second == pytest.approx(2.4e9, rel=0.05)
    assert writes.flows[0].bandwidth_bytes_per_second == pytest.approx(2.0e9, rel=0.05)
    assert reads.device.power_watts_mean == pytest.approx(8.0, rel=0.05)
    assert writes.device.power_watts_mean == pytest.approx(13.0, rel=0.05)


@pytest.mark.parametrize("name", preset_names())
def test_joules_are_watts_times_seconds(name: str) -> None:
    result = run(name, read_percent=50, queue_depth=8)
    seconds = result.flows[0].sim_end_ns / 1e9
    assert result.device.energy_joules is not None
    assert result.device.power_watts_mean == pytest.approx(
        sum(result.device.energy_joules.values()) / seconds
    )
