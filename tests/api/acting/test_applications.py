"""What fio is told exactly, and what databases are told by evidence."""

import pytest

from iojoule.api.acting.applications import Application, options_of, refused_of
from tests.api.acting.answers import answer


def told(application: Application, **recommended: object) -> dict[str, str]:
    found = answer(recommended)
    wanted, current = found.recommended.configuration, found.current.configuration
    return {one.name: one.value for one in options_of(application, wanted, current)}


def test_fio_is_told_what_differs() -> None:
    assert told(Application.FIO) == {}
    assert told(Application.FIO, queue_depth=16, completion="polled") == {
        "iodepth": "16", "hipri": "1",
    }  # fmt: skip
    assert told(Application.FIO, engine="libaio", request_bytes=8192) == {
        "bs": "8192", "ioengine": "libaio",
    }  # fmt: skip


def test_a_database_is_told_what_has_been_published_and_no_made_up_value() -> None:
    postgres = told(Application.POSTGRESQL, queue_depth=16)
    assert postgres["effective_io_concurrency"] == "16"
    others = {**postgres, **told(Application.ROCKSDB)}
    others.pop("effective_io_concurrency")
    assert others.pop("maintenance_io_concurrency") == "16"
    assert set(others.values()) == {"raise", "true"}


@pytest.mark.parametrize("application", list(Application))
def test_nothing_that_a_power_cut_would_notice_is_advised(application: Application) -> None:
    advised = set(told(application, queue_depth=64, jobs=4))
    refused = {name for one in refused_of(application) for name in one.name.split(", ")}
    assert not advised & refused
    assert not advised & {"fsync", "synchronous_commit", "full_page_writes", "disableWAL"}
