"""The page in a real Chromium, against the service in a thread of the tests."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, sync_playwright

from tests.api.http.conftest import service as service
from tests.api.http.conftest import store as store

ALONE = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
"""Chromium speaks to the service only, and runs as root in a container too."""


# Of a module: while it lives, a loop of asyncio runs in this thread, and tests begin their own.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium."""
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("there is no chromium; apt-get install chromium")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path, args=list(ALONE))
        yield found
        found.close()


@pytest.fixture
def context(browser: Browser, service: httpx.Client) -> Iterator[BrowserContext]:
    """A browser profile of its own, with the clipboard."""
    base = str(service.base_url)
    found = browser.new_context(base_url=base, viewport={"width": 1280, "height": 900})
    found.grant_permissions(["clipboard-read", "clipboard-write"], origin=base)
    yield found
    found.close()


def _is_complaint(said: ConsoleMessage) -> bool:
    refused = "responded with a status of 4" in said.text  # the page shows what was wrong
    return said.type in ("error", "warning") and not refused


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A page; whatever it complains about fails the test, refused by the policy or not."""
    complaints: list[str] = []
    found = context.new_page()
    found.on("pageerror", lambda error: complaints.append(str(error)))
    found.on(
        "console",
        lambda said: complaints.append(said.text) if _is_complaint(said) else None,
    )
    yield found
    assert not complaints
