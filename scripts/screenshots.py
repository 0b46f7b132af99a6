"""Takes the pictures of docs/screens: every page of the service, wide and phone, light and dark.

Run by `make screenshots`; needs Debian's Chromium. The service runs on a free port of the loopback
and keeps its things in a folder of its own.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal
from urllib.parse import urlencode

from playwright.sync_api import Page, sync_playwright

TARGET = Path(__file__).parents[1] / "docs/screens"
INFEASIBLE = json.dumps(
    {
        "name": "strict",
        "workload": {"operation": "read", "demand_operations_per_second": 100000},
        "current": {"queue_depth": 8, "jobs": 8},
        "sla": {"latency_p99_ns_max": 20000},
    }
)
PLACES = {
    "first": "/ui/",
    "recommend": "/ui/",
    "what-if": "/ui/what-if",  # of the question before it
    "infeasible": f"/ui/?{urlencode({'device': 'samsung-980-pro-1tb', 'profile': INFEASIBLE})}",
    "fleet": "/ui/fleet",
    "drives": "/ui/drives",
    "compare": "/ui/drives?compare=samsung-980-pro-1tb,wd-zn540",
    "drive": "/ui/drives/samsung-980-pro-1tb",
    "power-law": "/ui/drives/samsung-980-pro-1tb",
    "report": "/ui/",
    "jobs": "/ui/jobs",
    "api": "/ui/api",
}
SIZES = {"wide": (1280, 900), "phone": (390, 844)}
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
CHROMIUM = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]


@contextmanager
def service() -> Iterator[str]:
    """The address of a service that runs meanwhile."""
    with tempfile.TemporaryDirectory() as state:
        program = "from iojoule.api.cli import main; main()"
        command = [sys.executable, "-c", program, "serve", "--port", "0", "--state", state]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
            try:
                for line in server.stderr or ():
                    if found := re.search(r"http://127\.0\.0\.1:\d+", line):
                        yield found[0]
                        break
                else:
                    raise SystemExit("the service did not start")
            finally:
                server.terminate()


def prepare(page: Page, name: str) -> None:
    """Bring a page into a state worth showing."""
    page.wait_for_load_state("networkidle")
    if name == "fleet":
        page.get_by_role("button", name="Take an example").click()
        page.get_by_role("button", name="Plan", exact=True).click()
        page.get_by_role("heading", name="Who does what").wait_for()
    elif name in ("recommend", "report"):
        page.get_by_role("button", name="Recommend", exact=True).click()
        page.locator("#headline").wait_for()
    if name == "what-if":
        page.get_by_label("Verdict").wait_for()
    elif name == "infeasible":
        page.locator(".headline.infeasible").wait_for()
    if name == "power-law":
        page.locator("#power-law").evaluate("(heading) => heading.scrollIntoView()")
    elif name == "report":
        with page.expect_download() as download:
            page.get_by_role("button", name="Save report").click()
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "report.html"
            download.value.save_as(report)
            page.goto(report.as_uri())


def main() -> None:
    """Write every picture."""
    path = shutil.which("chromium")
    if path is None:
        raise SystemExit("there is no chromium: apt-get install chromium")
    TARGET.mkdir(parents=True, exist_ok=True)
    with service() as base, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=CHROMIUM)
        for size, (width, height) in SIZES.items():
            for scheme in SCHEMES:
                context = browser.new_context(
                    base_url=base, color_scheme=scheme, viewport={"width": width, "height": height}
                )
                page = context.new_page()
                for name, place in PLACES.items():
                    page.goto(place)
                    prepare(page, name)
                    page.screenshot(
                        path=TARGET / f"{name}-{size}-{scheme}.jpg", type="jpeg", quality=60
                    )
                context.close()
        browser.close()


if __name__ == "__main__":
    main()
