"""Reading the frozen list of findings, and proving that it is the frozen one."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import resources

from pydantic import ValidationError

from iojoule.datasets.errors import InputError
from iojoule.datasets.findings.finding import Paper
from iojoule.datasets.schema import validation_error
from iojoule.datasets.toml_text import toml_of

FROZEN_SHA256 = "5566a0910159be7f2af3ae0bf62ea5234e615e756b5397aa7435e1d1a31c924b"
"""SHA-256 over the papers' files in order of name, as they stood before any model was judged."""


def parse_paper(text: str, where: str) -> Paper:
    """Read one paper's findings from TOML.

    Raises:
        InputError: Not TOML or not a list of findings; names file and field.
    """
    try:
        return Paper.model_validate(toml_of(text))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{where}: not TOML: {error}") from None
    except ValidationError as error:
        raise validation_error(error, where) from None


@cache
def frozen_papers() -> tuple[Paper, ...]:
    """The frozen list, one paper after the other."""
    return tuple(parse_paper(text.decode(), name) for name, text in _files())


def frozen_sha256() -> str:
    """Digest of the list as it is now; it differs from `FROZEN_SHA256` once a row is changed."""
    digest = hashlib.sha256()
    for _, text in _files():
        digest.update(text)
    return digest.hexdigest()


def _files() -> Iterator[tuple[str, bytes]]:
    folder = resources.files("iojoule.datasets").joinpath("findings")
    for entry in sorted(folder.iterdir(), key=lambda one: one.name):
        if entry.name.endswith(".toml"):
            yield entry.name, entry.read_bytes()
