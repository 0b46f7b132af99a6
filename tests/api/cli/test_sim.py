import json
from pathlib import Path

import pytest

from iojoule.sim.device import DeviceConfig
from iojoule.sim.formats.files import read_drive, read_workload
from iojoule.sim.formats.mqsim_inputs import write_device_xml, write_workload_xml
from iojoule.sim.verify import read_cases
from iojoule.sim.workload import FlowConfig, Scenario
from tests.sim.reference_folder import change_first_row, write_reference

DEVICE = DeviceConfig(channels=3, preconditioning=False)
SCENARIO = Scenario(flows=(FlowConfig(stop_ns=7),))


@pytest.fixture
def ssd(tmp_path: Path) -> Path:
    path = tmp_path / "ssd.xml"
    path.write_text(write_device_xml(DEVICE), encoding="ascii")
    return path


@pytest.fixture
def work(tmp_path: Path) -> Path:
    path = tmp_path / "work.xml"
    path.write_text(write_workload_xml([SCENARIO], DEVICE), encoding="ascii")
    return path


def test_a_drive_goes_to_toml_and_back(iojoule, ssd: Path, tmp_path: Path) -> None:
    toml, xml = tmp_path / "ssd.toml", tmp_path / "again.xml"
    assert iojoule("sim", "convert", ssd, toml).code == 0
    assert read_drive(toml).device == DEVICE
    assert iojoule("sim", "convert", toml, xml).code == 0
    assert xml.read_text(encoding="ascii") == ssd.read_text(encoding="ascii")


def test_a_workload_goes_to_toml_and_back(iojoule, work: Path, tmp_path: Path) -> None:
    toml, xml = tmp_path / "work.toml", tmp_path / "again.xml"
    assert iojoule("sim", "convert", work, toml).code == 0
    assert read_workload(toml).scenarios == (SCENARIO.on(DEVICE),)
    assert iojoule("sim", "convert", toml, xml).code == 0
    assert xml.read_text(encoding="ascii") == work.read_text(encoding="ascii")


def test_flows_on_the_whole_drive_need_the_drive(iojoule, ssd: Path, tmp_path: Path) -> None:
    toml, xml = tmp_path / "work.toml", tmp_path / "work.xml"
    toml.write_text("schema_version = 1\n[[flows]]\nstop_ns = 7\n", encoding="utf-8")
    done = iojoule("sim", "convert", toml, xml)
    assert done.code == 3
    assert "channel_ids is empty" in done.err
    assert not xml.exists()
    assert iojoule("sim", "convert", toml, xml, "--ssd", ssd).code == 0
    assert read_workload(xml).scenarios[0].flows[0].channel_ids == (0, 1, 2)


def test_what_xml_cannot_say_is_said(iojoule, tmp_path: Path) -> None:
    toml = tmp_path / "ssd.toml"
    toml.write_text(
        'schema_version = 1\nmode = "physical"\n[physical]\nwarmup_ns = 5\n', encoding="utf-8"
    )
    done = iojoule("sim", "convert", toml, tmp_path / "ssd.xml")
    assert done.code == 0
    assert done.err.count("[lost_in_xml]") == 2


@pytest.mark.parametrize("name", ["out.json", "out"])
def test_the_suffix_must_say_the_form(iojoule, ssd: Path, tmp_path: Path, name: str) -> None:
    done = iojoule("sim", "convert", ssd, tmp_path / name)
    assert done.code == 3
    assert "the suffix must be .toml or .xml" in done.err


def test_a_file_that_is_neither_is_refused(iojoule, tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    path.write_text("<MQSim_Results/>", encoding="ascii")
    done = iojoule("sim", "convert", path, tmp_path / "a.toml")
    assert done.code == 3
    assert "is neither a drive" in done.err


def test_reference_cases_are_chosen_by_name_and_group(iojoule, tmp_path: Path) -> None:
    write_reference(
        tmp_path, {"001_a": "depth", "002_a": "depth", "019_a": "size", "020_a": "size"}
    )
    done = iojoule("sim", "verify", tmp_path, "--case", "depth", "--case", "019", "-o", "json")
    records = json.loads(done.out)
    assert [each["group"] for each in records] == ["depth", "depth", "size"]
    assert {each["verdict"] for each in records} == {"equal"}
    assert done.code == 0
    assert "3 of 3 cases agree" in done.err
    assert iojoule("sim", "verify", tmp_path, "--case", "none").code == 3


def test_reference_cases_of_mqsim_are_chosen_by_group(iojoule, reference: Path) -> None:
    done = iojoule("sim", "verify", reference, "--case", "rr_qd", "--case", "019", "-o", "json")
    records = json.loads(done.out)
    assert [each["group"] for each in records] == ["rr_qd"] * 7 + ["size_rd"]
    assert {each["verdict"] for each in records} == {"equal"}


def test_a_difference_from_the_reference_leaves_with_1(iojoule, tmp_path: Path) -> None:
    write_reference(tmp_path, {"001_a": "depth"})
    (case,) = read_cases(tmp_path)
    change_first_row(tmp_path, p99_ns=1)
    done = iojoule("sim", "verify", tmp_path)
    assert done.code == 1
    assert f"p99_ns of flow 0: 1 -> {case.rows[0]['p99_ns']}" in done.out
    assert "different" in done.out


def test_presets_are_listed_and_printed(iojoule) -> None:
    done = iojoule("sim", "presets", "-o", "json")
    records = {each["name"]: each for each in json.loads(done.out)}
    assert records["samsung-980-pro-1tb"]["power_states"] == 5
    shown = iojoule("sim", "presets", "samsung-980-pro-1tb").out
    assert "[sources]" in shown
    assert iojoule("sim", "presets", "samsung-990").code == 3


def test_comparing_without_mqsim_says_where_to_get_it(
    iojoule, ssd: Path, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IOJOULE_MQSIM", "/nowhere/MQSim")
    done = iojoule("sim", "compare", "--ssd", ssd, "--workload", work)
    assert (done.code, done.out) == (14, "")
    assert "IOJOULE_MQSIM" in done.err


def test_a_comparison_shows_what_makes_it_doubtful(capsys: pytest.CaptureFixture[str]) -> None:
    from iojoule.api.cli.sim import emit_comparisons
    from iojoule.sim.compare import Comparison

    compared = Comparison(
        device=(), flows=(), embedded_user_seconds=1.0, mqsim_user_seconds=2.0,
        embedded_peak_bytes=1, mqsim_peak_bytes=2, warnings=("near: read caching of two flows",),
    )  # fmt: skip
    emit_comparisons([compared])
    assert "near: read caching of two flows" in capsys.readouterr().err
