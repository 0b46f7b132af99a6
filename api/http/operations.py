"""Every operation of the service: the scope it needs and its lane."""

from __future__ import annotations

import re
from dataclasses import dataclass

from starlette.routing import compile_path

from iojoule.api.state.api_keys import Scope


@dataclass(frozen=True)
class Lane:
    """Operations that share a limit of requests in progress, as each holds a resource.

    Attributes:
        name: Of the metrics.
        requests_max: Requests in progress at the same time; more are rejected with 429.
    """

    name: str
    requests_max: int


COMPUTE = Lane("compute", 64)
"""Hold their request and, two at a time, the arrays of all candidates."""

UPLOAD = Lane("upload", 8)
"""Hold a file of up to 64 MiB on the disk and, two at a time, 3 GiB of memory."""

FOLLOW = Lane("follow", 256)
"""Hold a connection, and read the job from the database a few times a second."""

OTHER = Lane("other", 256)
"""Hold their response until the client has read it."""

LANES = (COMPUTE, UPLOAD, FOLLOW, OTHER)


@dataclass(frozen=True)
class Operation:
    """What an operation needs.

    Attributes:
        scope: Of the key; None: no key is needed.
        lane: None: no limit, for probes of the service.
    """

    scope: Scope | None
    lane: Lane | None = OTHER


_OPEN, _PROBE = Operation(None), Operation(None, None)
_READ, _COMPUTE = Operation(Scope.READ), Operation(Scope.READ, COMPUTE)
_WRITE, _ADMIN = Operation(Scope.WRITE), Operation(Scope.ADMIN)

OPERATIONS: dict[tuple[str, str], Operation] = {
    ("GET", "/"): _OPEN,
    ("GET", "/ui/{place:path}"): _OPEN,  # the page is public; its data need a key
    ("GET", "/openapi.json"): _OPEN,
    ("GET", "/healthz"): _PROBE,
    ("GET", "/readyz"): _PROBE,
    ("GET", "/metrics"): _READ,
    ("GET", "/audit"): _ADMIN,
    ("POST", "/recommend"): _COMPUTE,
    ("POST", "/predict"): _COMPUTE,
    ("POST", "/what-if"): _COMPUTE,
    ("POST", "/fleet"): _COMPUTE,
    ("POST", "/fleet/plan"): _COMPUTE,
    ("POST", "/fleet/frontier"): _COMPUTE,
    ("POST", "/workloads"): _COMPUTE,
    ("GET", "/workloads/presets"): _READ,
    ("GET", "/devices"): _READ,
    ("GET", "/devices/{id}"): _READ,
    ("GET", "/devices/{id}/power-law"): _READ,
    ("GET", "/devices/{id}/model-card"): _COMPUTE,  # drawn at the first request
    ("GET", "/devices/{id}/profiles"): _READ,
    ("GET", "/devices/{id}/profiles/current"): _READ,
    ("PUT", "/devices/{id}/profiles/current"): _ADMIN,  # changes every recommendation
    ("GET", "/devices/{id}/profiles/{version}"): _READ,
    ("GET", "/devices/{id}/calibrations"): _READ,
    ("POST", "/devices/{id}/calibrations"): _ADMIN,  # likewise, once the job is done
    ("GET", "/datasets"): _READ,
    ("POST", "/datasets"): Operation(Scope.WRITE, UPLOAD),
    ("GET", "/datasets/{id}"): _READ,
    ("PATCH", "/datasets/{id}"): _WRITE,
    ("DELETE", "/datasets/{id}"): _WRITE,
    ("GET", "/datasets/{id}/data"): _READ,
    ("GET", "/datasets/{id}/sidecar"): _READ,
    ("GET", "/simulations"): _READ,
    ("POST", "/simulations"): Operation(Scope.WRITE, COMPUTE),  # checked before it is queued
    ("GET", "/jobs"): _READ,
    ("GET", "/jobs/{id}"): _READ,
    ("PATCH", "/jobs/{id}"): _WRITE,
    ("DELETE", "/jobs/{id}"): _WRITE,
    ("GET", "/jobs/{id}/result"): _READ,
    ("GET", "/jobs/{id}/events"): Operation(Scope.READ, FOLLOW),
    ("POST", "/jobs/{id}/cancel"): _WRITE,
}
"""Method and path -> what it needs. A path that is not listed needs scope admin."""

_PATTERNS: list[tuple[str, re.Pattern[str], str]] = [
    (method, compile_path(path)[0], path) for method, path in OPERATIONS
]


def route_of(method: str, path: str) -> str | None:
    """The path of an operation as OPERATIONS has it; None: there is no such operation."""
    method = "GET" if method == "HEAD" else method
    for known, pattern, template in _PATTERNS:
        if method == known and pattern.match(path):
            return template
    return None


def needed(method: str, route: str | None) -> Operation:
    """What an operation needs, by its path as `route_of` gives it."""
    method = "GET" if method == "HEAD" else method
    return _ADMIN if route is None else OPERATIONS[method, route]


def methods_at(path: str) -> list[str]:
    """The methods that a path knows."""
    methods = {method for method, pattern, _ in _PATTERNS if pattern.match(path)}
    return sorted(methods | ({"HEAD"} if knows_head(path) else set()))


def knows_head(path: str) -> bool:
    """Whether HEAD is answered as GET: wherever GET is and its answer ends by itself."""
    route = route_of("GET", path)
    return route is not None and needed("GET", route).lane is not FOLLOW
