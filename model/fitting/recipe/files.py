"""Reading recipes: those that ship, and a user's own."""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from iojoule.datasets.errors import InputError, UnknownDeviceError
from iojoule.datasets.schema import validation_error
from iojoule.datasets.toml_text import toml_of
from iojoule.model.fitting.recipe.document import Recipe


def shipped_recipes() -> list[str]:
    """Names of the recipes that ship, one a profile that ships."""
    folder = resources.files("iojoule.model").joinpath("recipes")
    names = [entry.name[:-5] for entry in folder.iterdir() if entry.name.endswith(".toml")]
    return sorted(set(names) - {"common"})


def load_recipe(name: str) -> Recipe:
    """Load a shipped recipe by name, or one from a TOML file, over the common assumptions.

    Raises:
        UnknownDeviceError: No such recipe ships.
        InputError: The file is not a recipe; the message names file and field.
    """
    folder = resources.files("iojoule.model").joinpath("recipes")
    if name.endswith(".toml"):
        try:
            text = Path(name).read_text(encoding="utf-8")
        except OSError as error:
            raise InputError(f"{name}: cannot be read: {error.strerror}") from None
    elif name in shipped_recipes():
        text = folder.joinpath(f"{name}.toml").read_text(encoding="utf-8")
    else:
        raise UnknownDeviceError(
            f"no recipe named {name!r}; recipes ship for {', '.join(shipped_recipes())}, or give "
            "the path of a .toml file"
        )
    common = tomllib.loads(folder.joinpath("common.toml").read_text(encoding="utf-8"))
    return parse_recipe(text, common, name)


def generic_recipe(device: str, model_name: str) -> Recipe:
    """The common assumptions alone, for a drive that has only measurements."""
    folder = resources.files("iojoule.model").joinpath("recipes")
    common = tomllib.loads(folder.joinpath("common.toml").read_text(encoding="utf-8"))
    common |= {"device": device, "model_name": model_name, "profile_version": "1"}
    return Recipe.model_validate(common)


def parse_recipe(text: str, common: dict[str, Any], where: str) -> Recipe:
    """Overlay a recipe's tables on the common ones.

    Raises:
        InputError: Not TOML or not a recipe.
    """
    try:
        data = toml_of(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{where}: not TOML: {error}") from None
    merged = common | data
    merged["host_paths"] = _overlay(
        common["host_paths"],
        data.get("host_paths", []),
        ("engine", "completion", "submission_polling"),
    )
    for name in ("defaults", "default_sources", "host_operation"):
        merged[name] = common[name] | data.get(name, {})
    try:
        return Recipe.model_validate(merged)
    except ValidationError as error:
        raise validation_error(error, where) from None


def _overlay(
    base: list[dict[str, Any]], over: list[dict[str, Any]], key: tuple[str, ...]
) -> list[dict[str, Any]]:
    rows = {tuple(row.get(name, False) for name in key): row for row in base}
    rows |= {tuple(row.get(name, False) for name in key): row for row in over}
    return list(rows.values())
