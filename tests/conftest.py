"""What all tests share."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# No test judges elapsed time, and a loaded machine must not make one fail. In CI the same examples
# come every time, as in Hypothesis' own profile for it; elsewhere new ones do.
settings.register_profile(
    "iojoule",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=bool(os.environ.get("CI")),
)
settings.load_profile("iojoule")

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
