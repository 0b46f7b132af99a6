"""Writing a file so that whoever reads it finds the old text or the new one, never a part."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def write_text_atomically(path: Path, text: str) -> None:
    """Write a UTF-8 text file beside its place, sync it to the disk and move it there.

    Raises:
        OSError: The folder is missing, full or may not be written; the old file stays as it was.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with temporary.open("w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
