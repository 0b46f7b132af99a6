"""A distribution of request sizes as the one text of the schema, `bytes/percent:...`."""

from __future__ import annotations

from collections.abc import Mapping

MOST = 12
"""Sizes that are listed; rarer ones are left out."""


def percent_text(sizes: Mapping[int, float]) -> str | None:
    """The most frequent sizes with whole percentages that add up to 100, as fio's bssplit has it.

    Args:
        sizes: Size in bytes -> how many, or which share.

    Returns:
        None where one size is left.
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
    return ":".join(kept) if len(kept) > 1 else None
