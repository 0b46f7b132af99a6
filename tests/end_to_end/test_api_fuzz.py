"""Requests by the thousand, made from the service's own description, right ones and wrong ones."""

import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.end_to_end.api_fuzz import fuzz
from tests.end_to_end.served import Served
from tests.postgresql import PostgresqlServer, programs

SEED = 20_261_122


@pytest.fixture
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    """A service with a worker and nothing kept; SQLite, unless a test names another database."""
    if getattr(request, "param", "sqlite") == "sqlite":
        with Served(tmp_path / "state") as one:
            yield one
        return
    if programs() is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    server = PostgresqlServer()
    try:
        with Served(tmp_path / "state", "--database", server.new_database()) as one:
            yield one
    finally:
        server.delete()


def operations(served: Served) -> int:
    paths = httpx.get(f"{served.url}/openapi.json", trust_env=False).json()["paths"]
    return sum(len(methods) for methods in paths.values())


def still_well(served: Served) -> None:
    with httpx.Client(base_url=served.url, timeout=60, trust_env=False) as client:
        assert client.get("/readyz").is_success
        assert client.get("/devices").is_success
    assert "Traceback" not in served.log()


def test_some_hundred_requests_find_no_fault(served: Served, tmp_path: Path) -> None:
    found = fuzz(served.url, tmp_path, seed=SEED, examples=10, phases="examples,fuzzing")
    sys.stdout.write(f"{found}\n")
    assert not found.failures, "\n".join(found.failures[:20])
    assert len(found.cases) == operations(served)
    assert found.cases.total() > 300
    still_well(served)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("served", "seed"), [("sqlite", SEED), ("postgresql", 7)], indirect=["served"]
)
def test_thousands_of_requests_find_no_fault(served: Served, tmp_path: Path, seed: int) -> None:
    found = fuzz(
        served.url, tmp_path, seed=seed, examples=60, phases="examples,coverage,fuzzing,stateful"
    )
    sys.stdout.write(f"{found}\n")
    assert not found.failures, "\n".join(found.failures[:20])
    assert found.cases.total() >= 5000
    assert not [status for status in found.statuses if status >= 500]
    still_well(served)
