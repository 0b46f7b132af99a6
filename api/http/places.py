"""Says where in a request body an error belongs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from iojoule.datasets.errors import IojouleError


@contextmanager
def within(place: str) -> Iterator[None]:
    """Put the fields that errors name below `place`, a dotted path into the body."""
    try:
        yield
    except IojouleError as error:
        field = place if error.field is None else f"{place}.{error.field}"
        raise type(error)(error.message, field=field) from None
