"""JSON documents from a measuring device's web server: GET only, always with a time-out."""

from __future__ import annotations

import base64
import http.client
import json
import os
import ssl
import time
from typing import Any
from urllib.parse import urlsplit

from iojoule.measure.errors import SensorError

TIMEOUT_SECONDS = 3.0
MAXIMUM_BYTES = 1 << 20


class JsonServer:
    """One server, with a persistent connection; `http://` may be left out of the URL.

    Basic authentication takes user and password from environment variables; `verify` requires a
    trusted certificate. Raises SensorError if it is no such address.
    """

    def __init__(
        self, url: str, user_variable: str, password_variable: str, *, verify: bool = True
    ) -> None:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/"):
            raise SensorError(f"{url!r} is not a server's address such as http://pdu.example:80")
        self.url = f"{parts.scheme}://{parts.netloc}"
        self._variables = (user_variable, password_variable)
        self._secure = parts.scheme == "https"
        self._address = (parts.hostname, _port(url, parts))
        self._context = ssl.create_default_context() if self._secure else None
        if self._context is not None and not verify:
            self._context.check_hostname = False
            self._context.verify_mode = ssl.CERT_NONE
        self._connection: http.client.HTTPConnection | None = None

    def get(self, path: str) -> Any:
        """The document at a path. Raises SensorError if it cannot be read or is not JSON."""
        try:
            status, body = self._request(path)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise SensorError(
                f"{self.url}{path} does not answer ({str(error) or type(error).__name__}): check "
                "the address, and that its web interface is switched on"
            ) from error
        if status in (401, 403):
            raise SensorError(
                f"{self.url}{path} wants another user: put name and password into the environment "
                f"as {self._variables[0]} and {self._variables[1]}"
            )
        if status != http.client.OK:
            raise SensorError(f"{self.url}{path} answers with status {status}")
        try:
            return json.loads(body)
        except ValueError as error:
            raise SensorError(f"{self.url}{path} answers with something else than JSON") from error

    def close(self) -> None:
        """End the connection; the next request opens a new one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _request(self, path: str) -> tuple[int, bytes]:
        # a device may have closed the connection since the last request
        for fresh in (self._connection is None, True):
            try:
                if self._connection is None:
                    self._connection = self._connect()
                self._connection.request("GET", path, headers=self._headers())
                with self._connection.getresponse() as response:
                    return response.status, _body(response)
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
                self.close()
                if fresh:
                    raise
        raise AssertionError("unreachable")

    def _connect(self) -> http.client.HTTPConnection:
        host, port = self._address
        if self._secure:
            return http.client.HTTPSConnection(
                host, port, timeout=TIMEOUT_SECONDS, context=self._context
            )
        return http.client.HTTPConnection(host, port, timeout=TIMEOUT_SECONDS)

    def _headers(self) -> dict[str, str]:
        user, password = (os.environ.get(variable) for variable in self._variables)
        headers = {"Accept": "application/json"}
        if user:
            token = base64.b64encode(f"{user}:{password or ''}".encode()).decode()
            headers["Authorization"] = f"Basic {token}"
        return headers


def _body(response: http.client.HTTPResponse) -> bytes:
    """All of it; raises TimeoutError if it comes a little at a time, each of which is in time."""
    body, until = b"", time.monotonic() + TIMEOUT_SECONDS
    while len(body) < MAXIMUM_BYTES and (piece := response.read1(MAXIMUM_BYTES - len(body))):
        body += piece
        if time.monotonic() > until:
            raise TimeoutError(f"its answer takes longer than {TIMEOUT_SECONDS:g} s")
    return body


def _port(url: str, parts: Any) -> int | None:
    try:
        port: int | None = parts.port
    except ValueError as error:
        raise SensorError(f"{url!r}: the port is not a number up to 65535") from error
    return port
