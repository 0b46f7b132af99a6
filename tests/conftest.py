"""What all tests share."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    """The folder of the checkout."""
    return ROOT


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in tests/bench asserts a time or memory budget, so it never runs beside others."""
    for item in items:
        if item.path.is_relative_to(ROOT / "tests" / "bench"):
            item.add_marker(pytest.mark.bench)
