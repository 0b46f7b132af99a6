"""`iojoule backup` and `iojoule restore` as they are typed."""

from __future__ import annotations

import json
from pathlib import Path

from iojoule.api.state.errors import ConflictError, DamagedError, NotFoundError
from tests.api.conftest import Iojoule
from tests.api.state.test_backup import there


def test_a_backup_goes_into_a_file_and_comes_back(iojoule: Iojoule, tmp_path: Path) -> None:
    file, state, other = tmp_path / "one.iojoule", tmp_path / "state", tmp_path / "other"
    assert iojoule("backup", file, "--state", state).code == NotFoundError.exit_code
    assert not state.exists()
    assert iojoule("key", "create", "--name", "grid", "--state", state).code == 0
    (made,) = json.loads(iojoule("backup", file, "--state", state, "-o", "json").out)
    assert (made["backup"], made["database"], made["files"]) == (str(file), "sqlite", 1)
    assert iojoule("backup", file, "--state", state).code == ConflictError.exit_code
    (found,) = json.loads(iojoule("restore", file, "--state", other, "-o", "json").out)
    assert found == made
    listed = [iojoule("key", "list", "--state", one, "-o", "json").out for one in (state, other)]
    assert listed[0] == listed[1]
    assert iojoule("restore", file, "--state", other).code == ConflictError.exit_code
    assert iojoule("restore", file, "--state", other, "--replace").code == 0

    def recorded(place: Path) -> list[str]:
        lines = iojoule("audit", "--state", place).out.splitlines()
        return [json.loads(line)["action"] for line in lines]

    assert recorded(state) == ["key.create", "backup.make"]
    assert recorded(other) == ["key.create", "backup.restore", "backup.restore"]


def test_a_damaged_backup_changes_nothing(iojoule: Iojoule, tmp_path: Path) -> None:
    file, state = tmp_path / "one.iojoule", tmp_path / "state"
    iojoule("key", "create", "--name", "grid", "--state", state)
    iojoule("backup", file, "--state", state)
    file.write_bytes(file.read_bytes()[:-1])
    before = there(state)
    done = iojoule("restore", file, "--state", state, "--replace")
    assert done.code == DamagedError.exit_code
    assert str(file) in done.err
    assert there(state) == before
