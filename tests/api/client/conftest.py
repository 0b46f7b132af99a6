"""A service in a process of its own, clients of it, and what can happen between them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from iojoule.api.client import Client
from iojoule.api.client import connection as connections
from tests.api.client.between import Between, between
from tests.service import ServiceProcess


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What would be waited before asking again, s, without waiting for it."""
    waited: list[float] = []
    monkeypatch.setattr(connections, "sleep", waited.append)
    return waited


@pytest.fixture
def client(served: ServiceProcess) -> Iterator[Client]:
    """A client of the service."""
    with Client(served.url) as one:
        yield one


@pytest.fixture
def middle(served: ServiceProcess) -> Iterator[Between]:
    """What stands between service and client."""
    with between(lambda: served.url) as one:
        yield one


@pytest.fixture
def far(middle: Between) -> Iterator[Client]:
    """A client whose requests pass through there."""
    with Client(middle.url) as one:
        yield one
