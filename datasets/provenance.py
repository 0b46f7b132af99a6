"""Where a dataset came from: its source files, what was doubted and what was left out."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field

from iojoule import __version__
from iojoule.datasets.atomic import output_file, refuse_other_kinds
from iojoule.datasets.errors import InputError
from iojoule.datasets.input_file import json_of, read_input
from iojoule.datasets.schema import SCHEMA_VERSION


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SourceFile(_Record):
    """One file the measurements were read from.

    Attributes:
        name: Its name without the folders of the machine it was read on.
        sha256: Hash of its content, in hexadecimal.
        licence: Terms its publisher states (SPDX name), None = unknown.
        citation: Whom to cite.
        url: Where it was published.
    """

    name: str
    sha256: str
    licence: str | None = None
    citation: str | None = None
    url: str | None = None

    @classmethod
    def of(cls, path: Path, *, name: str | None = None, **facts: str | None) -> Self:
        """Describe the file at `path`.

        Raises:
            InputError: The file cannot be read.
        """
        try:
            with path.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError as error:
            raise unreadable(path, error) from None
        return cls(name=name or path.name, sha256=digest, **facts)


class ExcludedRow(_Record):
    """A row (or run) that was read and deliberately left out."""

    source: str
    row: int | None = None
    reason: str


class Provenance(_Record):
    """What a dataset rests on; written into its metadata file."""

    schema_version: int = SCHEMA_VERSION
    created_utc: datetime = Field(default_factory=lambda: datetime.now(UTC))
    tool: str = f"iojoule {__version__}"
    importer: str
    sources: tuple[SourceFile, ...] = ()
    warnings: tuple[str, ...] = ()
    excluded: tuple[ExcludedRow, ...] = ()

    def with_warnings(self, extra: Iterable[str]) -> Provenance:
        """The same provenance with further warnings."""
        return self.model_copy(update={"warnings": (*self.warnings, *extra)})

    @staticmethod
    def merged(parts: Sequence[Provenance]) -> Provenance:
        """The provenance of several datasets put one after the other; sources named once."""
        return Provenance(
            created_utc=max(part.created_utc for part in parts),
            importer=" + ".join(dict.fromkeys(part.importer for part in parts)),
            sources=tuple(dict.fromkeys(item for part in parts for item in part.sources)),
            warnings=tuple(item for part in parts for item in part.warnings),
            excluded=tuple(item for part in parts for item in part.excluded),
        )


DATASET_FORMAT = "iojoule-dataset"
"""What the metadata file of a dataset says it is."""


def keep_other_documents(path: Path, *, of_dataset: bool) -> None:
    """Refuse to write a document over one of another kind: a dataset and a profile end in .json.

    Args:
        path: Where to write.
        of_dataset: Whether what is to be written is the metadata file of a dataset.

    Raises:
        InputError: There is another document, a folder or a special file; names it.
    """
    with output_file(path):
        refuse_other_kinds(path)  # a pipe would be waited for
    try:
        there = json_of(read_input(path))
    except (OSError, ValueError):
        return
    if not isinstance(there, dict):
        return
    if not of_dataset and there.get("format") == DATASET_FORMAT:
        raise InputError(
            f"{path}: is the metadata file of the dataset {path.with_suffix('')}; name another file"
        )
    if of_dataset and there.get("format") != DATASET_FORMAT:
        raise InputError(
            f"{path}: is no metadata file of a dataset, and would be overwritten; name the dataset "
            "otherwise or remove the file"
        )


def unreadable(path: Path, error: OSError) -> InputError:
    """The one message for a file that cannot be opened."""
    if isinstance(error, FileNotFoundError):
        return InputError(f"{path}: no such file; check the path")
    if isinstance(error, IsADirectoryError):
        return InputError(f"{path}: is a folder, a file was expected; name a file in it")
    return InputError(f"{path}: cannot be read ({error.strerror}); check its permissions")
