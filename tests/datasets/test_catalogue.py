"""What the catalogue of SSD models says of real drives, and how it meets bad files."""

import csv
from collections import Counter
from pathlib import Path

import pytest

from iojoule.datasets.catalogue import (
    Drive,
    Fact,
    load_catalogue,
    load_drive_file,
    load_references,
)
from iojoule.datasets.errors import InputError, SchemaVersionError, UnknownDeviceError
from tests.errors import having
from tests.reference_data import PUBLIC_DATA, needs_public_data

ROOT = Path(__file__).resolve().parents[2]
DRIVE_FILES = sorted((ROOT / "datasets" / "catalogue" / "drives").glob("*.toml"))

GOOD = """
schema_version = 1
id = "acme-one"
model = "Acme One"
vendor = "Acme"
interface = "nvme"
drive_class = "unknown"
drive_class_source = "not published"

[[facts]]
metric = "idle_power"
value = 2
unit = "W"
source = "label"

[[power_states]]
index = 0
max_power_watts = 8
operational = true
source = "nvme id-ctrl"
"""


def public_rows(name: str) -> list[dict[str, str]]:
    with (PUBLIC_DATA / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("path", DRIVE_FILES, ids=lambda path: path.stem)
def test_every_shipped_file_reads_and_gives_sources(path: Path) -> None:
    drive = load_drive_file(path)
    assert drive.id == path.stem
    assert drive.facts or drive.power_states
    assert all(item.source.strip() for item in (*drive.facts, *drive.power_states))


def test_a_name_means_one_model_only() -> None:
    catalogue = load_catalogue()
    assert catalogue.ids == tuple(sorted(path.stem for path in DRIVE_FILES))
    for drive in catalogue:
        for name in (drive.id, drive.model, *drive.aliases):
            assert catalogue.get(name) is drive


def test_980_pro_states_are_those_of_the_thesis_figure_4_1() -> None:
    drive = load_catalogue().get("Samsung SSD 980 PRO 1TB")
    table = [
        (s.index, s.max_power_watts, s.operational, s.entry_latency_us, s.exit_latency_us)
        for s in drive.power_states
    ]
    assert table == [
        (0, 8.49, True, 0, 0),
        (1, 4.48, True, 0, 200),
        (2, 3.18, True, 0, 1000),
        (3, 0.04, False, 2000, 1200),
        (4, 0.005, False, 500, 9500),
    ]
    assert [s.relative_write_latency for s in drive.power_states] == [0, 1, 2, 3, 4]
    assert [s.index for s in drive.operational_states] == [0, 1, 2]


def test_a_declared_cap_is_not_the_power_drawn() -> None:
    drive = load_catalogue().get("samsung-980-pro-1tb")
    drawn = {m: drive.fact(f"measured_{m}") for m in ("peak_power", "idle_power_ps3")}
    assert [(f.value, f.unit) for f in drawn.values() if f] == [(6.0, "W"), (1.2, "W")]
    assert drive.power_states[0].max_power_watts > 6.0
    assert drive.power_states[3].max_power_watts < 1.2
    assert drive.fact("price") is None


@pytest.mark.parametrize(
    ("name", "holds"),
    [
        ("Crucial P3 Plus 4TB", lambda s: s[0].active_power_watts == 0 < s[0].max_power_watts),
        ("WD_BLACK SN750 SE 500GB", lambda s: s[1].active_power_watts > s[1].max_power_watts),
        ("Samsung 990 PRO 4TB", lambda s: len({x.max_power_watts for x in s[:3]}) == 1),
        ("Intel D7-P5520 1.92TB", lambda s: {x.relative_read_latency for x in s} == {0}),
        ("ADATA LEGEND 710 256GB", lambda s: s[0].operational and s[0].entry_latency_us == 230_000),
        ("kingston-14-state-datacentre", lambda s: len(s) == 14),
        ("virtualbox-nvme", lambda s: s[0].max_power_watts == 0.01),
    ],
)
def test_nasty_tables_that_drives_declare_are_kept(name, holds) -> None:
    assert holds(load_catalogue().get(name).power_states)


def test_case_and_punctuation_of_a_name_do_not_matter() -> None:
    assert load_catalogue().get("SAMSUNG_980-pro").id == "samsung-980-pro-1tb"


@pytest.mark.parametrize("typed", ["980 PRO", "samsng-980-pro-1tb", "Samsung 980 Prp 1 TB"])
def test_an_unknown_name_suggests_the_closest(typed: str) -> None:
    with pytest.raises(UnknownDeviceError, match="samsung-980-pro-1tb"):
        load_catalogue().get(typed)


def test_drives_without_published_power_have_none() -> None:
    for name in ("samsung-860-pro", "wd-zn540", "kingston-dc500m"):
        drive = load_catalogue().get(name)
        assert not drive.power_states
        assert drive.facts
        assert "W" not in {fact.unit for fact in drive.facts}


def test_a_users_own_file_reads(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(GOOD)
    drive = load_drive_file(path)
    assert drive.id == "acme-one"
    fact = drive.fact("idle_power")
    assert fact is not None
    assert fact.value == 2


@pytest.mark.parametrize(
    ("old", "new", "place", "remedy"),
    [
        ("value = 2", "value = ", "line 12", "correct that place"),
        ("max_power_watts", "max_power_wats", "max_power_wats", "did you mean max_power_watts?"),
        ('vendor = "Acme"', "", "vendor", "add it"),
        ("max_power_watts = 8", "max_power_watts = -8", "power_states[0].max_power_watts", "0"),
        ("max_power_watts = 8", 'max_power_watts = "8 W"', "max_power_watts", "valid number"),
        ("max_power_watts = 8", "max_power_watts = nan", "max_power_watts", "finite"),
        ("value = 2", "value = -2", "facts[0]", "negative"),
        ("value = 2", 'value = "two"', "facts[0]", "bare number"),
        ("value = 2", "value = [2]", "facts[0].value", "number or text"),
        ("[[facts]]", "[facts]", "facts", "[[facts]] tables"),
        ('unit = "W"', 'unit = "mW"', "facts[0].unit", "'W'"),
        ('source = "label"', 'source = " "', "facts[0].source", "correct it"),
        ("schema_version = 1", "", "schema_version", "schema_version = 1"),
    ],
)
def test_a_bad_file_is_refused_with_place_and_remedy(
    tmp_path: Path, old: str, new: str, place: str, remedy: str
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(InputError) as caught:
        load_drive_file(path)
    for part in (str(path), place, remedy):
        assert part in caught.value.message


def test_a_state_listed_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(GOOD + GOOD[GOOD.index("[[power_states]]") :])
    with pytest.raises(InputError, check=having(field="power_states")):
        load_drive_file(path)


def test_a_newer_schema_a_missing_and_a_binary_file_are_refused(tmp_path: Path) -> None:
    newer = tmp_path / "newer.toml"
    newer.write_text(GOOD.replace("schema_version = 1", "schema_version = 2"))
    with pytest.raises(SchemaVersionError, check=having(field="schema_version")):
        load_drive_file(newer)
    with pytest.raises(InputError, match="check the path"):
        load_drive_file(tmp_path / "absent.toml")
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="UTF-8"):
        load_drive_file(binary)


POWER_STATES = (54, 243, 160, 1199.5438, 1_761_406, 2_308_435)
"""Drives, states, operational states, and sums of watts, entry and exit times in microseconds of
the public table of power states."""
DUMPS = ("github.com/bsdhw/", "github.com/linuxhw/")
"""Sources of the tables that come on top, each whole or not at all."""
LINEAR_COSTS = (32, 61_584_894_790)
"""Read throughputs of iocost's linear cost models: how many, and the sum of their bytes/s."""


def test_power_states_add_up_to_those_of_the_public_table() -> None:
    tables = [
        [state for state in drive.power_states if not state.source.startswith(DUMPS)]
        for drive in load_catalogue()
    ]
    states = [state for table in tables for state in table]
    assert (
        sum(map(bool, tables)),
        len(states),
        sum(state.operational for state in states),
        pytest.approx(sum(state.max_power_watts for state in states)),
        sum(state.entry_latency_us or 0 for state in states),
        sum(state.exit_latency_us or 0 for state in states),
    ) == POWER_STATES


def linear_costs(drive: Drive) -> list[Fact]:
    return [fact for fact in drive.facts if fact.metric == "linear_cost_read_throughput"]


def test_linear_cost_models_add_up_to_the_public_ones() -> None:
    facts = [fact for d in load_catalogue() for fact in linear_costs(d)]
    assert (len(facts), sum(int(fact.value) for fact in facts)) == LINEAR_COSTS


@needs_public_data
def test_every_public_power_state_is_present() -> None:
    rows = public_rows("power_states.csv")
    assert len(rows) == 243
    catalogue = load_catalogue()
    for row in rows:
        states = catalogue.get(row["model"]).power_states
        state = next(s for s in states if s.index == int(row["ps"]))
        assert state.max_power_watts == float(row["max_power_w"])
        assert state.operational == (row["operational"] == "yes")
        for column, value in (
            ("entry_us", state.entry_latency_us),
            ("exit_us", state.exit_latency_us),
            ("active_w", state.active_power_watts),
        ):
            assert value == (float(row[column]) if row[column] else None)
    declared = Counter(catalogue.get(row["model"]).id for row in rows)
    shipped = {drive.id: len(drive.power_states) for drive in catalogue if drive.power_states}
    # tables of other sources come on top, each whole or not at all
    assert {name: shipped[name] for name in declared} == declared


@needs_public_data
def test_every_public_datasheet_figure_is_present() -> None:
    rows = public_rows("datasheets.csv")
    assert len(rows) == 209
    catalogue = load_catalogue()
    subjects = Counter(reference.subject for reference in load_references())
    per_drive: Counter[str] = Counter()
    for row in rows:
        if row["model"] not in subjects:
            per_drive[catalogue.get(row["model"]).id] += 1
    assert sum(subjects.values()) + sum(per_drive.values()) == len(rows)
    for id_, count in per_drive.items():
        assert len(catalogue.get(id_).facts) >= count


@needs_public_data
def test_every_public_linear_cost_model_is_present() -> None:
    catalogue = load_catalogue()
    for row in public_rows("iocost_linear_models.csv"):
        facts = linear_costs(catalogue.get(row["model"]))
        assert int(row["rbps"]) in {fact.value for fact in facts}


DISK = GOOD.replace('interface = "nvme"', 'interface = "sata"\nmedium = "disk"')


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (DISK, "Acme One is a hard disk"),
        (GOOD.replace('"nvme"', '"sata"'), "power_states"),
        (DISK.split("[[power_states]]")[0].replace('"sata"', '"nvme"'), "interface"),
        (
            DISK.split("[[power_states]]")[0]
            + '[[facts]]\nmetric = "pcie_generation"\nvalue = 4\nunit = "count"\nsource = "x"\n',
            "pcie_generation",
        ),
        (
            DISK.split("[[power_states]]")[0]
            + '[[facts]]\nmetric = "standby_power"\nvalue = 3\nunit = "W"\nsource = "x"\n',
            "standby_power",
        ),
    ],
)
def test_a_disk_that_contradicts_itself_is_refused_by_name(
    tmp_path: Path, text: str, word: str
) -> None:
    file = tmp_path / "acme-one.toml"
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        load_drive_file(file)
    assert word in caught.value.message
