"""What a recommendation means inside the application: for fio exactly, for databases by evidence.

Nobody has published how a database's watts follow from the depth and size of its requests. There
are two tuned databases in a thesis (000, chapter 6), which names the options that it changed and
what they gained together, but not their values. So no value is made up here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from iojoule.datasets.vocabulary import Completion, Engine

if TYPE_CHECKING:
    from iojoule.datasets.schema import Configuration


class Application(StrEnum):
    """What does the I/O."""

    FIO = "fio"
    ROCKSDB = "rocksdb"
    POSTGRESQL = "postgresql"


@dataclass(frozen=True)
class Option:
    """An option of an application.

    Attributes:
        name: As the application calls it.
        value: What to set; a direction where no value has been published.
        why: What it rests on.
    """

    name: str
    value: str
    why: str


def options_of(
    application: Application, wanted: Configuration, current: Configuration
) -> list[Option]:
    """What to set in the application; only what differs from today's configuration for fio."""
    return list(_ADVICE[application](wanted, current))


def refused_of(application: Application) -> list[Option]:
    """What saves energy and is not advised, because a power cut would then take more."""
    return list(_REFUSED.get(application, ()))


def _fio(wanted: Configuration, current: Configuration) -> Iterator[Option]:
    today = dict(_fio_options(current))
    for name, value in _fio_options(wanted):
        if today.get(name) != value:
            yield Option(name, value, f"recommended; today {today.get(name, 'not set')}")
    for name in today:
        if name not in dict(_fio_options(wanted)):
            yield Option(name, "remove", "has no meaning for the recommended engine")


def _fio_options(one: Configuration) -> Iterator[tuple[str, str]]:
    """As fio 3.33 documents them (HOWTO.rst)."""
    yield "bs", str(one.request_bytes)
    yield "iodepth", str(one.queue_depth)
    yield "numjobs", str(one.jobs)
    if one.engine is not None:
        yield "ioengine", "external:FIO_PLUGIN" if one.engine is Engine.SPDK else one.engine.value
    if one.engine in (Engine.IO_URING, Engine.IO_URING_CMD):
        yield "hipri", str(int(one.completion is Completion.POLLED))
        yield "sqthread_poll", str(int(bool(one.submission_polling)))


_ROCKSDB = (
    "000 section 6.2: tuned together, +13 % requests per joule of inserts and -3 % of reads and "
    "updates (YCSB A); values are not published"
)
_POSTGRESQL = (
    "000 section 6.4: tuned together, +13 % transactions per joule and +36 % I/O per joule of the "
    "drive (TPC-C); values are not published"
)


def _rocksdb(wanted: Configuration, current: Configuration) -> Iterator[Option]:
    yield Option("write_buffer_size", "raise", _ROCKSDB)
    yield Option("db_write_buffer_size", "raise", _ROCKSDB)
    yield Option("max_total_wal_size", "raise", _ROCKSDB)
    yield Option("enable_pipelined_write", "true", _ROCKSDB)


def _postgresql(wanted: Configuration, current: Configuration) -> Iterator[Option]:
    yield Option("shared_buffers", "raise", _POSTGRESQL)
    yield Option("work_mem", "raise", _POSTGRESQL)
    yield Option(
        "effective_io_concurrency",
        str(wanted.queue_depth),
        "the recommended depth: so many requests one session tries to keep in flight (PostgreSQL "
        f"manual, Resource Consumption). {_POSTGRESQL}",
    )
    yield Option("wal_buffers", "raise", _POSTGRESQL)
    yield Option("max_wal_size", "raise", _POSTGRESQL)


_COMMIT = Option(
    "mount -o commit=60",
    "not advised",
    "000 section 6.4: +15 % on ext4; but a power cut may then take what was written in the last "
    "60 s without a flush, instead of 5 s",
)
_REFUSED: dict[Application, tuple[Option, ...]] = {
    Application.ROCKSDB: (
        Option(
            "WriteOptions::disableWAL",
            "not advised",
            "000 section 6.2: +22 %; but a power cut then takes all that is not yet in a table",
        ),
    ),
    Application.POSTGRESQL: (
        _COMMIT,
        Option(
            "fsync, synchronous_commit, full_page_writes",
            "leave on",
            "off, a power cut takes committed transactions or the whole cluster",
        ),
    ),
}
_ADVICE: dict[Application, Callable[[Configuration, Configuration], Iterator[Option]]] = {
    Application.FIO: _fio,
    Application.ROCKSDB: _rocksdb,
    Application.POSTGRESQL: _postgresql,
}
