"""What writes do to drives that nobody measured, by the kind of their memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from iojoule.datasets.catalogue import load_catalogue
from iojoule.datasets.vocabulary import Evidence
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.prior.build import build_profile
from iojoule.model.prior.cache import PAST_CACHE, capacity_of, cell_of, expected_writes
from iojoule.model.prior.document import load_prior
from iojoule.model.prior.facts import DriveFacts, facts_of
from iojoule.model.prior.posterior import condition

CONSUMER = DriveFacts("made-up", "Made Up 1TB", sata=False, datacentre=False, xpoint=False)


def facts(device: str) -> DriveFacts:
    return facts_of(load_catalogue().get(device))


@pytest.mark.parametrize(
    ("device", "cell"),
    [
        ("intel-660p-2tb", "QLC"),
        ("crucial-p3-plus-4tb", "QLC"),
        ("samsung-970-pro-512gb", "MLC"),
        ("samsung-970-evo-plus-250gb", "TLC"),
        ("toshiba-xg4", "unknown"),
        ("patriot-p310-240gb", "unknown"),
    ],
)
def test_cells_are_those_of_the_fact_or_of_the_product_line(device: str, cell: str) -> None:
    assert cell_of(facts(device)) == cell


def test_a_name_says_the_capacity_where_no_fact_does() -> None:
    assert capacity_of(facts("intel-660p-2tb")) == 2 * 10**12
    assert capacity_of(replace(CONSUMER, model="X 512 GB")) == 512 * 10**9
    assert capacity_of(replace(CONSUMER, capacity_bytes=7)) == 7
    assert capacity_of(replace(CONSUMER, model="X")) is None


@pytest.mark.parametrize("device", ["intel-660p-2tb", "samsung-970-evo-plus-250gb", "toshiba-xg4"])
def test_client_drives_fall_past_their_cache_and_nobody_is_sure_how_far(device: str) -> None:
    profile = build_profile(facts(device))
    assert profile.write_state is not None
    assert profile.write_state.transition_bytes.evidence is Evidence.DATASHEET
    answer, _ = Predictor(profile).predict_columns(
        {
            "operation": "write",
            "pattern": "sequential",
            "request_bytes": 131072,
            "queue_depth": 32,
            "device_state": ["cached", "steady"],
        },
        2,
    )
    rate = answer["throughput_bytes_per_second"]
    assert rate.value[1] < 0.5 * rate.value[0]
    # a rate past the cache that the data sheet names is known far better than one of its kind
    rated = facts(device).past_cache is not None
    assert (rate.high[1] / rate.low[1] < 4.0) == rated
    assert set(answer.evidence_words()) == {"datasheet"}


@pytest.mark.parametrize(
    "device",
    ["intel-optane-900p", "samsung-970-pro-512gb"],
)
def test_memory_that_needs_no_such_cache_have_no_cliff(device: str) -> None:
    assert build_profile(facts(device)).write_state is None


@pytest.mark.parametrize(
    ("device", "rated"),
    [("intel-dc-p4500-4tb", 62500), ("samsung-pm9a3-u2-e1s", 200000), ("kioxia-cm6", 350000)],
)
def test_a_rated_steady_write_is_what_is_left_and_no_burst(device: str, rated: float) -> None:
    answer, _ = Predictor(build_profile(facts(device))).predict_columns(
        {
            "operation": "write",
            "pattern": ["random", "random", "sequential", "sequential"],
            "request_bytes": [4096, 4096, 131072, 131072],
            "queue_depth": 64,
            "jobs": 4,
            "device_state": ["cached", "steady"] * 2,
        },
        4,
    )
    iops = answer["iops"]
    assert iops.low[1] < rated < iops.high[1]
    assert iops.value[0] > 1.5 * rated  # into free blocks it goes faster
    assert iops.value[3] == pytest.approx(iops.value[2], rel=0.2)  # whole blocks become free


def test_a_consumer_s_unlabelled_write_rating_is_that_of_its_cache() -> None:
    kinds = {
        observation.fact.name: observation.kind
        for observation in facts("samsung-970-evo-plus-1tb").observations
    }
    assert kinds["random_write_4k_iops_max"] == "rated_up_to"
    assert kinds["random_write_4k_iops_steady"] == "rated_steady_write"
    kinds = {
        observation.fact.name: observation.kind
        for observation in facts("intel-dc-p4500-4tb").observations
    }
    assert kinds["random_write_4k_iops"] == "rated_steady_write"


def test_more_bits_a_cell_are_slower_and_more_capacity_is_faster_up_to_a_terabyte() -> None:
    def rate(model: str, cell: str) -> float:
        drive = replace(CONSUMER, model=model, cell=cell)
        found = expected_writes(condition(load_prior(), drive), drive, None)
        assert found is not None
        assert found.sequential_collecting_bytes_per_second is not None
        return found.sequential_collecting_bytes_per_second.value

    assert rate("X 1TB", "QLC") < rate("X 1TB", "TLC")
    assert rate("X 250GB", "TLC") == pytest.approx(0.25 * rate("X 1TB", "TLC"))
    assert rate("X 4TB", "TLC") == rate("X 1TB", "TLC") == PAST_CACHE["TLC"].bytes_per_second


def test_no_upper_bound_of_throughput_exceeds_the_link() -> None:
    operations, patterns = ["read", "write"] * 2, ["random", "random", "sequential", "sequential"]
    columns = {
        "operation": operations,
        "pattern": patterns,
        "request_bytes": 1 << 20,
        "queue_depth": 256,
    }
    for drive in list(load_catalogue())[::9]:
        profile = build_profile(facts_of(drive))
        assert profile.link_bytes_per_second is not None
        answer, _ = Predictor(profile).predict_columns(columns, 4)
        most = profile.link_bytes_per_second.value * (1 + 1e-9)
        assert np.all(answer["throughput_bytes_per_second"].high <= most), drive.id
