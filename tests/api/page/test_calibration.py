"""A calibration, from uploaded runs to the profile that answers, followed on the page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect

from iojoule.datasets.provenance import Provenance
from iojoule.datasets.store import Dataset, write_dataset
from tests.service import ServiceProcess
from tests.sim.calibration.hidden import HIDDEN, measured

DEVICE = "samsung-980-pro-1tb"
CALIBRATION = {
    "drive": DEVICE,
    "parameters": ["page_read_ns", "command_latency_ns", "command_occupancy_ns"],
    "rounds": 4,
    "designs": 100,
    "tables": False,
}
# Kept from the beginning, for a fast machine is done before anybody could look.
KEEP_BARS = """window.bars = [];
setInterval(() => document.querySelectorAll('progress').forEach(bar => bars.push(bar.value)), 20)"""
A_MINUTE_MS = 240_000  # a minute where nobody else computes


@pytest.fixture
def service(tmp_path: Path) -> Iterator[httpx.Client]:
    """A service with a worker, which nobody else asks."""
    process = ServiceProcess(tmp_path / "state")
    with httpx.Client(base_url=process.url, timeout=60, trust_env=False) as client:
        yield client
    process.stop()


def test_a_running_calibration_is_followed_to_its_end(
    page: Page, service: httpx.Client, tmp_path: Path
) -> None:
    rows = measured(HIDDEN, (4096, 16384, 65536), (1, 4, 16))
    write_dataset(Dataset.from_measurements(rows, Provenance(importer="test")), tmp_path / "runs")
    page.goto("/ui/jobs")
    page.get_by_label("Files").set_input_files(tmp_path / "runs.parquet")
    expect(page.get_by_role("button", name="Calibrate")).to_be_enabled()
    (dataset,) = service.get("/datasets").json()["datasets"]
    assert dataset["rows"] == len(rows)
    made = service.post(
        f"/devices/{DEVICE}/calibrations", json=CALIBRATION | {"datasets": [dataset["id"]]}
    )
    assert made.status_code == 202, made.text

    page.add_init_script(KEEP_BARS)
    page.reload()
    row = page.get_by_role("row").filter(has_text=made.json()["id"])
    expect(row).to_contain_text("done", timeout=A_MINUTE_MS)
    assert any(0 < value < 1 for value in page.evaluate("bars"))
    expect(row.get_by_role("button", name="Save JSON")).to_be_visible()
    expect(row.get_by_role("button", name="Cancel")).to_have_count(0)
    current = service.get(f"/devices/{DEVICE}/profiles/current").json()
    assert current["version"] == 1
