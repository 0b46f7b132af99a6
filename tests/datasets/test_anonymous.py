import pytest

from iojoule.datasets.anonymous import TEXT_FIELDS, identities, without_identities
from iojoule.datasets.arrow import columns
from iojoule.datasets.catalogue import load_catalogue
from iojoule.datasets.schema import Measurement, from_row, to_row

BARE = {"operation": "read", "request_bytes": 4096}


def cleaned(secrets: tuple[str, ...] = (), **values: object) -> dict[str, object]:
    kept = without_identities([from_row(BARE | values)], "drive-a", "0a1b2c3d", secrets)
    return to_row(kept.measurements[0])


def test_every_field_of_free_text_is_judged() -> None:
    text = {
        name for name, one in columns().items() if str(one.arrow_type) == "string" and not one.words
    }
    # a mix of sizes has a form of its own in the schema, made of digits
    assert text - {"request_bytes_mix"} == set(TEXT_FIELDS)


@pytest.mark.parametrize(
    ("field", "value", "kept"),
    [
        ("firmware", "5B2QGXA7", "5B2QGXA7"),
        ("firmware", "S5GXNX0T123456K", None),
        ("kernel_version", "6.1.0-18-amd64", "6.1.0"),
        ("kernel_version", "6.8-janes-laptop", "6.8"),
        ("kernel_version", "10.0.17.4", None),
        ("cpu_model", "AMD EPYC 7302P 16-Core Processor", "AMD EPYC 7302P 16-Core Processor"),
        (
            "cpu_model",
            "Intel(R) Xeon(R) Gold 6226R CPU @ 2.90GHz",
            "Intel(R) Xeon(R) Gold 6226R CPU @ 2.90GHz",
        ),
        ("cpu_model", "build-host-17", None),
        ("mount_options", "rw,noatime,/dev/sda1,data=ordered", "rw,noatime,data=ordered"),
        ("mount_options", "subvol=/home/jane", None),
        ("cpu_governor", "schedutil", "schedutil"),
        ("cpu_governor", "jane", None),
        ("aspm_policy", "powersupersave", "powersupersave"),
        ("device_model", "Samsung SSD 980 PRO 1TB", "drive-a"),
        ("device_serial_hash", "7a22d69702548104", "drive-0a1b2c3d-1"),
        ("host_id", "db17", "host-0a1b2c3d-1"),
        ("session_id", "jane unsteady", "session-0a1b2c3d-1-unsteady"),
        ("verdict_reasons", "stall,jane", "stall"),
    ],
)
def test_what_is_kept(field: str, value: str, kept: str | None) -> None:
    assert cleaned(**{field: value})[field] == kept


def test_labels_tell_apart_what_was_apart() -> None:
    rows = [from_row(BARE | {"host_id": name}) for name in ("a", "b", "a")]
    found = without_identities(rows, "drive-a", "0a1b2c3d").measurements
    hosts = [one.conditions.host_id for one in found]
    assert hosts[0] == hosts[2] != hosts[1]


def test_a_known_secret_goes_whatever_its_form() -> None:
    assert cleaned(("rack07",), firmware="RACK07")["firmware"] is None
    assert cleaned(("vm",), firmware="VM")["firmware"] is None
    assert cleaned(("vm",), firmware="NVM7")["firmware"] == "NVM7"


def test_cleaning_twice_changes_nothing_more() -> None:
    values = {"host_id": "a", "session_id": "b unsteady", "series_id": "c"}
    values |= {"device_serial_hash": "d", "kernel_version": "6.1.0-x", "cpu_model": "jane"}
    once = without_identities([from_row(BARE | values)], "drive-a", "0a1b2c3d")
    twice = without_identities(once.measurements, "drive-a", "0a1b2c3d")
    assert twice.measurements == once.measurements
    assert (once.left_out, twice.left_out) == (("cpu_model",), ())


def test_numbers_and_words_stay() -> None:
    row: dict[str, object] = BARE | {"queue_depth": 8, "iops": 1234.5, "engine": "io_uring"}
    kept = cleaned(**row)
    assert {name: kept[name] for name in row} == row
    assert isinstance(from_row(row), Measurement)


@pytest.mark.parametrize(
    "text",
    [
        "00:1b:21:3c:4d:5e",
        "00-1B-21-3C-4D-5E",
        "192.168.1.17",
        "/home/jane/x",
        "~/x",
        "/dev/nvme0n1",
        "9d2c1f1e-5f3a-4a57-9e0e-6e7a3b1c2d4f",
        "eui.0025385b71b08f1a",
        "naa.5002538d40000001",
        "0x5002538d4000000a",
        "jane@example.org",
        "0025385b71b08f1a0025385b71b08f1a",
    ],
)
def test_identities_are_found_in_any_text(text: str) -> None:
    assert identities(f"first\nx = {text} y\n")[0].endswith("line 2")


@pytest.mark.parametrize(
    "text",
    [
        "0.1234567890123456",
        "1.234567890123456e-05",
        "2026-11-23T00:35:59Z",
        "iojoule 0.1.0",
        "https://example.org/dev/home/data.csv",
        "a" * 64,
        "session-2f0f3efb-1",
        "6.18.44",
        "1000204886016",
        "GB/s",
        "50/50",
        "/",
        "1023456789012345",
    ],
)
def test_figures_and_sources_are_no_identities(text: str) -> None:
    assert identities(f'"{text}", {text}\n') == []


def test_what_the_catalogue_cites_names_nobody() -> None:
    for drive in load_catalogue():
        assert identities(drive.model_dump_json(indent=1)) == [], drive.id


def test_a_serial_number_is_found() -> None:
    assert identities("a\nb s5gxnx0t123456k", ["S5GXNX0T123456K"]) == ["a serial number in line 2"]
