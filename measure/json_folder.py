"""A folder whose JSON and text files are written atomically and read with a schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from iojoule.datasets.atomic import write_text_atomically
from iojoule.datasets.schema import validation_error
from iojoule.measure.errors import CampaignError

M = TypeVar("M", bound=BaseModel)


class JsonFolder:
    """The files of one campaign or characterisation.

    Args:
        path: Where it is or will be.
        go_on: How people go on once what kept a file from being written is mended.
    """

    def __init__(self, path: Path, go_on: str) -> None:
        self.path = path
        self._go_on = go_on

    def write(self, name: str, content: BaseModel | dict[str, Any]) -> None:
        """Write a JSON file atomically; raises as `write_text`."""
        data = content.model_dump(mode="json") if isinstance(content, BaseModel) else content
        self.write_text(name, json.dumps(data, indent=1, ensure_ascii=False) + "\n")

    def write_text(self, name: str, text: str) -> None:
        """Write a text file atomically.

        Raises:
            CampaignError: The disk is full or the folder cannot be written.
        """
        path = self.path / name
        try:
            write_text_atomically(path, text)
        except OSError as error:
            raise CampaignError(
                f"{path}: cannot be written ({error.strerror}); nothing measured so far is lost: "
                f"make room and {self._go_on}"
            ) from None

    def read(self, name: str, kind: type[M]) -> M:
        """Read a JSON file of the folder.

        Raises:
            CampaignError: It is missing, damaged or of a newer version.
        """
        path = self.path / name
        try:
            data = json.loads(path.read_text())
        except (OSError, ValueError) as error:
            raise CampaignError(f"{path}: cannot be read ({error})") from None
        field = kind.model_fields.get("schema_version")
        newest = field.default if field is not None else 1
        if isinstance(data, dict) and not 1 <= data.get("schema_version", 1) <= newest:
            raise CampaignError(f"{path}: was written by a newer iojoule; upgrade")
        try:
            return kind.model_validate(data)
        except ValidationError as error:
            raise CampaignError(validation_error(error, str(path)).message) from None
