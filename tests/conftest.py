"""What all tests share."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.cluster import Cluster
from tests.reference_data import MQSIM_RUNS

# No test judges elapsed time, and a loaded machine must not make one fail. In CI the same examples
# come every time, as in Hypothesis' own profile for it; elsewhere new ones do.
settings.register_profile(
    "iojoule",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=bool(os.environ.get("CI")),
)
settings.load_profile("iojoule")

# What somebody asks usually must not answer here.
for name in ("IOJOULE_SERVER", "IOJOULE_KEY"):
    os.environ.pop(name, None)

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    """The folder of the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def reference() -> Path:
    """The folder of MQSim's reference runs."""
    if not MQSIM_RUNS.is_dir():
        pytest.skip("MQSim's reference runs (../shared/mqsim) are not here")
    return MQSIM_RUNS


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark by place: budgets (tests/bench) run alone, whole programs and a browser are slow."""
    for item in items:
        in_a_browser = "browser" in getattr(item, "fixturenames", ())
        if item.path.is_relative_to(ROOT / "tests" / "bench"):
            item.add_marker(pytest.mark.bench)  # and nothing else: they judge elapsed time
        elif in_a_browser or item.path.is_relative_to(ROOT / "tests" / "end_to_end"):
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Without anything in it yet."""
    made = Cluster(tmp_path)
    yield made
    made.end()


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a scheduler with two workers."""
    made = Cluster(tmp_path_factory.mktemp("dask"))
    made.scheduler()
    made.worker()
    made.worker()
    made.wait_for_workers(2)
    yield made.address
    made.end()
