"""Reads files that users name, and the JSON and TOML in them.

Files are read up to a size: a device that never ends does not fill the memory. Every fault of
syntax or encoding is one kind of error.
"""

from __future__ import annotations

import errno
import io
import json
import tomllib
from pathlib import Path
from typing import Any

INPUT_BYTES_MAX = 512 << 20

_PIECE_BYTES = 1 << 20


def read_input(path: Path, most: int | None = None) -> bytes:
    """The content of a file, or of a pipe until it ends.

    Args:
        path: The file.
        most: Bytes that it may have; None: INPUT_BYTES_MAX.

    Raises:
        OSError: It is missing, unreadable or larger.
    """
    most = INPUT_BYTES_MAX if most is None else most
    pieces, left = [], most
    with path.open("rb") as stream:
        while piece := stream.read(_PIECE_BYTES):
            left -= len(piece)
            if left < 0:
                reason = f"larger than {most >> 20} MiB, the most that is read of such a file"
                raise OSError(errno.EFBIG, reason, str(path))
            pieces.append(piece)
    return b"".join(pieces)


def read_input_text(path: Path) -> str:
    """The text of a file, its lines ended as in any text file of Python.

    Raises:
        OSError: As `read_input`.
        UnicodeDecodeError: It is no UTF-8.
    """
    return io.TextIOWrapper(io.BytesIO(read_input(path)), encoding="utf-8").read()


def json_of(text: str | bytes) -> Any:
    """What a JSON document says.

    Raises:
        ValueError: It is none, or is nested too deeply.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


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
