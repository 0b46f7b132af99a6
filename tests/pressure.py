"""How busy others keep the processors: then latencies of the virtual drive say nothing."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

PRESSURE = Path("/proc/pressure/cpu")
SHARE_MAX = 0.25
"""Share of the time in which somebody waited for a processor."""


class CpuPressure:
    """Counts from where it was made (Linux, Documentation/accounting/psi.rst)."""

    def __init__(self) -> None:
        self._began, self._waited = time.monotonic(), _waited_seconds()

    def share(self) -> float:
        """So far; 0 where the kernel does not count it."""
        return (_waited_seconds() - self._waited) / (time.monotonic() - self._began)


def skip_if_busy(share: float) -> None:
    if share > SHARE_MAX:
        pytest.skip(f"others kept the processors busy ({share:.0%} of the time somebody waited)")


def _waited_seconds() -> float:
    if not PRESSURE.exists():
        return 0.0
    (line,) = (one for one in PRESSURE.read_text().splitlines() if one.startswith("some"))
    return float(line.rpartition("total=")[2]) * 1e-6
