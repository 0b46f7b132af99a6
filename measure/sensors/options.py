"""What a user writes to name a sensor: `NAME[:ADDRESS][,key=value ...]`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from iojoule.measure.errors import SensorError

T = TypeVar("T")


@dataclass(frozen=True)
class Options:
    """One sensor as named.

    Attributes:
        text: As the user wrote it.
        name: Which instrument.
        address: What follows the first colon; empty where there is none.
        values: The keys.
    """

    text: str
    name: str
    address: str
    values: Mapping[str, str] = field(default_factory=dict)

    def known(self, *keys: str) -> None:
        """Refuse other keys than these.

        Raises:
            SensorError: It names what is known.
        """
        unknown = sorted(set(self.values) - set(keys))
        if unknown:
            can = f"it knows {', '.join(keys)}" if keys else "it takes none"
            raise SensorError(f"{self.text}: {self.name} has no option {unknown[0]!r}: {can}")

    def needed_address(self, example: str) -> str:
        """The address.

        Raises:
            SensorError: There is none.
        """
        if not self.address:
            raise SensorError(f"{self.text}: {self.name} needs an address, such as {example}")
        return self.address

    def get(self, key: str, convert: Callable[[str], T]) -> T | None:
        """A key's value; None where it is not given.

        Raises:
            SensorError: It cannot be converted.
        """
        if key not in self.values:
            return None
        try:
            return convert(self.values[key])
        except ValueError as error:
            raise SensorError(
                f"{self.text}: {key}={self.values[key]} is not what it must be ({error})"
            ) from error

    def many(self, key: str, convert: Callable[[str], T]) -> list[T] | None:
        """A key's values, `+` between them."""
        return self.get(key, lambda text: [convert(part) for part in text.split("+")])


def parse(text: str) -> Options:
    """Read what a user wrote.

    Raises:
        SensorError: It is not of that form.
    """
    head, *rest = text.split(",")
    name, _, address = head.partition(":")
    values = {}
    for part in rest:
        key, equals, value = part.partition("=")
        if not equals or not key or not value or key in values:
            raise SensorError(
                f"{text!r}: {part!r} is not an option of the form key=value, each at most once"
            )
        values[key] = value
    return Options(text, name.strip(), address, values)
