"""What every kind of change is: names of what it changes, and what it does to a situation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from iojoule.datasets.errors import InputError
from iojoule.recommender.what_if.situation import ProfileOf, Situation

Apply = Callable[[Situation, Mapping[str, Any], ProfileOf], Situation]
"""Takes a situation, the fields of its kind with their new values, and what finds profiles."""

ApplyOne = Callable[[Situation, str, Any, ProfileOf], Situation]
"""Likewise one field and its value."""


def one_by_one(apply: ApplyOne) -> Apply:
    """Makes the changes of a kind in the order of their names."""

    def apply_all(
        situation: Situation, values: Mapping[str, Any], profile_of: ProfileOf
    ) -> Situation:
        for field in sorted(values):
            situation = apply(situation, field, values[field], profile_of)
        return situation

    return apply_all


@dataclass(frozen=True)
class Kind:
    """One kind of change.

    Attributes:
        names: What it is called: a field, or where it ends in a dot the beginning of one.
        says: What it changes, with an example of a value.
        apply: Changes the situation; raises InputError with the field where it cannot.
        simulated: Whether an answer needs the simulator.
    """

    names: tuple[str, ...]
    says: str
    apply: Apply
    simulated: bool = False

    def takes(self, field: str) -> bool:
        """Whether a field is of this kind."""
        return any(
            field.startswith(name) if name.endswith(".") else field == name for name in self.names
        )


def number(field: str, value: Any, *, least: float = 0.0) -> float:
    """The value as a number.

    Raises:
        InputError: It is none, or not above `least`.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > least:
        raise InputError(f"{field}: {value!r} must be a number above {least:g}", field=field)
    return float(value)


def whole(field: str, value: Any) -> int:
    """The value as a whole number from 1 on.

    Raises:
        InputError: It is none.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
        raise InputError(f"{field}: {value!r} must be a whole number", field=field)
    if value < 1:
        raise InputError(f"{field}: {value!r} must be 1 or more", field=field)
    return int(value)
