"""Whether a request comes from a page of a stranger, as a browser says of every request."""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from iojoule.api.http.operations import COMPUTE, Operation
from iojoule.api.state.errors import StrangerError, WrongHostError

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that write nothing (RFC 9110, 9.2.1)."""


def refuse_wrong_host(headers: Headers, hosts: Collection[str]) -> None:
    """Return where a request is for one of these hosts; raises WrongHostError."""
    if host_of(headers.get("host", "")) not in hosts:
        raise WrongHostError(
            "the service does not answer under this name; start it with `iojoule serve "
            "--allow-host NAME`, and without keys ask localhost"
        )


def refuse_strangers(
    method: str, operation: Operation, headers: Headers, hosts: Collection[str]
) -> None:
    """Return where a request only reads, or no page of another host had a browser send it.

    Programs send neither header and pass; a browser sends them whatever the page says.

    Raises:
        StrangerError: It computes or writes, and comes from elsewhere.
    """
    if method in SAFE and operation.lane is not COMPUTE:
        return
    site = headers.get("sec-fetch-site", "none").strip().lower()
    origins = headers.getlist("origin")
    ours = all(_host_of_origin(one) in hosts for one in origins)
    if site == "cross-site" or not ours or (site == "same-site" and not origins):
        raise StrangerError(
            "a page of another host asks; open the service's own page, or name its host with "
            "`iojoule serve --allow-host NAME`"
        )


def host_of(host: str) -> str:
    """The name of a Host header field, without its port."""
    name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
    return name.lower()


def _host_of_origin(origin: str) -> str | None:
    try:
        parts = urlsplit(origin.strip())
    except ValueError:
        return None
    return host_of(parts.netloc) if parts.scheme in ("http", "https") else None
