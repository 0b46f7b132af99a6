"""Twenty drives of the catalogue at five configurations give distinct answers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from iojoule.datasets.catalogue import load_catalogue
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.prior.build import build_profile
from iojoule.model.prior.facts import facts_of

TWENTY = [
    "samsung-980-pro-2tb",
    "samsung-990-pro-2tb",
    "samsung-970-evo-plus-1tb",
    "samsung-970-evo-1tb",
    "samsung-960-pro-512gb",
    "samsung-870-qvo-8tb",
    "samsung-850-evo",
    "intel-660p-1tb",
    "intel-670p-2tb",
    "crucial-p310-2tb",
    "wd-blue-sn580-1tb",
    "wd-black-sn750-500gb",
    "sk-hynix-gold-p31-2tb",
    "intel-dc-p4500-4tb",
    "intel-dc-s4600",
    "kingston-dc600m-960gb",
    "micron-7450-m2-960gb",
    "kioxia-cm6",
    "samsung-pm1743-u2",
    "intel-optane-dc-p4800x-375gb",
]

COLUMNS = {
    "operation": ["read", "read", "write", "write", "write"],
    "pattern": ["random", "sequential", "random", "random", "sequential"],
    "request_bytes": [4096, 131072, 4096, 4096, 131072],
    "queue_depth": [1, 32, 32, 32, 32],
    "device_state": [None, None, "cached", "steady", "steady"],
}
QUANTITIES = ("iops", "latency_p99_ns", "device_power_watts")


@pytest.fixture(scope="module")
def predictors() -> dict[str, Predictor]:
    return {name: Predictor(build_profile(facts_of(load_catalogue().get(name)))) for name in TWENTY}


def test_no_two_drives_answer_alike(predictors: dict[str, Predictor]) -> None:
    answers = {}
    for name, predictor in predictors.items():
        band = predictor.predict_columns(COLUMNS, 5)[0]
        answers[name] = np.log(np.array([band[quantity].value for quantity in QUANTITIES]))
    for combination, other in itertools.combinations(TWENTY, 2):
        assert np.abs(answers[combination] - answers[other]).max() > 0.05, (combination, other)
