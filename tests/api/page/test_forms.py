"""What somebody types, pastes and uploads: kept in the address, checked at the field."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Page, Route, expect

from tests.api.page.test_page import ROOT, answered, first_question, link


def paste(page: Page, label: str, text: str) -> None:
    """Paste into a field, as a spreadsheet does."""
    page.get_by_label(label, exact=True).evaluate(
        """(field, text) => {
          const data = new DataTransfer();
          data.setData("text/plain", text);
          field.dispatchEvent(new ClipboardEvent("paste",
            { clipboardData: data, bubbles: true, cancelable: true }));
        }""",
        text,
    )


def plan(page: Page) -> None:
    page.get_by_role("button", name="Plan", exact=True).click()


def test_rows_of_a_spreadsheet_become_a_fleet_whose_plan_a_link_shows(page: Page) -> None:
    page.goto("/ui/fleet")
    paste(
        page,
        "Power domains, row 1, Name",
        "Name\tFed by\tLimit, W\tOther load, W\nr1\t\t900\t100\n",
    )
    paste(
        page,
        "Drives, row 1, Name",
        "a\tsamsung-980-pro-1tb\t6\tr1\tkv\nb\tsamsung-980-pro-1tb\t4\tr1\tkv\n",
    )
    paste(page, "Classes of work, row 1, Name", "kv\t900\tread\t\t4096\t2000\tyes\n")
    plan(page)
    expect(page.get_by_role("heading", name="Who does what")).to_be_visible()
    fleet = json.loads(parse_qs(urlsplit(link(page)).query)["fleet"][0])
    assert [group["count"] for group in fleet["drives"]] == [6, 4]
    assert fleet["classes"][0]["demand_bytes_per_second"] == 900e6
    assert fleet["classes"][0]["workload"]["sla"]["latency_p99_ns_max"] == 2e6
    page.reload()
    expect(page.get_by_role("heading", name="Who does what")).to_be_visible()
    expect(page.get_by_label("Drives, row 2, Drives", exact=True)).to_have_value("4")


def test_a_drive_without_facts_of_its_own_is_not_offered_among_those_with(page: Page) -> None:
    page.goto("/ui/")
    groups = page.get_by_label("Model").locator("optgroup")
    expect(groups.last).to_have_attribute("label", "Only when measured")
    expect(groups.last.locator("option")).to_have_text(["Oracle VirtualBox NVMe (emulated)"])


def test_a_rejected_cell_says_why_and_the_old_plan_is_gone(page: Page) -> None:
    page.goto("/ui/fleet")
    page.get_by_role("button", name="Take an example").click()
    count = page.get_by_label("Drives, row 1, Drives", exact=True)
    expect(count).to_have_value("20")
    plan(page)
    expect(page.get_by_role("heading", name="Who does what")).to_be_visible()
    count.fill("many")
    plan(page)
    expect(count).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_role("heading", name="Who does what")).to_have_count(0)


def test_a_fleet_file_of_the_command_line_is_opened(page: Page, tmp_path: Path) -> None:
    page.goto("/ui/fleet")
    page.get_by_label("Open a fleet file").set_input_files(ROOT / "examples/fleet.toml")
    expect(page.get_by_label("Power domains, row 3, Name", exact=True)).to_have_value("rack-2")
    expect(page.get_by_label("Drives, row 1, Drives", exact=True)).to_have_value("160")
    other = tmp_path / "other.toml"
    other.write_text('[[class]]\nname = "a"\nworkload = "/etc/hostname"\n')
    page.get_by_label("Open a fleet file").set_input_files(other)
    expect(page.get_by_role("alert")).to_contain_text("other.toml")


def test_a_fleet_that_cannot_be_read_is_said(page: Page) -> None:
    page.goto("/ui/fleet?fleet=%7Bbroken")
    expect(page.get_by_role("alert")).to_contain_text("address")


def test_an_error_stands_at_the_field_in_words(page: Page) -> None:
    first_question(page)
    field = page.get_by_label("Request, bytes")
    field.fill("100")
    field.blur()
    expect(field).to_have_attribute("aria-invalid", "true")
    said = page.locator(f"[id='{field.get_attribute('aria-describedby')}']")
    expect(said).to_contain_text("multiple of 512")
    assert "/" not in page.get_by_role("alert").inner_text()
    expect(page.locator("#headline")).to_have_count(0)


def test_a_failed_what_if_leaves_no_old_answer(page: Page) -> None:
    page.goto("/ui/what-if")
    expect(page.get_by_label("Then", exact=True)).to_contain_text("depth")
    drives = page.get_by_label("Drives", exact=True)
    drives.fill("-1")
    drives.blur()
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.get_by_label("Then", exact=True)).to_have_count(0)
    page.goto("/ui/what-if?changes=%5B")
    expect(page.get_by_role("alert")).to_contain_text("address")


def test_answers_of_equal_rank_say_what_would_change_them(page: Page) -> None:
    first_question(page)
    page.get_by_role("slider", name="p99 latency at most").press("Home")
    card = page.locator(".headline")
    expect(card).to_have_class("headline infeasible")
    expect(card).to_contain_text("What would change this")
    page.get_by_label("bound p99 latency at most").uncheck()
    page.get_by_label("Queue depth").fill("16")
    page.get_by_label("Jobs", exact=True).fill("1")
    page.get_by_label("Engine").select_option("io_uring")
    answered(page)
    expect(card).to_contain_text("Next")


def test_the_saving_is_stated_in_money_where_there_is_a_price(page: Page) -> None:
    first_question(page)
    expect(page.locator(".saved")).not_to_contain_text("EUR")
    page.get_by_label("Price per kWh").fill("0.3")
    page.get_by_label("g CO2 per kWh").fill("350")
    page.get_by_label("PUE", exact=True).click()
    expect(page.locator(".saved")).to_contain_text("EUR")
    expect(page.locator(".saved")).to_contain_text("kg CO2")


def test_what_is_being_typed_stays_while_an_answer_arrives(page: Page) -> None:
    first_question(page)
    held: list[Route] = []
    page.route("**/recommend", lambda route: held.append(route), times=1)
    with page.expect_request("**/recommend"):
        page.get_by_label("Price per kWh").fill("0.3")
        page.get_by_label("g CO2 per kWh").fill("350")
        page.get_by_label("Currency").fill("CHF")
    while not held:
        page.wait_for_timeout(20)
    held[0].continue_()
    answered(page)
    expect(page.get_by_label("Currency")).to_have_value("CHF")
    page.get_by_label("Currency").blur()
    expect(page.locator(".saved")).to_contain_text("CHF")


def test_the_answer_is_stated_in_settings_of_a_database(page: Page) -> None:
    page.goto("/ui/")
    page.get_by_label("Application").select_option("postgresql")
    page.get_by_role("button", name="Recommend", exact=True).click()
    answered(page)
    expect(page.get_by_role("heading", name="PostgreSQL")).to_be_visible()
    assert parse_qs(urlsplit(link(page)).query)["settings"] == ["postgresql"]
    version = page.get_by_label("Version")
    version.fill("17")
    version.blur()
    expect(page.get_by_role("heading", name="PostgreSQL 17")).to_be_visible()


def test_a_folder_is_read_as_a_folder_and_what_is_left_out_is_listed(
    page: Page, tmp_path: Path
) -> None:
    folder = tmp_path / "results"
    shutil.copytree(ROOT / "tests/datasets/fio", folder / "monday")
    (folder / "notes.txt").write_text("bought on Monday\n")
    page.goto("/ui/jobs")
    page.get_by_label("or a folder").set_input_files(folder)
    expect(page.get_by_role("status")).to_contain_text("10 rows were taken")
    said = page.get_by_role("alert")
    expect(said).to_contain_text("notes.txt: not fio")
    expect(said).to_contain_text("failed.json")
    expect(page.get_by_role("button", name="Calibrate")).to_be_enabled()


def test_a_folder_without_results_is_refused(page: Page, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    (folder / "notes.txt").write_text("bought on Monday\n")
    page.goto("/ui/jobs")
    page.get_by_label("or a folder").set_input_files(folder)
    expect(page.get_by_role("alert")).to_contain_text("the archive: no")
    expect(page.get_by_role("button", name="Calibrate")).to_be_disabled()
