"""Questions that a drive's interface rules out are refused by field."""

from __future__ import annotations

from typing import Any

import pytest

from iojoule.datasets.errors import InputError
from iojoule.datasets.profile import DeviceProfile
from iojoule.recommender.recommend import Recommender


@pytest.fixture(scope="module")
def sata(make_profile: Any) -> Recommender:
    profile: DeviceProfile = make_profile(rating={"interface": "sata"})
    return Recommender(profile)


@pytest.mark.parametrize(
    ("parts", "field"),
    [
        ({"current": {"engine": "spdk"}}, "current.engine"),
        ({"current": {"engine": "io_uring", "completion": "polled"}}, "current.completion"),
        ({"free": {"engine": ["libaio", "spdk"]}}, "free.engine"),
        ({"free": {"engine": ["io_uring_cmd"]}}, "free.engine"),
        ({"free": {"completion": ["interrupt", "polled"]}}, "free.completion"),
    ],
)
def test_what_no_sata_drive_has_is_refused_by_field(
    sata: Recommender, ask: Any, parts: dict[str, Any], field: str
) -> None:
    with pytest.raises(InputError) as caught:
        sata.recommend(ask(**parts))
    assert caught.value.field == field


def test_all_engines_of_a_sata_drive_are_those_that_it_has(sata: Recommender, ask: Any) -> None:
    found = sata.recommend(ask(free={"engine": "all", "completion": "all"}))
    assert found.counts.excluded["impossible_paths"] > 0
    for row in found.pareto:
        assert row.configuration.engine not in ("spdk", "io_uring_cmd")
        assert row.configuration.completion != "polled"
