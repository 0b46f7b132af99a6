"""Expiry and limits of keys as options of the command line, and as a table shows them."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from iojoule.api.state.callers import Limits

NONE = "none"
_SECONDS = {"h": 3600, "d": 86400, "w": 7 * 86400}
_BYTES = {"": 1, **{f"{unit}iB": 1 << 10 * power for power, unit in enumerate("KMGT", 1)}}

ExpiresOption = Annotated[
    str | None,
    typer.Option(
        metavar="WHEN", show_default=False,
        help="After a time (12h, 90d, 8w), or from a date on (2027-01-31, UTC); none: never.",
    ),
]  # fmt: skip
RateOption = Annotated[
    str | None,
    typer.Option(metavar="N", show_default=False, help="Requests a second; none: any."),
]
BurstOption = Annotated[
    str | None,
    typer.Option(metavar="N", show_default=False, help="Requests at once; none: of one second."),
]
JobsWaitingOption = Annotated[
    str | None,
    typer.Option(metavar="N", show_default=False, help="Jobs that may wait; none: any."),
]
BytesOption = Annotated[
    str | None,
    typer.Option(
        "--bytes", metavar="SIZE", show_default=False,
        help="Datasets and results kept, such as 500MiB; none: any.",
    ),
]  # fmt: skip
ComputeSecondsOption = Annotated[
    str | None,
    typer.Option(
        metavar="N", show_default=False, help="For which jobs may run, each day (UTC); none: any."
    ),
]


def stated(
    expires: str | None,
    rate: str | None,
    burst: str | None,
    jobs_waiting: str | None,
    bytes_: str | None,
    compute_seconds: str | None,
) -> dict[str, Any]:
    """The columns of a key that options state, with their values; `none` lifts one.

    Raises:
        BadParameter: A value is not what it must be; names the option.
    """
    given: tuple[tuple[str, str, str | None, Callable[[str, str], Any]], ...] = (
        ("expires_at", "--expires", expires, _moment),
        ("requests_per_second", "--rate", rate, _number),
        ("burst", "--burst", burst, _count),
        ("jobs_waiting_max", "--jobs-waiting", jobs_waiting, _count),
        ("stored_bytes_max", "--bytes", bytes_, _bytes),
        ("compute_seconds_max", "--compute-seconds", compute_seconds, _number),
    )
    values = {
        column: None if text == NONE else read(option, text)
        for column, option, text, read in given
        if text is not None
    }
    if "requests_per_second" in values and values["requests_per_second"] is None:
        values.setdefault("burst", None)
    return values


def refuse_burst_alone(rate: float | None, burst: int | None) -> None:
    """Return where a burst goes with a rate; raises BadParameter."""
    if burst is not None and rate is None:
        raise typer.BadParameter("--burst limits nothing without --rate; state both")


def _number(option: str, text: str) -> float:
    if not re.fullmatch(r"\d{1,9}(\.\d{1,6})?", text) or float(text) == 0:
        raise typer.BadParameter(f"{option} {text}: write a number above 0, or none")
    return float(text)


def _count(option: str, text: str) -> int:
    if not re.fullmatch(r"[1-9]\d{0,8}", text):
        raise typer.BadParameter(f"{option} {text}: write a whole number from 1 on, or none")
    return int(text)


def _bytes(option: str, text: str) -> int:
    form = re.fullmatch(r"([1-9]\d{0,14})([KMGT]iB)?", text)
    value = int(form[1]) * _BYTES[form[2] or ""] if form else 1 << 63
    if value >= 1 << 63:
        raise typer.BadParameter(f"{option} {text}: write bytes, KiB, MiB, GiB or TiB, or none")
    return value


def _moment(option: str, text: str) -> float:
    at = datetime.now(UTC)
    form = re.fullmatch(r"([1-9]\d{0,3})([hdw])", text)
    if form:
        return at.timestamp() + int(form[1]) * _SECONDS[form[2]]
    try:
        given = datetime.fromisoformat(text)
        given = given if given.tzinfo else given.replace(tzinfo=UTC)
    except ValueError:
        given = at
    if given <= at:
        raise typer.BadParameter(
            f"{option} {text}: write 12h, 90d, 8w, a date that is to come, or none"
        )
    return given.timestamp()


def limits_shown(limits: Limits) -> str | None:
    """All limits in one cell of a table."""
    rate, burst = limits.requests_per_second, limits.burst
    parts = (
        (rate, f"{rate:g}/s" if rate else ""),
        (burst, f"{burst} at once"),
        (limits.jobs_waiting_max, f"{limits.jobs_waiting_max} jobs"),
        (limits.stored_bytes_max, _size(limits.stored_bytes_max or 0)),
        (limits.compute_seconds_max, f"{limits.compute_seconds_max or 0:g} s a day"),
    )
    return ", ".join(text for value, text in parts if value is not None) or None


def _size(bytes_: int) -> str:
    fits = [(by, unit) for unit, by in _BYTES.items() if bytes_ % by == 0]
    by, unit = max(fits)
    return f"{bytes_ // by} {unit or 'B'}"
