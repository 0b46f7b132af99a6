"""Atomic writing: a reader sees the old file or the new one, never a part."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from io import BufferedRandom
from pathlib import Path
from typing import TypeVar

Told = TypeVar("Told")


def write_atomically(path: Path, write: Callable[[BufferedRandom], Told]) -> Told:
    """Write a file beside its place, sync it to the disk, move it there and sync the folder.

    Args:
        path: The file to replace or make.
        write: Writes it to a stream that it may also read back.

    Returns:
        What `write` returns.

    Raises:
        OSError: The folder is missing, full or may not be written; the old file stays as it was.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with temporary.open("x+b") as stream:
            result = write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
        sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)
    return result


def write_text_atomically(path: Path, text: str) -> None:
    """Likewise a UTF-8 text file."""
    write_atomically(path, lambda stream: stream.write(text.encode()))


def sync_folder(folder: Path) -> None:
    """Sync a folder to the disk, so that the names in it last."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
