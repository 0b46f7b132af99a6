"""Writes through the page cache: neighbours merge, the queue fills, and the copy takes time."""

from __future__ import annotations

import numpy as np
import pytest

from iojoule.model.evaluate.host_work import (
    FLUSH_DEPTH,
    MERGED_BYTES,
    as_flushed,
    awake_share,
    copy_cores,
)

WRITE = {"operation": "write", "engine": "psync", "request_bytes": 32768}


def test_neighbouring_pages_leave_as_large_requests() -> None:
    seen = as_flushed({**WRITE, "pattern": "sequential", "buffered": True})
    assert (seen["request_bytes"], seen["queue_depth"]) == (MERGED_BYTES, FLUSH_DEPTH)


def test_scattered_pages_keep_their_size() -> None:
    seen = as_flushed({**WRITE, "pattern": "random", "buffered": True})
    assert (seen["request_bytes"], seen["queue_depth"]) == (32768, FLUSH_DEPTH)


def test_direct_writes_and_reads_are_left_alone() -> None:
    direct = {**WRITE, "pattern": "random"}
    assert as_flushed({**direct, "buffered": False}) == direct
    read = {**direct, "operation": "read"}
    assert as_flushed({**read, "buffered": True}) == read


def test_a_copy_costs_core_time_by_the_byte() -> None:
    buffered = {**WRITE, "buffered": True}
    assert copy_cores(buffered, 2e9) == pytest.approx(2 * copy_cores(buffered, 1e9))
    assert copy_cores(WRITE, 1e9) == 0.0


def test_copies_keep_a_package_awake_for_as_long_as_they_take() -> None:
    asleep, awake = np.array([0.0]), np.array([1.0])
    assert awake_share(asleep, np.array([0.1])) == pytest.approx(0.1)
    assert awake_share(awake, np.array([0.1])) == pytest.approx(1.0)
    assert awake_share(np.array([0.5]), np.array([0.2])) == pytest.approx(0.6)  # by chance
    assert awake_share(asleep, np.array([3.0])) == pytest.approx(1.0)  # never more than always
