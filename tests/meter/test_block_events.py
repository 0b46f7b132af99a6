"""Counting maps of block tracepoints: their keys and kinds, and hosts where they are refused."""

from pathlib import Path

import pytest

from iojoule.measure.errors import HostStateError
from iojoule.meter.block_events import (
    BlockEventCounter,
    Kind,
    Operation,
    Requests,
    totals_of,
    why_unavailable,
)
from tests.stand_ins import SYSTEM, look_in

MESSAGES = """\
{"type": "attached_probes", "data": {"probes": 2}}
{"type": "stats", "data": {"@requests": {\
"271581184,WS": {"count": 3, "average": 8, "total": 24}, \
"266338304,FF": {"count": 1, "average": 0, "total": 0}}}}
{"type": "printf", "data": "end"}
"""


@pytest.mark.parametrize(
    ("letters", "kind"),
    [
        ("R", Kind(Operation.READ)),
        ("RA", Kind(Operation.READ, readahead=True)),
        ("WSM", Kind(Operation.WRITE, sync=True, metadata=True)),
        ("WFS", Kind(Operation.WRITE, force_unit_access=True, sync=True)),
        ("FWFS", Kind(Operation.WRITE, preflush=True, force_unit_access=True, sync=True)),
        ("FF", Kind(Operation.FLUSH, preflush=True)),
        ("F", Kind(Operation.FLUSH)),
        ("FS", Kind(Operation.FLUSH, sync=True)),
        ("DS", Kind(Operation.DISCARD, sync=True)),
        ("N", Kind(Operation.OTHER)),
        ("ZR", Kind(Operation.OTHER)),
        ("", Kind(Operation.OTHER)),
    ],
)
def test_letters(letters: str, kind: Kind) -> None:
    assert Kind.of(letters) == kind


def test_a_device_is_in_the_kernels_form() -> None:
    key = f"{259 << 20 | 17},W"
    assert totals_of({key: {"count": 3, "average": 5, "total": 16}}) == {
        ("259:17", "W"): Requests(3, 8192)
    }


def stand_in(folder: Path, name: str, script: str) -> None:
    program = folder / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host that lets anybody count: programs of the test's own and a permissive /proc."""
    look_in(monkeypatch, tmp_path, *SYSTEM)
    stand_in(tmp_path, "unshare", 'shift; exec "$@"')
    stand_in(tmp_path, "mount", "exit 0")
    permitted = tmp_path / "root"
    (permitted / "proc" / "self").mkdir(parents=True)
    (permitted / "proc" / "self" / "status").write_text("CapEff:\t000001ffffffffff\n")
    (permitted / "proc" / "filesystems").write_text("nodev\ttracefs\n")
    return tmp_path


def test_totals_are_taken_when_they_are_complete(host: Path) -> None:
    (host / "messages").write_text(MESSAGES)
    stand_in(host, "bpftrace", f"cat {host}/messages; exec sleep 600")
    with BlockEventCounter(root=host / "root") as counter:
        assert counter.wait() == {
            ("259:0", "WS"): Requests(3, 24 * 512),
            ("254:0", "FF"): Requests(1, 0),
        }


def test_bpftrace_that_ends_is_quoted(host: Path) -> None:
    stand_in(host, "bpftrace", "echo 'tracepoint not found' >&2; exit 1")
    with (
        BlockEventCounter(root=host / "root") as counter,
        pytest.raises(HostStateError, match="tracepoint not"),
    ):
        counter.wait()


def test_silence_ends_with_the_patience(host: Path) -> None:
    stand_in(host, "bpftrace", "exec sleep 600")
    with BlockEventCounter(root=host / "root") as counter, pytest.raises(HostStateError):
        counter.wait(patience_seconds=0.2)


def test_a_missing_program_is_the_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    look_in(monkeypatch, tmp_path)
    assert "bpftrace" in (why_unavailable() or "")


@pytest.mark.parametrize(
    ("file", "text", "reason"),
    [
        ("proc/self/status", "CapEff:\t0000000000000000\n", "CAP_SYS_ADMIN"),
        ("proc/filesystems", "nodev\tproc\n", "tracefs"),
        ("sys/kernel/security/lockdown", "none integrity [confidentiality]\n", "lockdown"),
    ],
)
def test_a_host_that_refuses_says_why(host: Path, file: str, text: str, reason: str) -> None:
    stand_in(host, "bpftrace", "exit 0")
    assert why_unavailable(host / "root") is None
    place = host / "root" / file
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    assert reason in (why_unavailable(host / "root") or "")


def test_the_real_tracepoints(tmp_path: Path) -> None:
    reason = why_unavailable()
    if reason is not None:
        pytest.skip(reason)
    try:
        with BlockEventCounter(0.2) as counter:
            totals = counter.wait()
    except HostStateError as error:
        pytest.skip(error.message)
    for (device, letters), requests in totals.items():
        assert device.count(":") == 1
        assert Kind.of(letters).operation in Operation
        assert requests.count > 0
