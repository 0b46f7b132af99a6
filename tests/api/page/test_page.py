"""What somebody in front of the page sees and does."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from iojoule.api.state import api_keys
from iojoule.api.state.place import Place, State
from tests.api.http.conftest import serving

ROOT = Path(__file__).parents[3]
AXE = ROOT / "api/page/node_modules/axe-core/axe.min.js"
PLACES = (
    "/ui/",
    "/ui/what-if",
    "/ui/fleet",
    "/ui/drives",
    "/ui/drives/samsung-980-pro-1tb",
    "/ui/jobs",
    "/ui/api",
)
ANSWER = "the answer to the first question"


def answered(page: Page) -> None:
    """Wait until the last question is answered."""
    expect(page.locator(".answer")).to_have_attribute("aria-busy", "false")
    expect(page.locator("#headline")).to_be_visible()


def first_question(page: Page, address: str = "/ui/") -> None:
    """Ask what the first screen proposes."""
    page.goto(address)
    page.get_by_role("button", name="Recommend", exact=True).click()
    answered(page)


def go(page: Page, place: str) -> None:
    """Open one of `PLACES`, or the answer."""
    if place == ANSWER:
        first_question(page)
    else:
        page.goto(place)
    page.wait_for_load_state("networkidle")


def link(page: Page) -> str:
    """The address, which follows once nothing has changed for a quarter of a second."""
    page.wait_for_timeout(500)
    return page.url


def asked(page: Page) -> dict[str, object]:
    """The workload profile in the address."""
    query = parse_qs(urlsplit(link(page)).query)
    found: dict[str, object] = json.loads(query["profile"][0])
    return found


def test_nothing_is_answered_before_it_is_asked(page: Page) -> None:
    asked_for: list[str] = []
    page.on("request", lambda request: asked_for.append(urlsplit(request.url).path))
    page.goto("/ui/")
    page.wait_for_load_state("networkidle")
    for name in ("1. Drive", "2. Workload", "3. What runs today"):
        expect(page.get_by_role("group", name=name)).to_be_visible()
    expect(page.locator("#headline")).to_have_count(0)
    assert "/recommend" not in asked_for


def test_the_answer_is_on_the_first_screen_of_a_phone(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    first_question(page)
    box = page.locator(".headline .verdict").bounding_box()
    assert box
    assert box["y"] + box["height"] <= 844
    page.get_by_role("button", name="Change the question").click()
    expect(page.get_by_label("Model")).to_be_visible()


def test_navigation_back_and_reload_keep_the_question(page: Page) -> None:
    first_question(page)
    page.get_by_label("Queue depth").fill("32")
    page.get_by_label("Queue depth").blur()
    answered(page)
    asked_before = asked(page)
    page.get_by_role("link", name="Drives").click()
    expect(page).to_have_title("Drives - iojoule")
    page.go_back()
    answered(page)
    assert asked(page) == asked_before
    page.get_by_role("link", name="What if").click()
    expect(page.get_by_label("Then", exact=True)).to_contain_text("depth")
    assert asked(page) == asked_before
    page.get_by_role("link", name="Recommend").click()
    answered(page)
    page.get_by_role("link", name="Why").click()
    expect(page.locator("#headline")).to_be_attached()
    page.reload()
    answered(page)
    assert asked(page) == asked_before


def test_back_returns_from_the_answer_to_the_three_questions(page: Page) -> None:
    first_question(page)
    page.get_by_role("link", name="Apply").click()
    page.go_back()
    page.go_back()
    expect(page.get_by_role("button", name="Recommend", exact=True)).to_be_visible()
    expect(page.locator("#headline")).to_have_count(0)
    page.go_forward()
    answered(page)


@pytest.mark.parametrize("place", ["/ui/", "/ui/what-if"])
@pytest.mark.parametrize("profile", ["%7Bbroken", "%7B%22name%22:%22a%22%7D"])
def test_a_broken_link_is_an_error(page: Page, place: str, profile: str) -> None:
    page.goto(f"{place}?device=samsung-980-pro-1tb&profile={profile}")
    expect(page.get_by_role("alert")).to_contain_text("address")
    expect(page.locator("#headline")).to_have_count(0)


def test_saved_and_shipped_workload_files_are_read(page: Page, tmp_path: Path) -> None:
    page.goto("/ui/")
    page.get_by_label("From a file").set_input_files(ROOT / "examples/oltp.toml")
    expect(page.get_by_text("read from oltp.toml")).to_be_visible()
    page.get_by_role("button", name="Recommend", exact=True).click()
    answered(page)
    stated = asked(page)
    assert stated["name"] == "oltp"
    with page.expect_download() as download:
        page.get_by_role("button", name="Save the workload profile").click()
    kept = tmp_path / "kept.json"
    download.value.save_as(kept)
    page.goto("/ui/drives")
    page.goto("/ui/")
    page.get_by_label("From a file").set_input_files(kept)
    expect(page.get_by_text("read from kept.json")).to_be_visible()
    page.get_by_role("button", name="Recommend", exact=True).click()
    answered(page)
    assert asked(page) == stated


def test_drives_are_searched_and_compared_in_the_address(page: Page) -> None:
    page.goto("/ui/drives")
    rows = page.locator("tbody tr:has(input)")
    expect(page.get_by_role("status")).to_contain_text("select two to four")
    everything = rows.count()
    page.get_by_label("Search").fill("samsung")
    page.get_by_label("Known from").select_option("measured")
    page.get_by_role("checkbox").nth(0).check()
    page.get_by_role("checkbox").nth(1).check()
    comparison = page.get_by_label("Comparison")
    expect(comparison.get_by_role("columnheader")).to_have_count(3)
    page.goto(link(page))
    expect(comparison.get_by_role("columnheader")).to_have_count(3)
    assert 2 <= rows.count() < everything


def test_what_if_changes_the_drive(page: Page) -> None:
    page.goto("/ui/what-if")
    expect(page.get_by_label("Then", exact=True)).to_contain_text("depth")
    with page.expect_response("**/what-if") as answer:
        page.get_by_label("Drive", exact=True).select_option("wd-zn540")
    assert answer.value.status == 200
    assert answer.value.json()["changed"]["answer"]["device"] == "wd-zn540"


def test_a_preset_is_recommended_in_three_clicks(page: Page) -> None:
    first_question(page, "/")
    page.get_by_label("Kind").select_option("ycsb-c")
    expect(page.locator("#headline")).to_contain_text("Best configuration")
    answered(page)
    assert asked(page)["name"] == "ycsb-c"


def test_the_first_question_has_a_saving(page: Page) -> None:
    first_question(page, "/")
    expect(page.locator("#headline")).to_contain_text("expected")
    expect(page.locator(".headline .saving")).to_be_visible()


def test_the_front_moves_with_the_bound(page: Page) -> None:
    first_question(page)
    points = page.locator(".point.front")
    before = points.evaluate_all("all => all.map(one => one.outerHTML)")
    slider = page.get_by_role("slider", name="p99 latency at most")
    for _ in range(15):
        slider.press("ArrowLeft")
    expect(page.locator(".limit")).to_contain_text("SLA")
    for _ in range(50):
        if points.evaluate_all("all => all.map(one => one.outerHTML)") != before:
            break
        page.wait_for_timeout(100)
    else:
        raise AssertionError("the front is drawn as it was")
    sla = asked(page)["sla"]
    assert isinstance(sla, dict)
    assert sla["latency_p99_ns_max"] < 250e3
    expect(page.locator(".limit")).to_contain_text("SLA")


def test_a_bound_nobody_can_keep_shows_the_nearest_misses(page: Page) -> None:
    first_question(page)
    page.get_by_role("slider", name="p99 latency at most").press("Home")
    expect(page.locator("#headline")).to_have_text("No configuration keeps this SLA")
    expect(page.locator(".headline .facts")).to_contain_text("p99 latency")


def test_a_fio_job_file_becomes_the_workload(page: Page) -> None:
    first_question(page)
    page.get_by_label("From a file").set_input_files(ROOT / "examples/oltp.fio")
    expect(page.get_by_text("read from oltp.fio")).to_be_visible()
    answered(page)
    assert asked(page)["name"] == "oltp"
    expect(page.get_by_label("Demand", exact=True)).to_have_value("30000")


def test_a_buffered_job_asks_for_the_page_cache(page: Page, tmp_path: Path) -> None:
    job = tmp_path / "buffered.fio"
    job.write_text(
        "[job]\nrw=randread\ndirect=0\nsize=1g\nfilename=f\ntime_based\nrate_iops=9000\n"
    )
    first_question(page)
    page.get_by_label("From a file").set_input_files(job)
    expect(page.get_by_role("alert")).to_contain_text("page cache")
    cache = page.get_by_label("Page cache")
    for size, expected in (("2GiB", "nothing reaches the drive"), ("much", "not a size")):
        cache.fill(size)
        cache.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text(expected)
    cache.fill("512MiB")
    cache.press("Enter")
    expect(page.get_by_text("read from buffered.fio")).to_be_visible()
    answered(page)
    assert asked(page)["workload"]["demand_bytes_per_second"] == 4500 * 4096


def test_what_is_no_workload_says_why(page: Page, tmp_path: Path) -> None:
    odd = tmp_path / "odd.fio"
    odd.write_text("[job]\nrw=randtrim\nbs=4k\n")
    first_question(page)
    page.get_by_label("From a file").set_input_files(odd)
    expect(page.get_by_role("alert")).to_contain_text("rw=randtrim")


def test_commands_are_copied(page: Page) -> None:
    first_question(page)
    page.get_by_role("button", name="Copy the command that shows and sets it").click()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == "iojoule apply --recommendation answer.json --drive /dev/nvme0n1"


def test_a_link_asks_the_same_again(page: Page, context: BrowserContext) -> None:
    first_question(page)
    page.get_by_label("Queue depth").fill("32")
    page.get_by_label("Queue depth").blur()
    expect(page.locator(".headline .now")).to_contain_text("depth 32")
    other = context.new_page()
    other.goto(link(page))
    answered(other)
    expect(other.get_by_label("Queue depth")).to_have_value("32")
    assert other.locator("#headline").inner_text() == page.locator("#headline").inner_text()


def test_the_keyboard_reaches_everything(page: Page) -> None:
    first_question(page)
    reached = set()
    for _ in range(120):
        page.keyboard.press("Tab")
        reached.add(
            page.evaluate(
                "document.activeElement.getAttribute('aria-label')"
                " || document.activeElement.labels?.[0]?.textContent"
                " || document.activeElement.textContent"
            )
        )
    wanted = {"Skip to the content", "Drives", "Model", "Kind", "p99 latency at most"}
    assert wanted <= reached
    assert any(one.startswith("recommended: ") for one in reached if one)
    assert any(one.startswith("Copy ") for one in reached if one)


def test_two_answers_stand_side_by_side(page: Page) -> None:
    page.goto("/ui/what-if")
    expect(page.get_by_label("Then", exact=True)).to_contain_text("depth")
    page.get_by_label("Drives").fill("2")
    page.get_by_label("Drives").blur()
    expect(page.get_by_label("Then", exact=True)).to_contain_text("on each of 2 drives")


def test_a_fleet_has_its_budget_curve(page: Page) -> None:
    page.goto("/ui/fleet")
    page.get_by_role("button", name="Take an example").click()
    expect(page.get_by_label("Drives, row 1, Name")).to_have_value("shared")
    page.goto(link(page))
    page.get_by_role("button", name="Plan", exact=True).click()
    expect(page.get_by_label("Work that is served by power budget")).to_be_visible()
    expect(page.get_by_role("heading", name="Who does what")).to_be_visible()


def test_a_key_is_asked_for_where_one_is_wanted(
    browser: Browser, tmp_path: Path, page: Page
) -> None:
    store = State(Place.of(tmp_path))
    store.open()
    with store.database.write() as connection:  # a running service sees new keys a little later
        _, key = api_keys.create(connection, "browser", api_keys.Scope.READ)
    store.close()
    with serving(store, require_key=True) as client:
        other = browser.new_page(base_url=str(client.base_url))
        other.goto("/ui/")
        other.get_by_label("This service wants a key").fill(key)
        other.get_by_role("button", name="Use it").click()
        first_question(other)
        expect(other.get_by_label("This service wants a key")).to_have_count(0)
        other.close()


def test_a_job_is_followed_to_its_end(page: Page, service: httpx.Client) -> None:
    body = {"drive": "samsung-980-pro-1tb", "scenario": {"flows": [{"total_requests": 1000}]}}
    made = service.post("/simulations", json=body)
    assert made.status_code == 202, made.text
    page.goto("/ui/jobs")
    row = page.get_by_role("row").filter(has_text=made.json()["id"])
    expect(row).to_contain_text("queued")
    row.get_by_role("button", name="Cancel").click()
    expect(row).to_contain_text("cancelled")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("place", [*PLACES, ANSWER])
def test_axe_finds_nothing_serious(page: Page, place: str, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    go(page, place)
    page.evaluate(AXE.read_text())  # not as an element: the policy would refuse it
    found = page.evaluate("axe.run()")
    serious = [
        (one["id"], [node["html"][:120] for node in one["nodes"]])
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
    ]
    assert not serious


def test_a_phone_needs_no_sideways_scrolling(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    for place in (*PLACES, ANSWER):
        go(page, place)
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 390, place


def test_the_first_view_is_small_on_the_wire(page: Page) -> None:
    session = page.context.new_cdp_session(page)
    received: list[float] = []
    session.on("Network.loadingFinished", lambda event: received.append(event["encodedDataLength"]))
    session.send("Network.enable")
    page.goto("/ui/")
    page.wait_for_load_state("networkidle")
    assert 20e3 < sum(received) <= 150e3
