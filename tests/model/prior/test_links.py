"""Drives of the catalogue: nothing above their link, and facts that matter make a difference."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from iojoule.datasets.catalogue import load_catalogue
from iojoule.datasets.profile import DeviceProfile
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.prior.build import build_profile
from iojoule.model.prior.facts import facts_of

ROWS = list(
    itertools.product(
        ("read", "write", "mixed"), ("random", "sequential"), (4096, 131072, 4194304), (1, 256)
    )
)
COLUMNS = {
    "operation": [row[0] for row in ROWS],
    "read_fraction": [0.5 if row[0] == "mixed" else None for row in ROWS],
    "pattern": [row[1] for row in ROWS],
    "request_bytes": [row[2] for row in ROWS],
    "queue_depth": [row[3] for row in ROWS],
}
SOME = [
    "intel-ssd-750-1-2tb",
    "samsung-pm1743-u2",
    "samsung-850-evo",
    "intel-d3-s4510",
    "kingston-a2000-500gb",
    "intel-660p-2tb",
    "intel-670p-2tb",
    "toshiba-xg4",
    "sk-hynix-ps1010-15-36tb",
    "intel-optane-900p",
]


def expected(device: str) -> DeviceProfile:
    return build_profile(facts_of(load_catalogue().get(device)))


@pytest.mark.parametrize("device", SOME)
def test_no_throughput_and_no_end_of_it_is_above_the_link(device: str) -> None:
    profile = expected(device)
    band = Predictor(profile).predict_columns(COLUMNS, len(ROWS))[0]["throughput_bytes_per_second"]
    assert profile.link_bytes_per_second is not None
    assert (band.high <= profile.link_bytes_per_second.value * (1 + 1e-9)).all()
    assert (band.value <= band.high).all()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("intel-ssd-750-1-2tb", "samsung-pm1743-u2"),
        ("intel-660p-2tb", "intel-670p-2tb"),
        ("kingston-a2000-500gb", "intel-ssdpekkf256g7l"),
        ("wd-black-sn750", "crucial-p3-plus-4tb"),
    ],
)
def test_drives_whose_facts_differ_answer_otherwise(one: str, other: str) -> None:
    rates = [
        Predictor(expected(name)).predict_columns(COLUMNS, len(ROWS))[0]["iops"].value
        for name in (one, other)
    ]
    assert np.abs(np.log(rates[0] / rates[1])).max() > 0.02


def test_the_catalogue_s_ratings_are_carried() -> None:
    new, old = expected("samsung-pm1743-u2").rating, expected("samsung-850-evo").rating
    assert (new.interface, new.pcie_generation, new.pcie_lanes) == ("nvme", 5, 4)
    assert (old.interface, old.pcie_generation) == ("sata", None)
