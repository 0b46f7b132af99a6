"""What a recommendation means inside the application, from the table of its settings.

Nobody has published how a database's watts follow from the depth and size of its requests. There
are two tuned databases in a thesis (000, chapter 6), which names the options that it changed and
what they gained together (RocksDB: +13 % requests per joule of inserts; PostgreSQL: +13 %
transactions per joule), but not their values. So no value is made up here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from iojoule.api.settings import load, settings_of
from iojoule.datasets.schema import Configuration


class Application(StrEnum):
    """What does the I/O: the names of the tables of settings."""

    FIO = "fio"
    ROCKSDB = "rocksdb"
    POSTGRESQL = "postgresql"
    MYSQL = "mysql"
    MARIADB = "mariadb"
    CEPH = "ceph"
    QEMU = "qemu"
    LIBVIRT = "libvirt"


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
    """What to set in the application: what differs from today's, and what has been published."""
    then, today = _values(application, wanted), _values(application, current)
    options = [
        Option(name, value, f"{why}; today {today[name][0] if name in today else 'not set'}")
        for name, (value, why) in then.items()
        if name not in today or today[name][0] != value
    ]
    options += [
        Option(name, "remove", "has no meaning for the recommended configuration")
        for name in today
        if name not in then
    ]
    return options + [
        Option(one.name, one.value, f"{one.source}: tuned together; values are not published")
        for one in load(application).published
    ]


def refused_of(application: Application) -> list[Option]:
    """What saves energy and is not advised, because a power cut would then take more."""
    return [Option(one.name, one.value, one.source) for one in load(application).refused]


def _values(application: Application, one: Configuration) -> dict[str, tuple[str, str]]:
    """Name of a setting -> its value and what it does."""
    lines = settings_of(application, one, writes=True).settings
    return {line.name: (line.value, line.why) for line in lines}
