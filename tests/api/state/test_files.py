import os
import resource
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import pytest

from iojoule.api.state.errors import DamagedError, StorageFullError, UnavailableError
from iojoule.api.state.files import ContentStore

CONTENT = b"measured"
DIGEST = sha256(CONTENT).hexdigest()
LONG_AGO = time.time() - 1e6


@pytest.fixture
def files(tmp_path: Path) -> ContentStore:
    made = ContentStore(tmp_path / "files")
    made.prepare()
    return made


def test_a_file_is_named_by_its_content(files: ContentStore) -> None:
    assert files.keep_bytes(CONTENT) == DIGEST
    assert files.read(DIGEST) == CONTENT
    assert files.keep_bytes(CONTENT) == DIGEST


def test_what_was_not_kept_leaves_nothing(files: ContentStore, tmp_path: Path) -> None:
    with files.incoming() as folder:
        (folder / "upload").write_bytes(CONTENT)
    assert not folder.exists()


def test_damage_is_noticed(files: ContentStore) -> None:
    files.keep_bytes(CONTENT)
    files.path(DIGEST).write_bytes(b"something else")
    with pytest.raises(DamagedError, match=DIGEST):
        files.read(DIGEST)


def test_damage_is_noticed_before_a_path_is_given(files: ContentStore) -> None:
    files.keep_bytes(CONTENT)
    assert files.checked(DIGEST) == files.path(DIGEST)
    files.path(DIGEST).write_bytes(CONTENT[:-1])
    with pytest.raises(DamagedError, match=DIGEST):
        files.checked(DIGEST)


def test_what_is_missing_is_said(files: ContentStore) -> None:
    with pytest.raises(DamagedError, match=DIGEST):
        files.read(DIGEST)


def test_a_folder_that_is_away_is_no_damage(files: ContentStore) -> None:
    shutil.rmtree(files.path(DIGEST).parent.parent)
    with pytest.raises(UnavailableError, match="No such file"):
        files.read(DIGEST)


def test_a_sweep_takes_what_no_row_names_and_nobody_has_touched(files: ContentStore) -> None:
    named, orphan, young = (files.keep_bytes(word) for word in (b"named", b"orphan", b"young"))
    for digest in (named, orphan):
        os.utime(files.path(digest), (LONG_AGO, LONG_AGO))
    with files.incoming() as crashed:
        (crashed / "upload").write_bytes(b"half of it")
        os.utime(crashed, (LONG_AGO, LONG_AGO))
        assert files.sweep({named}) == 2
        assert not crashed.exists()
    assert files.path(named).exists()
    assert files.path(young).exists()
    assert not files.path(orphan).exists()


def test_nobody_sweeps_while_somebody_keeps(files: ContentStore) -> None:
    with files.keeping(), files.sweeping() as alone:
        assert not alone
    with files.sweeping() as alone:
        assert alone


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """As on a full disk: the kernel refuses to write more."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_where_there_is_no_room_nothing_is_kept(files: ContentStore) -> None:
    with files_of_at_most(1000), pytest.raises(StorageFullError, match="no room"):
        files.keep_bytes(b"x" * 5000)
    assert not files.path(sha256(b"x" * 5000).hexdigest()).exists()
