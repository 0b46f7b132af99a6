import socket

import pytest

from iojoule.api.cli.serve import LOOPBACK


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "example.org"])
def test_it_listens_on_loopback_only(host: str, iojoule) -> None:
    done = iojoule("serve", "--host", host)
    assert done.code == 2
    assert host in done.err
    assert all(known in done.err for known in LOOPBACK)


def test_a_port_in_use_is_said(iojoule) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = iojoule("serve", "--port", str(port))
    assert done.code == 3
    assert str(port) in done.err
    assert "--port" in done.err


def test_a_port_that_cannot_be(iojoule) -> None:
    assert iojoule("serve", "--port", "70000").code == 2
