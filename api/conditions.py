"""The conditions of the drive that a question is about, from a file and from options."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from iojoule.datasets.errors import InputError
from iojoule.datasets.schema import AskedConditions, validation_error
from iojoule.datasets.toml_text import toml_of


def read_conditions(file: Path | None, options: Mapping[str, Any]) -> AskedConditions:
    """Read a TOML file of conditions and lay the options over it; what is left out is unknown.

    Raises:
        InputError: Missing, not TOML, or no conditions of the schema; names file and field.
    """
    stated: dict[str, Any] = {}
    if file is not None:
        try:
            stated = toml_of(file.read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(f"{file}: cannot be read ({error.strerror}); check the path") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InputError(f"{file}: not TOML: {error}") from None
    try:
        return AskedConditions.model_validate(stated | dict(options))
    except ValidationError as error:
        raise validation_error(error, str(file) if file is not None else "conditions") from None
