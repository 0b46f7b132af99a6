"""The quantile that every 90 % interval is made of; light to import."""

from __future__ import annotations

NORMAL_90 = 1.6448536269514722
"""Standard deviations on each side of a 90 % interval."""
