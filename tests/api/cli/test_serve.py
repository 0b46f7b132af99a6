import json
import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from iojoule.api.state import api_keys
from iojoule.api.state.errors import NoKeyError, NotFoundError
from iojoule.api.state.place import Place, State
from tests.api.conftest import Iojoule


@pytest.mark.parametrize("arguments", [("--host", "0.0.0.0"), ("--require-key",)])
def test_where_a_key_is_needed_there_must_be_one(
    arguments: tuple[str, ...], iojoule: Iojoule, tmp_path: Path
) -> None:
    done = iojoule("serve", *arguments, "--port", "0", "--state", tmp_path)
    assert done.code == NoKeyError.exit_code
    assert "key create --name" in done.err  # the command as it must be typed
    assert "iojoule key create" in done.err


def test_keys_are_made_listed_and_revoked(iojoule: Iojoule, tmp_path: Path) -> None:
    place = ("--state", tmp_path)
    key = iojoule("key", "create", "--name", "grid", "--scope", "write", *place).out.strip()
    assert key.startswith("iojoule_")
    listed = iojoule("key", "list", *place, "-o", "json")
    assert key not in listed.out
    (one,) = json.loads(listed.out)
    assert (one["name"], one["scope"], one["revoked_at"]) == ("grid", "write", None)
    assert one["id"] in iojoule("key", "list", *place).out
    revoked = json.loads(iojoule("key", "revoke", one["id"], *place, "-o", "json").out)
    assert revoked[0]["revoked_at"]
    assert iojoule("key", "revoke", "0" * 12, *place).code == NotFoundError.exit_code


def test_owner_expiry_and_limits_are_stated_shown_changed_and_lifted(
    iojoule: Iojoule, tmp_path: Path
) -> None:
    place = ("--state", tmp_path)

    def listed() -> dict[str, Any]:
        (one,) = json.loads(iojoule("key", "list", *place, "-o", "json").out)
        return dict(one)

    limits = ("--rate", "2.5", "--burst", "10", "--jobs-waiting", "3", "--bytes", "5MiB",
              "--compute-seconds", "3600")  # fmt: skip
    made = iojoule("key", "create", "--name", "grid", "--owner", "ann", "--expires", "90d",
                   *limits, *place, "-o", "json")  # fmt: skip
    one = json.loads(made.out)
    assert {name: one[name] for name in ("owner", "requests_per_second", "burst")} == {
        "owner": "ann", "requests_per_second": 2.5, "burst": 10
    }  # fmt: skip
    stated = ("jobs_waiting_max", "stored_bytes_max", "compute_seconds_max", "stored_bytes_used")
    assert [one[name] for name in stated] == [3, 5 << 20, 3600.0, 0]
    days = datetime.fromisoformat(one["expires_at"]) - datetime.now(UTC)
    assert 89 <= days.total_seconds() / 86400 <= 90
    table = iojoule("key", "list", *place).out
    for shown in ("ann", one["expires_at"][:10], "2.5/s", "5 MiB"):
        assert shown in table
    iojoule("key", "change", one["id"], "--expires", "none", "--bytes", "none", *place)
    after = listed()
    assert (after["expires_at"], after["stored_bytes_max"], after["burst"]) == (None, None, 10)
    assert "never" in iojoule("key", "list", *place).out
    iojoule("key", "change", one["id"], "--rate", "none", *place)
    assert (listed()["requests_per_second"], listed()["burst"]) == (None, None)
    assert iojoule("key", "change", one["id"], "--burst", "3", *place).code == 2
    assert listed()["burst"] is None
    lines = [json.loads(line) for line in iojoule("audit", *place).out.splitlines()]
    assert [line["action"] for line in lines] == ["key.create", "key.change", "key.change"]
    assert iojoule("audit", "--last", "1", *place).out.count("\n") == 1
    assert iojoule("audit", "--since", "2999-01-01", *place).out == ""


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--expires", "yesterday"), ("--expires", "2020-01-01"), ("--expires", "0d"),
        ("--rate", "0"), ("--rate", "nan"), ("--burst", "1.5"), ("--burst", "3"),
        ("--jobs-waiting", "-1"),
        ("--bytes", "5 XB"), ("--bytes", "9999999999TiB"), ("--compute-seconds", "1h"),
        ("--owner", ""), ("--owner", "a\tb"),
    ],
)  # fmt: skip
def test_limits_that_cannot_be_are_refused_and_nothing_is_made(
    option: str, value: str, iojoule: Iojoule, tmp_path: Path
) -> None:
    done = iojoule("key", "create", "--name", "x", option, value, "--state", tmp_path)
    assert done.code == 2
    assert option in done.err
    assert json.loads(iojoule("key", "list", "--state", tmp_path, "-o", "json").out) == []


def test_where_all_keys_have_expired_there_is_none(iojoule: Iojoule, tmp_path: Path) -> None:
    state = State(Place.of(tmp_path))
    state.open()
    with state.database.write() as connection:
        api_keys.create(connection, "x", api_keys.Scope.ADMIN, expires_at=1.0)
    state.close()
    done = iojoule("serve", "--require-key", "--port", "0", "--state", tmp_path)
    assert done.code == NoKeyError.exit_code
    assert "expired 1970-01-01" in iojoule("key", "list", "--state", tmp_path).out


def test_a_port_in_use_is_said(iojoule) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = iojoule("serve", "--port", str(port))
    assert done.code == 3
    assert str(port) in done.err
    assert "--port" in done.err


def test_a_port_that_cannot_be(iojoule) -> None:
    assert iojoule("serve", "--port", "70000").code == 2
