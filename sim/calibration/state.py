"""What a calibration has simulated so far, in a folder: a run that was killed goes on there."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.atomic import write_text_atomically
from iojoule.datasets.errors import InputError

Floats = NDArray[np.float64]

SCHEMA_VERSION = 1


class CalibrationFolder:
    """Simulated designs by the hash of their parameters, one JSON file each.

    Args:
        path: The folder; None keeps nothing.
        plan: What is calibrated on what; another plan may not go on in the same folder.

    Raises:
        InputError: The folder holds another calibration, or cannot be written.
    """

    def __init__(self, path: Path | None, plan: dict[str, Any]) -> None:
        self.path = path
        if path is None:
            return
        text = json.dumps({"schema_version": SCHEMA_VERSION, **plan}, indent=1, sort_keys=True)
        kept = path / "plan.json"
        try:
            path.mkdir(parents=True, exist_ok=True)
            if kept.is_file() and kept.read_text(encoding="utf-8") != text:
                raise InputError(
                    f"{path}: holds the state of another calibration (other measurements, drive, "
                    "parameters or version); name another folder, or delete it to begin again"
                )
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{path}: cannot be used ({error}); name another folder") from None
        if not kept.is_file():
            _write(kept, text)

    def read(self, cube: Floats) -> Floats | None:
        """The outputs at a point of the cube, or None where it was not simulated yet."""
        if self.path is None:
            return None
        try:
            told = json.loads((self.path / _name(cube)).read_bytes())
            return np.array(told["outputs"], dtype=float)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError):
            return None  # half a file of another program's making: simulated once more

    def write(self, cube: Floats, outputs: Floats) -> None:
        """Keep the outputs of a point of the cube.

        Raises:
            InputError: The disk is full or the folder cannot be written.
        """
        if self.path is not None:
            said = {"cube": cube.tolist(), "outputs": outputs.tolist()}
            _write(self.path / _name(cube), json.dumps(said))


def _name(cube: Floats) -> str:
    return f"run-{hashlib.sha256(np.ascontiguousarray(cube).tobytes()).hexdigest()[:20]}.json"


def _write(path: Path, text: str) -> None:
    try:
        write_text_atomically(path, text)
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written ({error.strerror}); make room and run the same command "
            "again: what was simulated is kept"
        ) from None
