"""Reads JSON files of users: every fault of syntax or encoding is one `ValueError`."""

from __future__ import annotations

import json
from typing import Any


def json_of(text: str | bytes) -> Any:
    """What a JSON document says.

    Raises:
        ValueError: It is none, or is nested too deeply.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
