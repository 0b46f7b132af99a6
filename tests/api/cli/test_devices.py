import csv
import io
import json

import pytest

from iojoule.datasets.catalogue import load_catalogue
from iojoule.datasets.profile import shipped_profiles


def test_list_names_every_model_and_what_is_fitted(iojoule) -> None:
    listed = json.loads(iojoule("devices", "list", "-o", "json").out)
    assert [row["id"] for row in listed] == list(load_catalogue().ids)
    assert {row["id"] for row in listed if row["performance"]} == set(shipped_profiles())
    powers = {row["id"]: row["power"] for row in listed if row["performance"]}
    assert powers["samsung-980-pro-1tb"]
    assert not powers["samsung-860-pro"]
    assert not powers["wd-zn540"]


def test_list_as_a_table_and_as_csv(iojoule) -> None:
    table = iojoule("devices", "list").out
    assert "samsung-980-pro-1tb" in table
    assert "yes" in table
    rows = list(csv.DictReader(io.StringIO(iojoule("devices", "list", "-o", "csv").out)))
    assert len(rows) == len(load_catalogue())
    assert {row["performance"] for row in rows} == {"true", "false"}


def test_show_gives_facts_with_sources_and_warns_about_caps(iojoule, device: str) -> None:
    shown = iojoule("devices", "show", device).out
    for said in (
        "a declared cap is not a measured power",
        "8.49 W",
        "measured_peak_power",
        "Kanichai",
        "Gaps",
        "Valid for",
        "read        random       measured",
        "power known: drive, CPU, whole system",
        "queue_depth",
        "980pro_fio_randread.csv",
    ):
        assert said in shown


def test_show_of_an_unmeasured_drive_says_what_its_facts_answer(iojoule) -> None:
    shown = iojoule("devices", "show", "micron-7450").out
    assert "No profile" not in shown
    for said in ("answered from its facts", "iojoule fit", "iojoule profile explain", "datasheet"):
        assert said in shown
    assert "power known: drive, CPU, whole system" in shown
    detail = json.loads(iojoule("devices", "show", "micron-7450", "-o", "json").out)
    assert not detail["measured"]
    assert {one["evidence"] for one in detail["profile"]["fitted"]} == {"datasheet"}
    assert "iojoule fit" in detail["what_to_measure"]


def test_show_of_an_emulated_drive_says_why_nothing_answers(iojoule) -> None:
    shown = iojoule("devices", "show", "virtualbox-nvme").out
    assert "No profile" in shown
    assert "is emulated" in shown
    detail = json.loads(iojoule("devices", "show", "virtualbox-nvme", "-o", "json").out)
    assert detail["profile"] is None


def test_show_takes_a_model_name_and_gives_json_and_csv(iojoule, device: str) -> None:
    detail = json.loads(iojoule("devices", "show", "Samsung 980 PRO 1TB", "-o", "json").out)
    assert detail["id"] == device
    assert detail["profile"]["power_states"] == [0, 1, 2]
    assert {one["field"] for one in detail["profile"]["defaults"]} >= {"engine", "queue_depth"}
    rows = list(csv.DictReader(io.StringIO(iojoule("devices", "show", device, "-o", "csv").out)))
    assert {"metric", "value", "unit", "source", "note"} == set(rows[0])
    assert any(row["metric"] == "declared_max_power_ps0" for row in rows)


@pytest.mark.parametrize("name", load_catalogue().ids)
def test_every_model_can_be_shown(name: str, iojoule) -> None:
    assert iojoule("devices", "show", name).code == 0


def test_an_unknown_name_names_the_closest(iojoule) -> None:
    done = iojoule("devices", "show", "samsung-980-por-1tb")
    assert done.code == 4
    assert "samsung-980-pro-1tb" in done.err
    assert done.err.count("\n") == 1
