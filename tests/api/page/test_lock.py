"""The lock file of the page's libraries: `npm ci` takes it, from any mirror."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "api" / "page"


@pytest.fixture(scope="module")
def locked() -> dict[str, dict[str, Any]]:
    """What the lock file says of each package, by the folder it goes into; "" is the page."""
    text = (PAGE / "package-lock.json").read_text(encoding="utf-8")
    packages: dict[str, dict[str, Any]] = json.loads(text)["packages"]
    return packages


def test_every_package_has_a_hash_and_no_address(locked: dict[str, dict[str, Any]]) -> None:
    packages = {name: one for name, one in locked.items() if name}
    assert not [name for name, one in packages.items() if "resolved" in one]
    assert not [name for name, one in packages.items() if not one.get("version")]
    assert not [n for n, one in packages.items() if not one.get("integrity", "").startswith("sha")]


def test_packages_of_other_platforms_are_in_it(locked: dict[str, dict[str, Any]]) -> None:
    # npm leaves out what it could not find at the time, and `npm ci` then refuses the file
    missing = [
        (name, wanted)
        for name, one in locked.items()
        for wanted in one.get("optionalDependencies", {})
        if f"{name}/node_modules/{wanted}" not in locked and f"node_modules/{wanted}" not in locked
    ]
    assert not missing


def test_it_locks_what_the_page_asks_for(locked: dict[str, dict[str, Any]]) -> None:
    asked = json.loads((PAGE / "package.json").read_text(encoding="utf-8"))
    for kind in ("dependencies", "devDependencies"):
        assert locked[""][kind] == asked[kind]
        for name, version in asked[kind].items():
            assert locked[f"node_modules/{name}"]["version"] == version


def test_the_build_installs_what_is_locked_and_nothing_else() -> None:
    script = (ROOT / "scripts" / "build_page.sh").read_text(encoding="utf-8")
    commands = [line.strip() for line in script.splitlines() if not line.strip().startswith("#")]
    npm = [line for line in commands if re.match(r"npm\b", line)]
    assert [line.split()[:2] for line in npm] == [["npm", "ci"]]
    assert "--ignore-scripts" in npm[0]
