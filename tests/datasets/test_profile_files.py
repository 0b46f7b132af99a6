"""A profile says which iojoule fitted it, and another one says so."""

from __future__ import annotations

import json

import pytest

from iojoule.datasets.errors import SchemaVersionError
from iojoule.datasets.profile import fitted_by_another, load_shipped_profile, parse_profile

PROFILE = load_shipped_profile("samsung-860-pro")


def test_the_iojoule_that_fitted_a_profile_has_nothing_to_say() -> None:
    assert fitted_by_another(PROFILE) is None


def test_another_version_is_named_with_the_remedy() -> None:
    older = PROFILE.model_copy(update={"generator": "iojoule 0.0.9"})
    said = fitted_by_another(older)
    assert said is not None
    assert "iojoule 0.0.9" in said
    assert "iojoule fit" in said


@pytest.mark.parametrize("version", [0, 99])
def test_a_layout_of_another_version_is_refused(version: int) -> None:
    text = json.dumps(PROFILE.model_dump(mode="json") | {"schema_version": version})
    with pytest.raises(SchemaVersionError, match="schema"):
        parse_profile(text.encode(), "p.json")
