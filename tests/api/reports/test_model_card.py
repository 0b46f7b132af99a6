"""The model card: every section, the profile's own numbers, pages that stand alone."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from iojoule.api.reports.document import Document, Section, Table, to_html
from iojoule.api.reports.model_card import (
    FindingsSummary,
    build_card,
    read_findings,
    to_markdown,
    write_card,
)
from iojoule.datasets.errors import InputError
from iojoule.datasets.profile import DeviceProfile, load_shipped_profile, shipped_profiles
from iojoule.datasets.schema import Measurement
from iojoule.model.fit.build import fit_profile
from iojoule.model.recipe import generic_recipe
from tests.errors import having

SECTIONS = [
    "What this is for",
    "Data used",
    "Conditions and validity",
    "Known gaps",
    "Evidence by quantity",
    "Error, coverage and interval score",
    "Residuals",
    "Saturation curves",
    "Power states and mixes",
    "The drive's power while it serves",
    "Idle power and caps",
    "What written bytes do",
    "The host",
    "How it was made",
    "Every fitted point",
]


@pytest.fixture(scope="module")
def fitted() -> DeviceProfile:
    """A drive of closed form: 80 us unloaded, 400 k reads a second, 2.5 W and 0.6 nJ a byte."""
    rows = []
    for size in (4096, 8192, 16384, 32768, 65536):
        for depth in (1, 2, 4, 8, 16, 32, 64):
            capacity = 4e5 * 4096 / size
            latency = ((80e3 + size) ** 2 + (depth / capacity * 1e9) ** 2) ** 0.5
            iops = depth / latency * 1e9
            rows.append(
                Measurement.model_validate(
                    {
                        "workload": {"operation": "read", "pattern": "random"},
                        "configuration": {
                            "request_bytes": size,
                            "queue_depth": depth,
                            "jobs": 1,
                            "engine": "io_uring",
                        },
                        "conditions": {"device_model": "closed form", "session_id": "one"},
                        "observations": {
                            "iops": iops,
                            "latency_mean_ns": latency,
                            "latency_p99_ns": 1.5 * latency,
                            "device_power_watts": 2.5 + 6e-10 * iops * size,
                        },
                    }
                )
            )
    return fit_profile(generic_recipe("closed-form", "Closed <Form> & Sons"), rows, [])


@pytest.fixture(scope="module")
def card(fitted: DeviceProfile) -> Document:
    """Its card; drawing one takes a second."""
    return build_card(fitted)


@pytest.fixture(scope="module")
def shipped_card(device: str) -> Document:
    return build_card(load_shipped_profile(device))


def section(card: Document, heading: str) -> Section:
    return next(one for one in card.sections if one.heading == heading)


def cells(card: Document, heading: str) -> list[tuple[str, ...]]:
    blocks = section(card, heading).blocks
    return [row for block in blocks if isinstance(block, Table) for row in block.rows]


def test_every_section_is_there_whatever_the_profile_knows(
    card: Document, shipped_card: Document, device: str
) -> None:
    others = [load_shipped_profile(name) for name in shipped_profiles() if name != device]
    for each in (card, shipped_card, *map(build_card, others)):
        assert [one.heading for one in each.sections] == SECTIONS


def test_errors_are_those_that_the_fit_kept(fitted: DeviceProfile, card: Document) -> None:
    assert fitted.assessment is not None
    held = fitted.assessment.held_out
    rows = cells(card, "Error, coverage and interval score")
    assert len(rows) == len(held)
    first = next(one for one in held if one.region == "inside" and one.value is None)
    assert any(
        row[1:9]
        == (
            "throughput",
            "each depth",
            "inside",
            str(first.rows),
            f"{100 * first.median_error:.1f} %",
            f"{100 * first.p90_error:.1f} %",
            f"{100 * first.baseline_median_error:.1f} %",
            f"{first.covered} of {first.interval_rows}",
        )
        for row in rows
    )


def test_the_law_and_its_points_are_the_profiles(fitted: DeviceProfile, card: Document) -> None:
    law = fitted.device_power
    assert law is not None
    rows = {row[0]: row for row in cells(card, "The drive's power while it serves")}
    assert rows["base_watts"][1] == "2.50 W"
    assert rows["read_joules_per_byte"][1].endswith(" nJ/B")
    residuals = {row[0]: row for row in cells(card, "Residuals")}
    assert residuals["drive's power"][1] == "35"
    assert residuals["mean latency, random reads"][2] == "35"


def test_every_point_that_was_fitted_is_listed(shipped_card: Document, device: str) -> None:
    profile = load_shipped_profile(device)
    assert profile.assessment is not None
    assert profile.assessment.power is not None
    assert profile.host_power is not None
    listed = [one for one in section(shipped_card, SECTIONS[-1]).blocks if one.kind == "table"]
    assert [len(table.rows) for table in listed] == [
        sum(one.total for one in profile.assessment.performance),
        profile.assessment.power.total,
        len(profile.host_power.points),
    ]
    assert len(profile.host_power.points) >= 20


def test_a_profile_without_power_says_so_and_names_no_watts() -> None:
    lacking = dict.fromkeys(("device_power", "host_power", "system_power"))
    card = build_card(load_shipped_profile("wd-zn540").model_copy(update=lacking))
    for heading in ("The drive's power while it serves", "Idle power and caps"):
        assert "Not known" in str(section(card, heading).blocks)
    assert "Watts of the CPU are not known" in str(section(card, "The host").blocks)


def test_a_profile_of_an_older_version_says_what_to_do(fitted: DeviceProfile) -> None:
    older = build_card(fitted.model_copy(update={"assessment": None}))
    for heading in ("Error, coverage and interval score", "Residuals"):
        assert "Fit it to measurements" in str(section(older, heading).blocks)
    drawn = {one.name: one.caption for one in older.pictures}
    assert "No measured points" in drawn["closed-form-saturation-random-read"]
    assert "none are stored" in drawn["closed-form-power"]


def test_findings_appear_when_they_were_judged(fitted: DeviceProfile) -> None:
    judged = FindingsSummary(12, 11, 9, 3, ("F4: the other way",), "By `iojoule validate`.")
    card = build_card(fitted, judged)
    told = str(section(card, "Published findings reproduced").blocks)
    assert "12 published findings" in told
    assert "F4: the other way" in told


def test_the_page_is_well_formed_and_needs_nothing_else(card: Document) -> None:
    page = to_html(card)
    root = ElementTree.fromstring(page.split("\n", 1)[1])
    ids = [one.get("id") for one in root.iter() if one.get("id")]
    assert len(ids) == len(set(ids))
    targets = {one.get("href") for one in root.iter() if one.get("href")}
    assert targets == {f"#{one}" for one in ids if f"#{one}" in targets}
    for loaded in ("src=", "@import", "<script", "<link"):
        assert loaded not in page
    addresses = set(re.findall(r"https?://[^\s\"']+", page))
    names = {"http://www.w3.org/1999/xhtml", "http://www.w3.org/2000/svg"}
    assert addresses <= names | {"http://www.w3.org/1999/xlink"}
    assert "Closed &lt;Form&gt; &amp; Sons" in page


def test_every_drawing_is_named_and_described(card: Document) -> None:
    assert len(card.pictures) == 3
    for one in card.pictures:
        root = ElementTree.fromstring(one.svg)
        told = {child.get("id"): child.text for child in root if child.get("id")}
        for name in root.attrib["aria-labelledby"].split():
            assert told[name]
        assert root.attrib["role"] == "img"


def test_the_same_profile_gives_the_same_card(fitted: DeviceProfile, card: Document) -> None:
    again = build_card(fitted)
    assert to_html(card) == to_html(again)
    assert [one.svg for one in card.pictures] == [one.svg for one in again.pictures]


def test_markdown_refers_to_the_drawings_beside_it(card: Document, tmp_path: Path) -> None:
    written = write_card(card, tmp_path)
    assert {path.suffix for path in written} == {".md", ".html", ".svg"}
    text = (tmp_path / "closed-form.md").read_text("utf-8")
    named = re.findall(r"\]\(([^)]+)\)", text)
    assert len(named) == len(card.pictures)
    assert all((tmp_path / name).is_file() for name in named)
    assert "Closed \\<Form\\> & Sons" in text
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert all(line.endswith("|") for line in lines)
    assert to_markdown(card) == text


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("absent", "no such folder"),
        ("card.pdf", "no such folder"),
        ("no/card.md", "does not exist"),
    ],
)
def test_targets_that_cannot_be(target: str, said: str, card: Document, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        write_card(card, tmp_path / target)
    assert not list(tmp_path.iterdir())


def test_the_command(iojoule: Callable, device: str, fitted: DeviceProfile, tmp_path: Path) -> None:
    from iojoule.datasets.profile import write_profile

    write_profile(fitted, tmp_path / "own.json")
    done = iojoule("profile", "report", tmp_path / "own.json", "-o", tmp_path / "card.html")
    assert done.code == 0, done.err
    assert done.out.strip() == str(tmp_path / "card.html")
    shipped = iojoule("profile", "report", "--device", device, "-o", tmp_path / "card.md")
    assert shipped.code == 0, shipped.err
    assert (tmp_path / "card.md").is_file()
    neither = iojoule("profile", "report", "-o", tmp_path)
    assert neither.code == 2
    torn = tmp_path / "torn.json"
    torn.write_text("{")
    refused = iojoule("profile", "report", torn, "-o", tmp_path)
    assert refused.code == 3
    assert "torn.json" in refused.err
    newer = tmp_path / "newer.json"
    newer.write_text('{"schema_version": 99}')
    refused = iojoule("profile", "report", newer, "-o", tmp_path)
    assert refused.code != 0
    assert "newer" in refused.err


def test_verdicts_are_summed_up_for_the_drive_alone(tmp_path: Path) -> None:
    def verdict(fact: str, device: str, **more: object) -> dict[str, object]:
        right = {"asked": True, "answered": True, "direction_right": True, "magnitude_right": True}
        said = {"quantity": "iops", "published_text": "1.1", "predicted_text": "1.2 [1.15, 1.3]"}
        return {"fact_id": fact, "device": device} | right | said | more

    rows = [
        verdict("1", "mine"),
        verdict("2", "mine", magnitude_right=False),
        verdict("3", "mine", answered=False, direction_right=False, magnitude_right=False),
        verdict("4", "mine", asked=False),
        verdict("5", "other"),
    ]
    path = tmp_path / "findings.json"
    path.write_text(json.dumps({"summary": [], "findings": rows}))
    told = read_findings(path, "mine")
    assert (told.judged, told.direction_right) == (2, 2)
    assert (told.magnitude_inside, told.unanswered) == (1, 1)
    assert told.missed == ("2 iops: published 1.1, predicted 1.2 [1.15, 1.3]",)
    path.write_text("{}")
    with pytest.raises(InputError, check=having(field="findings")):
        read_findings(path, "mine")
