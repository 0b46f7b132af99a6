"""The prior finds back what drives were drawn from, and facts pull a drive the right way."""

from __future__ import annotations

import numpy as np
import pytest

from iojoule.datasets.profile import FactUsed
from iojoule.model.fit.learn_prior import learn
from iojoule.model.prior.document import LearnedPrior, load_assumptions, load_prior
from iojoule.model.prior.facts import DriveFacts, Observation, observation
from iojoule.model.prior.posterior import condition

QUANTITIES = list(load_assumptions().quantities)


def fact(quantity: str, value: float, kind: str = "declared") -> Observation:
    used = FactUsed(name=quantity, value=value, unit="1", source="a test")
    return observation({quantity: 1.0}, kind, used, measured=False)


def drive(name: str, datacentre: bool | None, *facts: Observation) -> DriveFacts:
    return DriveFacts(
        device=name,
        model=name,
        sata=False,
        datacentre=datacentre,
        xpoint=False,
        observations=list(facts),
        generation=3,
        qlc=False,
    )


@pytest.fixture(scope="module")
def world() -> LearnedPrior:
    """200 drives whose caps and highest powers go together: 10 W against 4 W by class."""
    random = np.random.default_rng(5)
    drives = []
    for index in range(200):
        datacentre = index % 2 == 0
        cap = random.normal(0.0, 0.3)
        watts = 0.9 * cap + random.normal(0.0, 0.05)
        drives.append(
            drive(
                str(index),
                datacentre,
                fact("cap_watts", (12.0 if datacentre else 5.0) * np.exp(cap)),
                fact("read_watts", (10.0 if datacentre else 4.0) * np.exp(watts)),
            )
        )
    return learn(drives)


def test_it_finds_the_groups_back(world: LearnedPrior) -> None:
    assert condition(world, drive("new", False)).value("read_watts") == pytest.approx(4.0, rel=0.1)
    assert condition(world, drive("new", True)).value("read_watts") == pytest.approx(10.0, rel=0.1)


def test_a_cap_tells_of_the_power_drawn(world: LearnedPrior) -> None:
    capped = condition(world, drive("new", True, fact("cap_watts", 8.0)))
    expected = 10.0 * (8.0 / 12.0) ** 0.9
    assert capped.value("read_watts") == pytest.approx(expected, rel=0.1)
    assert capped.sd("read_watts") < 0.5 * condition(world, drive("new", True)).sd("read_watts")


def test_what_nobody_told_stays_as_stated(world: LearnedPrior) -> None:
    stated = load_assumptions().quantities["write_random_sharpness"]
    found = condition(world, drive("new", False))
    assert found.value("write_random_sharpness") == pytest.approx(stated.centre, rel=0.02)
    assert found.sd("write_random_sharpness") >= stated.sd


def test_an_unknown_class_is_wider_than_a_known_one(world: LearnedPrior) -> None:
    unknown = condition(world, drive("new", None))
    assert unknown.sd("read_watts") > condition(world, drive("new", True)).sd("read_watts")
    assert 4.0 < unknown.value("read_watts") < 10.0


def test_facts_decide_the_class(world: LearnedPrior) -> None:
    told = condition(world, drive("new", None, fact("cap_watts", 25.0)))
    known = condition(world, drive("new", True, fact("cap_watts", 25.0)))
    assert told.value("read_watts") == pytest.approx(known.value("read_watts"), rel=0.05)


@pytest.mark.parametrize("kind", ["rated", "linear_cost"])
def test_no_fact_widens(kind: str) -> None:
    prior = load_prior()
    bare = condition(prior, drive("new", False))
    told = condition(
        prior, drive("new", False, fact("read_sequential_bytes_per_second", 3e9, kind))
    )
    assert (np.diag(told.covariance) <= np.diag(bare.covariance) + 1e-9).all()


def test_the_shipped_prior_names_every_quantity_and_is_a_covariance() -> None:
    prior = load_prior()
    assert prior.quantities == QUANTITIES
    assert set(prior.offsets) == set(load_assumptions().kinds)
    spread = np.array(prior.spread)
    assert np.allclose(spread, spread.T)
    assert np.linalg.eigvalsh(spread).min() > 0
    assert len(prior.drives) == len(prior.effects) == len(QUANTITIES)
