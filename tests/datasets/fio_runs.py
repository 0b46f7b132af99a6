"""Real output of fio 3.33 (fio/*.json, shortened), and changed copies of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from iojoule.datasets.errors import InputError
from iojoule.datasets.importers.fio import import_fio
from iojoule.datasets.schema import Measurement
from iojoule.datasets.store import Dataset

RUNS = Path(__file__).parent / "fio"

Document = dict[str, Any]


def document(name: str) -> Document:
    text = (RUNS / f"{name}.json").read_text()
    found: Document = json.loads(text[text.index("{") :])
    return found


def changed(tmp_path: Path, name: str, change: Callable[[Document], object]) -> Path:
    """A copy of a run in which something is different."""
    run = document(name)
    change(run)
    path = tmp_path / f"{name}.json"
    path.write_text(json.dumps(run))
    return path


def only(dataset: Dataset) -> Measurement:
    (measurement,) = dataset.measurements()
    return measurement


def complaint(path: Path, kind: type[InputError] = InputError) -> str:
    with pytest.raises(kind) as caught:
        import_fio([path], strict=True)
    assert type(caught.value) is kind
    assert str(path) in caught.value.message
    return caught.value.message
