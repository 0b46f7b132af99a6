"""Asks a service from Python, with the service's own types."""

from __future__ import annotations

from typing import Self

from iojoule.api.client.kept import Audit, Datasets, Jobs, Profiles
from iojoule.api.client.questions import Questions


class Client(Questions, Datasets, Jobs, Profiles, Audit):
    """A service, one method an operation; may be shared by threads.

    Answers are the models that the service itself answers with. Problems are raised as the errors
    that the service met, with the field (`field`, `pointer`) and the request (`request_id`). What
    fails for the moment is asked again, and is done once however often it was sent.

    Args:
        server: Its address, such as `http://127.0.0.1:8080`; None takes `$IOJOULE_SERVER`.
        key: Of those who may use it; None takes `$IOJOULE_KEY`, where there is one.
        retries: How often a request is sent again when the connection breaks or the service is
            busy (429) or away (503); it waits as long as the service says, or longer each time.
        timeout_seconds: How long an answer may take.

    Raises:
        InputError: The address is none, or there is none.
    """

    def __init__(
        self,
        server: str | None = None,
        *,
        key: str | None = None,
        retries: int = 5,
        timeout_seconds: float = 120.0,
    ) -> None:
        from iojoule.api.client.connection import Connection  # takes most of the import's time

        self._connection = Connection(server, key, retries=retries, timeout_seconds=timeout_seconds)

    @property
    def server(self) -> str:
        """Address of the service."""
        return self._connection.server

    def close(self) -> None:
        """Close the connections that are kept open."""
        self._connection.http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ended: object) -> None:
        self.close()
