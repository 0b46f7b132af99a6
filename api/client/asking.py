"""How something that is asked is put into a request."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import BaseModel


def plain(asked: BaseModel | Mapping[str, Any] | str) -> Any:
    """Something that is asked, as values; what a model was not told stays unsaid."""
    if isinstance(asked, Mapping | str):
        return asked
    return asked.model_dump(mode="json", exclude_unset=True)


def named(key: str | None) -> dict[str, str]:
    """The header that names a request; None: a name that nothing else has."""
    return {"Idempotency-Key": key or uuid.uuid4().hex}
