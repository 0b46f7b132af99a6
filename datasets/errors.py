"""The errors of iojoule: one small hierarchy, each message says what, where and what to do.

The command line maps the classes to exit codes, the service to `application/problem+json`;
both read `exit_code` and `http_status` here so that one table serves both.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import ClassVar

MESSAGE_MAX = 2000
"""Characters of a message; of a longer one the middle is left out."""


class IojouleError(Exception):
    """Root of every error that iojoule raises on purpose.

    Args:
        message: What is wrong, where (file, line, field), and the remedy.
        field: Dotted path of the offending field, where there is one.

    Attributes:
        pointer: Where a service met it: JSON pointer (RFC 6901) of the field in the request.
        request_id: Likewise: by which the service's logs name the request.
    """

    exit_code: ClassVar[int] = 1
    http_status: ClassVar[int] = 500
    title: ClassVar[str] = "Internal error"

    pointer: str | None = None
    request_id: str | None = None

    def __init__(self, message: str, *, field: str | None = None) -> None:
        if len(message) > MESSAGE_MAX:  # it quotes a long input; its end has the remedy
            message = f"{message[: MESSAGE_MAX // 2]} [...] {message[-MESSAGE_MAX // 2 :]}"
        super().__init__(message)
        self.message = message
        self.field = field


class InputError(IojouleError):
    """A file, a value or an option is not what it must be."""

    exit_code = 3
    http_status = 422
    title = "Invalid input"


class UnknownDeviceError(InputError):
    """No SSD model of that name; the message names the closest ones."""

    exit_code = 4
    http_status = 404
    title = "Unknown device"


class NoProfileError(InputError):
    """The SSD model is known but nothing was fitted for it; the message says what to measure."""

    exit_code = 5
    http_status = 409
    title = "No device profile"


class SchemaVersionError(InputError):
    """A stored file was written by a newer (or unknown) version of the schema."""

    exit_code = 6
    http_status = 422
    title = "Unsupported schema version"


class InfeasibleError(IojouleError):
    """No configuration meets the SLA (raised only where an empty answer would be an error)."""

    exit_code = 7
    http_status = 422
    title = "Infeasible"


class SolverError(IojouleError):
    """A fleet plan's solver ended without an answer although there is one, or with a wrong one."""

    exit_code = 31
    title = "Optimisation failed"


class DataQualityError(InputError):
    """Measurements contradict themselves (Little's law, reported errors, partial files)."""

    exit_code = 8
    http_status = 422
    title = "Measurements fail a quality gate"


@contextmanager
def within(place: str) -> Iterator[None]:
    """Put the fields that errors name below `place`, a dotted path into what was asked."""
    try:
        yield
    except IojouleError as error:
        field = place if error.field is None else f"{place}.{error.field}"
        raise type(error)(error.message, field=field) from None


FAMILIAR_NAMES = {
    "bs": "request_bytes",
    "blocksize": "request_bytes",
    "block_size": "request_bytes",
    "iodepth": "queue_depth",
    "qd": "queue_depth",
    "numjobs": "jobs",
    "threads": "jobs",
    "ioengine": "engine",
    "rw": "operation",
    "readwrite": "operation",
    "rwmixread": "read_fraction",
    "hipri": "completion",
    "sqthread_poll": "submission_polling",
    "ioscheduler": "scheduler",
    "rate": "demand_bytes_per_second",
    "rate_iops": "demand_operations_per_second",
    "thinktime": "think_time_ns",
    "ps": "power_state",
    "p99": "latency_p99_ns_max",
    "p999": "latency_p999_ns_max",
}
"""What fio and its users call a field -> the field."""


def close_names(name: str, known: Iterable[str]) -> str:
    """A half-sentence that names what `name` was probably meant to be, or nothing.

    Known names may be paths, as `current.jobs`: their last part counts.
    """
    paths: dict[str, list[str]] = {}
    for path in known:
        paths.setdefault(path.rpartition(".")[2], []).append(path)
        if "." in name:
            paths.setdefault(path, []).append(path)
    familiar = FAMILIAR_NAMES.get(name.lower(), name)
    close = [familiar] if familiar in paths else difflib.get_close_matches(name, paths)
    meant = list(dict.fromkeys(path for each in close for path in paths[each]))
    meant.sort(key=lambda path: path.count("."))
    return f"; did you mean {' or '.join(meant[:3])}?" if meant else ""
