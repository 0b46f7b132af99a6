"""What can be wrong with stored things and with the store itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from iojoule.datasets.errors import InputError, IojouleError


class NotFoundError(InputError):
    """Nothing is stored under that id."""

    exit_code = 40
    http_status = 404
    title = "Not found"


class ConflictError(InputError):
    """The stored thing is in a state in which that cannot be done."""

    exit_code = 41
    http_status = 409
    title = "Conflict"


class ChangedError(InputError):
    """Somebody else changed it since it was read: read it again, then decide anew."""

    exit_code = 42
    http_status = 412
    title = "Changed since it was read"


class UnconditionalError(InputError):
    """A change that must say which state it was decided on (If-Match) does not."""

    exit_code = 43
    http_status = 428
    title = "Precondition required"


class TooLargeError(InputError):
    """An upload is larger than what is taken."""

    exit_code = 44
    http_status = 413
    title = "Too large"


class UnsupportedKindError(InputError):
    """An upload of a kind that is not read."""

    exit_code = 45
    http_status = 415
    title = "Unsupported kind of file"


class UnavailableError(IojouleError):
    """The database cannot be reached; what was asked may be asked again."""

    exit_code = 46
    http_status = 503
    title = "Temporarily unavailable"


class StorageFullError(IojouleError):
    """There is no room for what should be kept; nothing of it was kept."""

    exit_code = 47
    http_status = 507
    title = "Storage full"


class DamagedError(IojouleError):
    """A stored file is not what was stored."""

    exit_code = 48
    http_status = 500
    title = "Stored data are damaged"


class NoKeyError(InputError):
    """Whoever asks shows no key, or none that opens anything."""

    exit_code = 49
    http_status = 401
    title = "No valid key"


class ForbiddenError(InputError):
    """The key that was shown does not allow that."""

    exit_code = 50
    http_status = 403
    title = "Not allowed"


class TooManyError(IojouleError):
    """So much is asked for at the moment that more would only wait; ask again later."""

    exit_code = 51
    http_status = 429
    title = "Too much at the moment"


class WrongHostError(InputError):
    """A request for another host than this one, as a page of a stranger can have a browser send."""

    exit_code = 52
    http_status = 421
    title = "Not this host"


class StrangerError(InputError):
    """A browser sent it for a page of another host, which may not make the service work."""

    exit_code = 55
    http_status = 403
    title = "Not from this page"


class TooLongError(InputError):
    """Computing the answer took longer than one question may take; ask for less at a time."""

    exit_code = 56
    http_status = 422
    title = "Takes too long"


class ExpiredKeyError(NoKeyError):
    """The key that was shown was valid once."""

    exit_code = 57
    title = "Key has expired"


@dataclass(frozen=True)
class Exceeded:
    """The limit of a key that a request meets.

    Attributes:
        name: Of the limit, as `iojoule key` calls it.
        limit: Its value.
        used: How much is used by now.
        frees_in_seconds: When some of it is free again; None: when something ends or is deleted.
    """

    name: str
    limit: float
    used: float
    frees_in_seconds: float | None = None


class LimitReached(Exception):  # noqa: N818 - what three errors have in common, and none itself
    """A limit of the key that was shown is reached."""

    exceeded: Exceeded | None = None

    @classmethod
    def of(cls, message: str, exceeded: Exceeded) -> Self:
        """The error with the limit that it is about."""
        error = cls(message)
        error.exceeded = exceeded
        return error


class RateError(LimitReached, IojouleError):
    """The key asks more often than it may."""

    exit_code = 58
    http_status = 429
    title = "Rate exceeded"


class QuotaError(LimitReached, IojouleError):
    """The owner of the key has used what may be used for now; it frees without their doing."""

    exit_code = 59
    http_status = 429
    title = "Quota used up"


class StorageQuotaError(LimitReached, IojouleError):
    """The owner of the key keeps as much as they may: asking again does not help."""

    exit_code = 60
    http_status = 403
    title = "Storage quota used up"
