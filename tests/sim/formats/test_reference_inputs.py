"""Every input file of the reference runs, in and out of both forms."""

from collections.abc import Iterator
from pathlib import Path

from iojoule.sim.formats.files import read_drive, read_workload
from iojoule.sim.formats.mqsim_inputs import write_device_xml, write_workload_xml
from iojoule.sim.formats.toml import write_drive_toml, write_workload_toml


def pairs(reference: Path) -> Iterator[tuple[Path, Path]]:
    for folder in ("cases", "cases_gcfix"):
        for drive in sorted((reference / folder).glob("*.ssd.xml")):
            yield drive, drive.with_name(drive.name.replace(".ssd.", ".wl."))


def test_all_are_read_without_a_word_and_come_back_equal(reference: Path, tmp_path: Path) -> None:
    found = list(pairs(reference))
    assert len(found) == 105 + 6
    for ssd, wl in found:
        drive, workload = read_drive(ssd), read_workload(wl)
        assert (drive.findings, workload.findings) == ((), ()), ssd.name
        written = {
            "ssd.xml": write_device_xml(drive.device),
            "ssd.toml": write_drive_toml(drive.drive),
            "wl.xml": write_workload_xml(workload.scenarios),
            "wl.toml": write_workload_toml(workload.scenarios),
        }
        for name, text in written.items():
            (tmp_path / name).write_text(text, encoding="utf-8")
        for form in ("xml", "toml"):
            assert read_drive(tmp_path / f"ssd.{form}").device == drive.device, ssd.name
            assert read_workload(tmp_path / f"wl.{form}").scenarios == workload.scenarios, wl.name


def test_the_traces_of_the_cases_are_found_from_their_folder(reference: Path, monkeypatch) -> None:
    monkeypatch.chdir(reference)
    for _, wl in pairs(reference):
        workload = read_workload(wl)
        for number in range(len(workload.scenarios)):
            workload.with_traces(number)
