"""Reads TOML written by hand: every fault of syntax or encoding is one `InputError`."""

from __future__ import annotations

import tomllib
from typing import Any


def toml_of(text: str) -> dict[str, Any]:
    """What a TOML document says.

    Raises:
        TOMLDecodeError: It is none, is nested too deeply, or has a number of thousands of digits;
            for the latter two tomllib raises what no reader of files expects.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise tomllib.TOMLDecodeError("nested too deeply; write it flatter") from None
    except ValueError as error:  # int() refuses more than 4,300 digits, and dates may be none
        raise tomllib.TOMLDecodeError(f"{error}; write a shorter number") from None
