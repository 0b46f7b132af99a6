"""Ids of stored things: their order is the order in which they were made."""

from __future__ import annotations

import re
import secrets
import time

_FORM = re.compile(r"[0-9a-f]{28}")


def new_id() -> str:
    """Milliseconds since 1970 (48 bits), then 64 random bits, in hexadecimal."""
    return f"{time.time_ns() // 1_000_000:012x}{secrets.token_hex(8)}"


def is_id(text: str) -> bool:
    """Whether a text has the form of an id, so that it may name a folder."""
    return _FORM.fullmatch(text) is not None
