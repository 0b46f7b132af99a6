"""A question about requests of several sizes is answered for the mix."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from iojoule.datasets.errors import InputError
from iojoule.recommender.recommend import Recommender
from iojoule.recommender.request import WorkloadProfile
from iojoule.recommender.what_if.changes import changed
from iojoule.recommender.what_if.situation import Situation
from iojoule.recommender.workloads.sizes import percent_text, shares_of
from tests.errors import having

Ask = Callable[..., WorkloadProfile]

MEAN = {"useful_request_bytes": 19456}
MIX = MEAN | {"request_bytes_mix": "4096/75:65536/25"}
TODAY = {"queue_depth": 1, "jobs": 4}


def test_the_mix_has_the_tail_of_its_large_requests(recommender: Recommender, ask: Ask) -> None:
    mixed, one = (
        recommender.recommend(ask(workload, current=TODAY, free={})) for workload in (MIX, MEAN)
    )
    assert mixed.current.latency_p99_ns is not None
    assert one.current.latency_p99_ns is not None
    assert mixed.current.latency_p99_ns.value > one.current.latency_p99_ns.value
    assert any("answered for the mix of 2 sizes" in note for note in mixed.notes)
    assert mixed.saving is not None


def test_a_mix_joins_the_search(recommender: Recommender, ask: Ask) -> None:
    demand = {"demand_operations_per_second": 20_000.0}
    found = recommender.recommend(
        ask(
            MIX | demand,
            current={"queue_depth": 32, "jobs": 4},
            sla={"latency_p99_ns_max": 5e6},
            concurrency_max="unbounded",
        )
    )
    assert found.recommended is not None
    assert found.recommended.meets_sla
    assert found.counts.total > 1000


def test_sizes_of_another_mean_are_refused(recommender: Recommender, ask: Ask) -> None:
    for apart in ({"useful_request_bytes": 4096}, {}):
        asked = ask(apart | {"request_bytes_mix": "4096/50:65536/50"}, current=TODAY, free={})
        with pytest.raises(InputError, check=having(field="workload.request_bytes_mix")):
            recommender.recommend(asked)


def test_what_if_all_requests_had_one_size(recommender: Recommender, ask: Ask) -> None:
    mixed = Situation(recommender.profile, ask(MIX, current=TODAY, free={}))
    alone = changed(mixed, {"size": 8192}, profile_of=lambda name: recommender.profile)
    assert alone.workload.workload.request_bytes_mix is None
    recommender.recommend(alone.workload)
    both = {"size": 16384, "workload.request_bytes_mix": "4096/80:65536/20"}
    other = changed(mixed, both, profile_of=lambda name: recommender.profile)
    assert other.workload.workload.request_bytes_mix == "4096/80:65536/20"


def test_the_text_is_read_as_it_is_written() -> None:
    text = percent_text({4096: 3.0, 65536: 1.0})
    assert text is not None
    assert shares_of(text) == {4096: 0.75, 65536: 0.25}
    assert shares_of("4096/1:4096/1:8192/2") == {4096: 0.5, 8192: 0.5}


def test_a_text_that_leaves_out_too_much_is_none() -> None:
    many = {512 * size: 1.0 for size in range(1, 13)} | {1 << 20: 0.9}
    assert percent_text(many) is None
    assert percent_text({512: 0.63, 1024: 0.37}) == "512/63:1024/37"


@pytest.mark.parametrize("text", ["1000/50:4096/50", "0/100", "4096/0:8192/0"])
def test_what_is_no_distribution_is_refused(recommender: Recommender, ask: Ask, text: str) -> None:
    with pytest.raises(InputError, check=having(field="workload.request_bytes_mix")):
        recommender.recommend(ask(MEAN | {"request_bytes_mix": text}))
