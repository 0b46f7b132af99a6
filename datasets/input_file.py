"""Reads files that users name, up to a size: a device that never ends does not fill the memory."""

from __future__ import annotations

import errno
import io
from pathlib import Path

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


def read_input_text(path: Path, encoding: str = "utf-8") -> str:
    """The text of a file, its lines ended as in any text file of Python.

    Raises:
        OSError: As `read_input`.
        UnicodeDecodeError: It is no text of that encoding.
    """
    return io.TextIOWrapper(io.BytesIO(read_input(path)), encoding=encoding).read()
