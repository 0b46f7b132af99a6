"""Real drives as configurations of the simulator; every number names its source."""

from __future__ import annotations

from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path

from iojoule.datasets.errors import InputError

_SUFFIX = ".toml"


def preset_names() -> list[str]:
    """Every preset, in order of name."""
    return sorted(
        entry.name.removesuffix(_SUFFIX)
        for entry in files(__name__).iterdir()
        if entry.name.endswith(_SUFFIX)
    )


def preset_path(name: str) -> Path:
    """The file of a preset.

    Raises:
        InputError: There is none of that name; the message names the closest.
    """
    names = preset_names()
    if name in names:
        return Path(str(files(__name__).joinpath(name + _SUFFIX)))
    close = get_close_matches(name, names, n=1)
    meant = f"did you mean {close[0]}?" if close else f"presets are {', '.join(names)}"
    raise InputError(f"{name}: there is neither such a file nor such a preset; {meant}")


def drive_path(named: str | Path) -> Path:
    """The file that is named, or the preset of that name where there is no such file.

    Raises:
        InputError: It is neither.
    """
    path = Path(named)
    if path.exists() or path.suffix or len(path.parts) > 1:
        return path
    return preset_path(str(named))
