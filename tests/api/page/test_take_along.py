"""What somebody takes along from the page: reports, pictures, points, model cards."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import httpx
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from iojoule.api.jobs.worker import Worker
from iojoule.api.reports.report_file import data_of
from tests.api.http.conftest import worker as worker

ROOT = Path(__file__).parents[3]
AXE = ROOT / "api/page/node_modules/axe-core/axe.min.js"
DRIVE = "/ui/drives/samsung-980-pro-1tb"
SVG = "{http://www.w3.org/2000/svg}"


def saved(page: Page, button: Locator, folder: Path) -> Path:
    """The file that a button lets the browser save."""
    with page.expect_download() as download:
        button.click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


def recommended(page: Page) -> None:
    page.goto("/ui/")
    page.get_by_role("button", name="Recommend", exact=True).click()
    expect(page.locator(".answer")).to_have_attribute("aria-busy", "false")
    expect(page.locator("#headline")).to_be_visible()


def open_alone(browser: Browser, path: Path, scheme: str) -> tuple[Page, list[str]]:
    """A saved page in a browser that runs no script, with what it asked the network for."""
    context = browser.new_context(java_script_enabled=False, color_scheme=scheme)  # type: ignore[arg-type]
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda said: asked.append(said.text))
    page.goto(path.as_uri())
    return page, asked


def check_opens_alone(browser: Browser, path: Path, heading: str) -> None:
    page, asked = open_alone(browser, path, "dark")
    expect(page.get_by_role("heading", level=1)).to_contain_text(heading)
    assert asked == [path.as_uri()]
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgba(0, 0, 0, 0)"
    assert page.pdf(format="A4").startswith(b"%PDF")
    page.context.close()


def check_accessible(browser: Browser, path: Path) -> None:
    page = browser.new_page()
    page.goto(path.as_uri())
    check_axe(page)
    page.close()


def check_axe(page: Page) -> None:
    page.evaluate(AXE.read_text())  # not as an element: the policy would refuse it
    found = page.evaluate("axe.run()")
    serious = [
        (one["id"], [node["html"][:120] for node in one["nodes"]])
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
    ]
    assert not serious


def test_a_recommendation_is_saved_as_a_report(
    page: Page, browser: Browser, tmp_path: Path
) -> None:
    recommended(page)
    told = page.locator(".headline .sentence").inner_text()
    path = saved(page, page.get_by_role("button", name="Save report"), tmp_path)
    assert path.name == "my-workload-on-samsung-980-pro-1tb.html"
    answer = data_of(path.read_text("utf-8"), path.name)["answer"]
    depth = answer["recommended"]["configuration"]["queue_depth"]
    assert f"to {depth}" in told
    check_opens_alone(browser, path, "my workload on Samsung 980 PRO")
    check_accessible(browser, path)


def test_a_what_if_is_saved_as_a_report(page: Page, browser: Browser, tmp_path: Path) -> None:
    page.goto("/ui/what-if")
    expect(page.get_by_label("Then", exact=True)).to_contain_text("depth")
    path = saved(page, page.get_by_role("button", name="Save report"), tmp_path)
    data = data_of(path.read_text("utf-8"), path.name)
    assert data["kind"] == "what-if"
    assert data["asked"]["request"]["changes"] == {"growth": 1.5}
    check_opens_alone(browser, path, "what if growth = 1.5?")
    check_accessible(browser, path)


def test_the_result_of_a_job_is_saved(
    page: Page, browser: Browser, service: httpx.Client, worker: Worker, tmp_path: Path
) -> None:
    asked = {
        "device": "samsung-980-pro-1tb",
        "workload_profile": {
            "workload": {"operation": "read", "demand_operations_per_second": 30000},
            "free": {"queue_depth": [4, 16]},
        },
        "changes": {"geometry.channels": 4},
    }
    job = service.post("/what-if", json=asked).json()
    worker.run_one()
    page.goto("/ui/jobs")
    row = page.get_by_role("row").filter(has_text=job["id"])
    path = saved(page, row.get_by_role("button", name="Save report"), tmp_path)
    data = data_of(path.read_text("utf-8"), path.name)
    assert data["asked"]["request"] == asked
    check_opens_alone(browser, path, "geometry.channels = 4")
    plain = saved(page, row.get_by_role("button", name="Save JSON"), tmp_path)
    assert json.loads(plain.read_text("utf-8")) == data["answer"]


def test_a_model_card_is_shown_and_saved(page: Page, browser: Browser, tmp_path: Path) -> None:
    page.goto(DRIVE, wait_until="networkidle")  # what comes late moves what is to be clicked
    page.get_by_text("Show it").click()
    card = page.locator(".card")
    expect(card.get_by_role("heading", name="Known gaps")).to_be_visible(timeout=60_000)
    expect(card.get_by_role("columnheader", name="SHA-256 begins")).to_be_visible()
    check_axe(page)
    pictures = card.get_by_role("img")
    expect(pictures).not_to_have_count(0)
    for picture in pictures.all():
        picture.scroll_into_view_if_needed()
        assert picture.evaluate("(one) => one.decode().then(() => one.naturalWidth)") > 100
    path = saved(page, page.get_by_role("button", name="Save it"), tmp_path)
    assert path.name == "samsung-980-pro-1tb-model-card.html"
    check_opens_alone(browser, path, "Samsung 980 PRO 1TB")


def check_picture(path: Path, browser: Browser) -> ElementTree.Element:
    """Well-formed, in light colours, with its styles on its elements and nothing from elsewhere."""
    text = path.read_text("utf-8")
    assert text.startswith('<?xml version="1.0" encoding="UTF-8"?>')
    root = ElementTree.fromstring(text.partition("\n")[2])
    assert root.tag == f"{SVG}svg"
    assert root.findtext(f"{SVG}title")
    assert "var(" not in text
    assert "currentColor" not in text
    for element in root.iter():
        assert not {"class", "style", "href", "tabindex"} & set(element.attrib)
        if element.tag == f"{SVG}text":
            red, green, blue = map(int, re.findall(r"\d+", element.attrib["fill"])[:3])
            assert min(red, green, blue) < 120, "text is dark, on white paper"
    page, asked = open_alone(browser, path, "dark")
    assert asked == [path.as_uri()]
    assert page.locator("svg").bounding_box() is not None
    page.context.close()
    return root


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_front_is_saved_as_a_picture(
    scheme: str, page: Page, browser: Browser, tmp_path: Path
) -> None:
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    recommended(page)
    drawn = page.locator(".point").count()
    button = page.get_by_role("button", name="SVG: the picture of the Pareto front")
    root = check_picture(saved(page, button, tmp_path), browser)
    titles = [one.text or "" for one in root.iter(f"{SVG}title")]
    assert sum(" depth " in one for one in titles) == drawn
    said = "".join(one.text or "" for one in root.iter(f"{SVG}text"))
    assert "power of drive and CPU [W]" in said
    assert "recommended" in said
    assert "extrapolated" in said
    expect(page.locator(".offscreen")).to_have_count(0)


def rows_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text("utf-8"))))


def test_the_front_is_saved_as_points(page: Page, tmp_path: Path) -> None:
    recommended(page)
    drawn = page.locator(".point").count()
    button = page.get_by_role("button", name="CSV: the points of the Pareto front")
    rows = rows_of(saved(page, button, tmp_path))
    assert len(rows) == drawn
    assert [one["role"] for one in rows].count("recommended") == 1
    for row in rows:
        for name in ("device_cpu_power_watts", "latency_p99_ns", "capacity_bytes_per_second"):
            low, value, high = (float(row[f"{name}{end}"]) for end in ("_low", "", "_high"))
            assert low <= value <= high
            assert row[f"{name}_evidence"]
        assert int(row["queue_depth"]) >= 1


def test_curves_and_power_law_are_saved(page: Page, browser: Browser, tmp_path: Path) -> None:
    page.goto(DRIVE)
    curves = saved(page, page.get_by_role("button", name="CSV: the points of the sat"), tmp_path)
    points = rows_of(curves)
    assert len(points) == 36
    assert {one["throughput_bytes_per_second_evidence"] for one in points} <= {
        "measured", "interpolated", "extrapolated",
    }  # fmt: skip
    law = page.get_by_role("button", name="CSV: the points of the power")
    rows = rows_of(saved(page, law, tmp_path))
    measured = [one for one in rows if one["kind"] == "measurement"]
    assert len(measured) == 77
    assert {one["evidence"] for one in measured} == {"measured"}
    lines = [one for one in rows if one["kind"] == "law"]
    assert {one["request_bytes"] for one in lines} == {"4096", "131072"}
    assert all(
        float(one["device_power_watts_low"]) < float(one["device_power_watts_high"])
        for one in lines
    )
    button = page.get_by_role("button", name="SVG: the picture of the power")
    root = check_picture(saved(page, button, tmp_path), browser)
    marks = [one for one in root.iter(f"{SVG}title") if (one.text or "").startswith("measured:")]
    assert len(marks) == 77


def test_the_power_law_follows_what_is_asked(page: Page) -> None:
    page.goto(DRIVE)
    part = page.get_by_role("region", name="Power by work")
    expect(part.get_by_text("77 measurements")).to_be_visible()
    part.get_by_label("Of", exact=True).select_option("write")
    expect(part.get_by_text("while it collects garbage")).to_be_visible()
    part.get_by_label("Across").select_option("operations_per_second")
    expect(part.locator(".axes")).to_contain_text("IOPS")
    part.get_by_text("The measurements as a table").click()
    expect(part.get_by_role("columnheader", name="Commands of")).to_be_visible()


def test_power_that_nobody_measured_says_what_it_rests_on(page: Page) -> None:
    page.goto("/ui/drives/wd-zn540")
    part = page.get_by_role("region", name="Power by work")
    legend = part.get_by_role("list", name="Evidence by shape of the marker")
    expect(legend.get_by_role("listitem")).to_contain_text("datasheet")
    expect(part.get_by_text("The measurements as a table")).to_have_count(0)


def test_budgets_are_saved(page: Page, browser: Browser, tmp_path: Path) -> None:
    page.goto("/ui/fleet")
    page.get_by_role("button", name="Take an example").click()
    page.get_by_role("button", name="Plan", exact=True).click()
    button = page.get_by_role("button", name="CSV: the points of what budgets buy for rack")
    rows = rows_of(saved(page, button, tmp_path))
    assert float(rows[0]["budget_watts"]) < float(rows[-1]["budget_watts"])
    assert "served_bytes_per_second" in rows[0]
    button = page.get_by_role("button", name="SVG: the picture of what budgets buy")
    check_picture(saved(page, button, tmp_path), browser)
    for name, kind in (("Save the plan's", "fleet plan"), ("Save the budgets'", "fleet frontier")):
        path = saved(page, page.get_by_role("button", name=name), tmp_path)
        assert data_of(path.read_text("utf-8"), path.name)["kind"] == kind
        check_opens_alone(browser, path, "rack")
