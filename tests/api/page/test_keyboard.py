"""From an uploaded workload to a plan that is applied, by keyboard alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from iojoule.api.acting import applying
from iojoule.api.acting.answer_file import read_answer
from iojoule.api.acting.applying import apply
from iojoule.api.acting.proposal import propose
from iojoule.measure.campaign.rig import DriveFacts
from iojoule.measure.host import host_files
from tests.api.acting.hosts import host, values, write
from tests.settable import Below

WORKLOAD = """
name = "uploaded"
[workload]
operation = "read"
useful_request_bytes = 4096
demand_operations_per_second = 100000
[current]
engine = "io_uring"
completion = "polled"
queue_depth = 8
jobs = 8
scheduler = "mq-deadline"
[free]
scheduler = "all"
queue_depth = "all"
jobs = "all"
completion = "all"
[sla]
latency_p99_ns_max = 2000000
"""

FOCUSED = (
    "[document.activeElement.getAttribute('aria-label'),"
    " ...[...(document.activeElement.labels ?? [])].map((label) => label.textContent),"
    " document.activeElement.textContent].filter(Boolean)"
)


@pytest.fixture
def drive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DriveFacts:
    """A Samsung 980 PRO with mq-deadline, below a folder whose files may be set."""
    for name in ("SETTABLE", "OWN"):
        monkeypatch.setattr(host_files, name, (*getattr(host_files, name), Below(tmp_path, "*")))
    monkeypatch.setenv("IOJOULE_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("IOJOULE_JOURNALS", str(tmp_path / "state"))
    monkeypatch.setattr(applying, "wake", lambda _: None)
    found = host(tmp_path / "sys")
    device = tmp_path / "sys/class/block/nvme0n1/device"
    write(device, model="Samsung SSD 980 PRO 1TB")
    monkeypatch.setattr(applying, "inspect_drive", lambda drive, controller: (found, None))
    return found


def tab_to(page: Page, name: str) -> None:
    """Step with the Tab key until what has this name has the focus."""
    for _ in range(150):
        page.keyboard.press("Tab")
        if name in page.evaluate(FOCUSED):
            return
    raise AssertionError(f"the Tab key does not reach {name!r}")


def test_from_upload_to_an_applied_plan_by_keyboard_alone(
    page: Page, tmp_path: Path, drive: DriveFacts
) -> None:
    workload = tmp_path / "uploaded.toml"
    workload.write_text(WORKLOAD)
    # told only at the key, the browser may not ask the test for files yet
    page.on("filechooser", lambda _: None)
    page.goto("/ui/")
    tab_to(page, "From a file")
    with page.expect_file_chooser() as chooser:
        page.keyboard.press("Space")
    chooser.value.set_files(workload)
    expect(page.get_by_text("read from uploaded.toml")).to_be_visible()
    tab_to(page, "Recommend")
    page.keyboard.press("Enter")
    expect(page.locator("#headline")).to_contain_text("Change")
    expect(page.get_by_role("region", name="The answer")).to_be_focused()
    tab_to(page, "Save this answer")
    with page.expect_download() as download:
        page.keyboard.press("Enter")
    saved = tmp_path / "answer.json"
    download.value.save_as(saved)
    tab_to(page, "Copy the command that shows and sets it")
    page.keyboard.press("Enter")
    assert "answer.json" in page.evaluate("navigator.clipboard.readText()")

    proposal = propose(read_answer(saved), drive, None)
    apply(proposal, proposal.steps, None, tmp_path / "undo.json", lambda _: None)
    now = values(tmp_path / "sys")
    assert now["class/block/nvme0n1/queue/scheduler"].startswith("none")
