"""Who asks for something: what they may read and change, within which limits, and by what name."""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

from sqlalchemy import ColumnElement, Table, or_, true

from iojoule.api.state.errors import ForbiddenError


class Origin(StrEnum):
    """By which way something was asked for."""

    KEY = "key"
    """Over HTTP, with an API key."""

    OPEN = "open"
    """Over HTTP, of a service that asks for no key."""

    LOCAL = "local"
    """At the command line, by whoever may write the state."""

    SERVICE = "service"
    """By nobody: the service and its workers do it by themselves."""


@dataclass(frozen=True)
class Limits:
    """What a key may use; None: as much as there is.

    Attributes:
        requests_per_second: On average.
        burst: Requests at once; None: those of one second, at least one.
        jobs_waiting_max: Jobs of the owner that wait at the same time.
        stored_bytes_max: Of the owner's datasets and results.
        compute_seconds_max: For which workers run the owner's jobs, each day (UTC).
    """

    requests_per_second: float | None = None
    burst: int | None = None
    jobs_waiting_max: int | None = None
    stored_bytes_max: int | None = None
    compute_seconds_max: float | None = None


@dataclass(frozen=True)
class Caller:
    """Who asks, and in which request.

    Attributes:
        owner: To whom belongs what they make; None: to nobody, and everybody may read it.
        sees_all: Whether they may read and change what belongs to others.
    """

    origin: Origin
    owner: str | None = None
    key_id: str | None = None
    sees_all: bool = True
    limits: Limits = field(default_factory=Limits)
    os_user: str | None = None
    request_id: str | None = None
    remote_address: str | None = None

    @classmethod
    def local(cls) -> Self:
        """The user of the operating system who runs this command."""
        number = os.getuid()
        try:
            name = pwd.getpwuid(number).pw_name
        except KeyError:
            name = str(number)
        return cls(Origin.LOCAL, os_user=name)

    def may_read(self, table: Table) -> ColumnElement[bool]:
        """The condition on rows of a table that has `owner` and `shared`."""
        if self.sees_all:
            return true()
        return or_(table.c.shared, table.c.owner == self.owner)

    def refuse_change(self, owner: str | None, what: str) -> None:
        """Return where they may change what belongs to an owner; raises ForbiddenError."""
        if not self.sees_all and owner != self.owner:
            whose = "nobody" if owner is None else owner
            raise ForbiddenError(
                f"{what} is shared with you and belongs to {whose}; only its owner and admins "
                "change it"
            )


SERVICE = Caller(Origin.SERVICE)
