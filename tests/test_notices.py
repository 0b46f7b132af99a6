"""NOTICES.md names what is pinned, with the licences that the installed packages state."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def notices() -> ModuleType:
    """scripts/notices.py."""
    spec = importlib.util.spec_from_file_location("notices", ROOT / "scripts" / "notices.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where its dataclasses look their annotations up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def sections() -> dict[str, dict[str, tuple[str, str]]]:
    """Version and licence by package, for each section of the file."""
    found: dict[str, dict[str, tuple[str, str]]] = {}
    for part in (ROOT / "NOTICES.md").read_text(encoding="utf-8").split("\n## ")[1:]:
        title, _, text = part.partition("\n")
        rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line[:1] == "|"]
        found[title] = {row[0]: (row[1], row[2]) for row in rows[2:]}
    return found


def test_what_is_installed_is_named_with_its_licence(
    notices: ModuleType, sections: dict[str, dict[str, tuple[str, str]]]
) -> None:
    named = sections["Python packages"]
    assert {name: version for name, (version, _) in named.items()} == notices.pinned()
    for name, (_, licence) in named.items():
        # another Python or platform has some packages that this one has not
        assert licence
        found = notices.licence_of(name)
        if notices.ABSENT not in (licence, found):
            assert licence == found, "make notices"


def test_what_is_bundled_into_the_page_is_named(
    notices: ModuleType, sections: dict[str, dict[str, tuple[str, str]]]
) -> None:
    expected = {one.name: (one.version, one.licence) for one in notices.page_parts()}
    assert "preact" in expected
    assert "esbuild" not in expected
    assert sections["Bundled into the page"] == expected, "make notices"


def test_terms_that_ask_for_more_have_a_section_of_their_own(
    notices: ModuleType, sections: dict[str, dict[str, tuple[str, str]]]
) -> None:
    parts = [
        notices.Part(name, version, licence)
        for name, (version, licence) in sections["Python packages"].items()
    ]
    expected = {one.name: (one.version, one.licence) for one in notices.reciprocal(parts)}
    assert {"moocore", "orjson", "psycopg", "certifi"} <= set(expected)
    assert sections["Under LGPL or MPL"] == expected, "make notices"
