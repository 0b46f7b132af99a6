"""Importers: from what people have to a dataset.

A new importer is one new file with a function of the form below and one line in `IMPORTERS`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from iojoule.datasets.errors import InputError

if TYPE_CHECKING:  # what reads tables needs the extra `fit`
    from iojoule.datasets.store import Dataset

IMPORTERS: dict[str, str] = {
    "csv": "iojoule.datasets.importers.csv:run_import",
    "fio": "iojoule.datasets.importers.fio:run_import",
    "parquet": "iojoule.datasets.importers.parquet:run_import",
    "thesis": "iojoule.datasets.importers.thesis:run_import",
}
"""Name of an importer -> module:function; the module is loaded when it is used."""


@dataclass(frozen=True)
class ImportOptions:
    """What the caller of an importer may say beside the files.

    Attributes:
        columns: The column map of a table.
        keep_going: Leave out what cannot be read and name it in the provenance.
        strict: Stop at the first run that cannot be read (fio, which otherwise leaves it out).
        constants: Fields that the files do not state, such as device_model or power_state.
        power: Log of a power meter that ran beside fio, as `parse_power_log` reads it.
    """

    columns: Path | None = None
    keep_going: bool = False
    strict: bool = False
    constants: Mapping[str, Any] = field(default_factory=dict)
    power: str | None = None


class Importer(Protocol):
    """Turns files into a dataset; raises InputError (or a subclass) with place and remedy."""

    def __call__(self, paths: Sequence[Path], options: ImportOptions) -> Dataset:
        """Read `paths`."""


def importer(name: str) -> Importer:
    """The importer of that name.

    Raises:
        InputError: There is none.
    """
    if name not in IMPORTERS:
        raise InputError(f"no importer {name!r}; there are: {', '.join(sorted(IMPORTERS))}")
    module, function = IMPORTERS[name].split(":")
    return cast(Importer, getattr(import_module(module), function))
