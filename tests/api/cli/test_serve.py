import json
import socket
from pathlib import Path

import pytest

from iojoule.api.state.errors import NoKeyError, NotFoundError
from tests.api.conftest import Iojoule


@pytest.mark.parametrize("arguments", [("--host", "0.0.0.0"), ("--require-key",)])
def test_where_a_key_is_needed_there_must_be_one(
    arguments: tuple[str, ...], iojoule: Iojoule, tmp_path: Path
) -> None:
    done = iojoule("serve", *arguments, "--port", "0", "--state", tmp_path)
    assert done.code == NoKeyError.exit_code
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


def test_a_port_in_use_is_said(iojoule) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = iojoule("serve", "--port", str(port))
    assert done.code == 3
    assert str(port) in done.err
    assert "--port" in done.err


def test_a_port_that_cannot_be(iojoule) -> None:
    assert iojoule("serve", "--port", "70000").code == 2
