"""Large random requests of a drive that nobody measured go as sequential ones."""

from __future__ import annotations

import pytest

from iojoule.datasets.catalogue import load_catalogue
from iojoule.datasets.vocabulary import Operation
from iojoule.model.prior.build import build_profile
from iojoule.model.prior.facts import facts_of
from iojoule.model.prior.large_requests import join_large_requests


def test_patterns_meet_where_a_request_covers_all_dies() -> None:
    profile = build_profile(facts_of(load_catalogue().get("samsung-pm871-240gb")))
    reads = {str(s.pattern): s for s in profile.surfaces if s.operation is Operation.READ}
    random, sequential = reads["random"], reads["sequential"]
    for name in ("unloaded_latency_ns", "capacity_operations_per_second"):
        one, other = getattr(random, name), getattr(sequential, name)
        assert one[-1] == pytest.approx(other[-1])
        assert one[0] != pytest.approx(other[0])


def test_without_sequential_reads_nothing_changes() -> None:
    profile = build_profile(facts_of(load_catalogue().get("samsung-pm871-240gb")))
    alone = [s for s in profile.surfaces if str(s.pattern) == "random"]
    assert join_large_requests(alone) == alone


def test_large_writes_meet_before_large_reads() -> None:
    profile = build_profile(facts_of(load_catalogue().get("samsung-pm9a3")))
    by_kind = {(str(s.operation), str(s.pattern)): s for s in profile.surfaces}
    place = 4  # 64 KiB
    for operation, meet in (("write", True), ("read", False)):
        pair = [by_kind[operation, pattern] for pattern in ("random", "sequential")]
        one, other = (surface.capacity_operations_per_second[place] for surface in pair)
        assert (one == pytest.approx(other)) is meet
