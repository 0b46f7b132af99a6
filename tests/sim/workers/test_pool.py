"""How work is cut: everything once, the longest first, the tail short."""

from __future__ import annotations

import heapq
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

import iojoule.api.exit_codes as codes
from iojoule.sim.errors import EngineError, LimitError, TraceError
from iojoule.sim.findings import RefusedError
from iojoule.sim.workers.pool import BATCH_SECONDS, BATCHES_A_SLOT, batches, portable

TIMES = st.lists(st.floats(1e-4, 10.0), min_size=1, max_size=200)


@given(TIMES, st.integers(1, 16))
def test_every_item_is_in_one_batch_and_long_ones_travel_alone(
    seconds: list[float], slots: int
) -> None:
    cut = batches(len(seconds), seconds, slots)
    assert sorted(index for batch in cut for index in batch) == list(range(len(seconds)))
    taken = [sum(seconds[index] for index in batch) for batch in cut]
    most = min(BATCH_SECONDS, sum(seconds) / (slots * BATCHES_A_SLOT))
    assert all(t <= most * (1 + 1e-9) or len(b) == 1 for t, b in zip(taken, cut, strict=True))
    order = [seconds[index] for batch in cut for index in batch]
    assert order == sorted(order, reverse=True)


@given(TIMES, st.integers(1, 16))
def test_slots_end_together_but_for_the_longest_item_and_one_batch(
    seconds: list[float], slots: int
) -> None:
    ends = [0.0] * slots
    for batch in batches(len(seconds), seconds, slots):
        heapq.heappush(ends, heapq.heappop(ends) + sum(seconds[index] for index in batch))
    assert max(ends) <= sum(seconds) / slots + max(BATCH_SECONDS, max(seconds)) + 1e-9


def test_without_predictions_items_go_one_by_one_in_their_order() -> None:
    assert batches(3, None, 2) == [[0], [1], [2]]


@pytest.mark.parametrize(
    "error",
    [
        TraceError("bad", path="a.trace", line=3, field="f"),
        LimitError("over", limit="events"),
        EngineError("lost", name="requests_lost"),
        RefusedError("no", field="seed", name="trap"),
    ],
)
def test_errors_arrive_with_all_that_they_say(error: Exception) -> None:
    copy = portable(error)
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)


def test_every_error_class_can_be_sent() -> None:
    for kind in codes.error_classes():
        if kind.__module__.startswith("iojoule."):
            assert isinstance(pickle.loads(pickle.dumps(kind("said", field="f"))), kind)
