"""A distribution of request sizes as the one text of the schema, `bytes/percent:...`."""

from __future__ import annotations

from collections.abc import Mapping

from iojoule.datasets.errors import InputError
from iojoule.datasets.schema import DIGITS_MAX

LEAST_BYTES = 512

MEAN_WITHIN = 0.1
"""The sizes that are listed stand for all where their mean is within so much of that of all."""

MOST = 12
"""Sizes that are listed; rarer ones are left out."""


def shares_of(text: str) -> dict[int, float]:
    """Size in bytes -> share of the requests, of `bytes/percent:...`; shares add up to 1.

    Raises:
        InputError: A size that a drive cannot serve, or percentages that add up to nothing.
    """
    found: dict[int, float] = {}
    for entry in text.split(":"):
        size, _, percent = entry.partition("/")
        if max(len(size), len(percent)) > DIGITS_MAX:
            raise InputError(
                f"request_bytes_mix: a number of more than {DIGITS_MAX} digits is no size and no "
                "percentage; write sizes in bytes, such as 4096/60:65536/40",
                field="workload.request_bytes_mix",
            )
        found[int(size)] = found.get(int(size), 0.0) + float(percent)
    total = sum(found.values())
    wrong = [size for size in found if size < LEAST_BYTES or size % LEAST_BYTES]
    if wrong or total == 0.0:
        raise InputError(
            f"request_bytes_mix: {text} needs sizes in whole blocks of {LEAST_BYTES} bytes and "
            "percentages above 0",
            field="workload.request_bytes_mix",
        )
    return {size: share / total for size, share in found.items() if share > 0.0}


def mean_of(shares: Mapping[int, float]) -> float:
    """Mean size in bytes of shares that add up to 1."""
    return sum(size * share for size, share in shares.items())


def stands_for(shares: Mapping[int, float], mean_bytes: float) -> bool:
    """Whether the sizes that are listed have about the mean of all, which is in whole blocks."""
    return abs(mean_of(shares) - mean_bytes) <= max(MEAN_WITHIN * mean_bytes, LEAST_BYTES / 2)


def percent_text(sizes: Mapping[int, float]) -> str | None:
    """The most frequent sizes with whole percentages that add up to 100, as fio's bssplit has it.

    Args:
        sizes: Size in bytes -> how many, or which share.

    Returns:
        None where one size is left, or where those left out are too many to be told without them.
    """
    common = sorted(sizes, key=lambda size: (-sizes[size], size))[:MOST]
    total = sum(sizes[size] for size in common)
    exact = {size: 100 * sizes[size] / total for size in common}
    percents = {size: int(share) for size, share in exact.items()}
    # largest remainders first, until all is given away
    owed = sorted(common, key=lambda size: percents[size] - exact[size])
    for size in owed[: 100 - sum(percents.values())]:
        percents[size] += 1
    kept = [f"{size}/{percents[size]}" for size in sorted(percents) if percents[size] > 0]
    text = ":".join(kept)
    shares = {size: count / sum(sizes.values()) for size, count in sizes.items()}
    told = len(kept) > 1 and stands_for(shares_of(text), mean_of(shares))
    return text if told else None
