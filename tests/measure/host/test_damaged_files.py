"""Journals and undo files with damage in them: refused by name, and nothing is set."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from iojoule.datasets.errors import IojouleError
from iojoule.measure.host.changes import MountOption, NvmeFeature, SysfsValue, TextFile
from iojoule.measure.host.journal import HostState, restore_abandoned
from iojoule.measure.host.undo_file import Entry, UndoFile, read_undo_file

INPUTS = int(os.environ.get("IOJOULE_FUZZ_INPUTS", "20000"))
SEED = 20261123
GROWTH_BYTES_MAX = 16 << 20
"""Beyond what this process had after a tenth of the inputs."""

BITS = (
    b"null",
    b"-1",
    b"1e999",
    b"[" * 3000,
    b'{"a":' * 3000,
    b"\xff",
    b"\\u0000",
    b"\\ud800",
    b"9" * 5000,
    b"true",
    b'"',
    b"/../",
    b"/etc/cron.d/x",
    b"/proc/sys/kernel/core_pattern",
    b"sysfs",
    b"nvme-feature",
    b"text-file",
    b"{}",
    b"[]",
    b"\x00",
    b'"kind": "mount-option",',
    b"NaN",
)


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def damaged(text: bytes, source: random.Random) -> bytes:
    """One to eight bytes or pieces of it lost, changed, doubled or put in."""
    said = bytearray(text)
    for _ in range(source.choice([1, 1, 2, 4, 8])):
        place = source.randrange(len(said) + 1)
        match source.randrange(5):
            case 0:
                said[place : place + 1] = bytes([source.randrange(256)])
            case 1:
                del said[place : place + source.randrange(1, 60)]
            case 2:
                said[place:place] = source.choice(BITS)
            case 3:
                said[place:place] = said[place : place + source.randrange(1, 200)]
            case _:
                end = min(place + source.randrange(1, 30), len(said))
                said[place:end] = source.choice(BITS)
    return bytes(said)


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One of a process that lives no more, about a setting that is no longer as it was."""
    knob = tmp_path / "knob"
    knob.write_text("before")
    state = HostState("/dev/nvme0n1", tmp_path / "journals")
    state.set(SysfsValue(str(knob)), "after")
    (path,) = (tmp_path / "journals").iterdir()
    text = path.read_text().replace(f'"pid": {os.getpid()}', '"pid": 4194305')
    assert "4194305" in text
    path.write_text(text)
    return path


@pytest.mark.slow
def test_a_damaged_journal_is_refused_or_obeyed_as_it_is_declared(
    journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, source = journal.read_bytes(), random.Random(SEED)
    written: set[str] = set()
    for kind in (SysfsValue, TextFile, NvmeFeature, MountOption):
        monkeypatch.setattr(kind, "is_there", lambda self: True)
        monkeypatch.setattr(kind, "get", lambda self: "something else")
    monkeypatch.setattr(SysfsValue, "set", lambda self, value: written.add(self.path))
    for kind in (TextFile, NvmeFeature, MountOption):
        monkeypatch.setattr(kind, "set", lambda self, value: None)
    refused = obeyed = first = 0
    for number in range(INPUTS):
        first = first or (number > INPUTS / 10 and resident_bytes())
        journal.write_bytes(damaged(whole, source))
        try:
            restore_abandoned(journal.parent)
            obeyed += 1
        except IojouleError:
            refused += 1
        except BaseException as error:
            raise AssertionError((SEED, number, journal.read_bytes())) from error
        assert all(SysfsValue(one).is_settable() for one in written), (SEED, number)
        written.clear()
    assert refused > INPUTS / 2
    assert resident_bytes() < first + GROWTH_BYTES_MAX
    assert obeyed  # where the damage lies in a value or a name that nothing depends on


@pytest.mark.slow
def test_a_damaged_undo_file_is_refused_or_read(tmp_path: Path) -> None:
    path, source = tmp_path / "undo.json", random.Random(SEED)
    knob = SysfsValue(str(tmp_path / "knob"))
    UndoFile("/dev/sda", None, "S1", (Entry(knob, "a", "b"), Entry(knob, "b", None))).write(path)
    whole = path.read_bytes()
    for number in range(INPUTS):
        path.write_bytes(damaged(whole, source))
        try:
            found = read_undo_file(path)
        except IojouleError:
            continue
        except BaseException as error:
            raise AssertionError((SEED, number, path.read_bytes())) from error
        assert all(
            one.change.is_settable() for one in found.entries if isinstance(one.change, SysfsValue)
        )
