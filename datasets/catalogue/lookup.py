"""Finds an SSD model by id, model or alias."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from functools import cache
from importlib.resources import files

from iojoule.datasets.catalogue.drive import Drive
from iojoule.datasets.catalogue.reading import parse_record
from iojoule.datasets.errors import UnknownDeviceError


class Catalogue:
    """SSD models by id, in alphabetical order."""

    def __init__(self, drives: Iterable[Drive]) -> None:
        self._drives = {drive.id: drive for drive in sorted(drives, key=lambda drive: drive.id)}
        self._ids_by_key = {
            _key(name): drive.id
            for drive in self._drives.values()
            for name in (drive.id, drive.model, *drive.aliases)
        }

    @property
    def ids(self) -> tuple[str, ...]:
        """Every id, in order."""
        return tuple(self._drives)

    def __len__(self) -> int:
        return len(self._drives)

    def __iter__(self) -> Iterator[Drive]:
        return iter(self._drives.values())

    def get(self, name: str) -> Drive:
        """Return the model of that id, name or alias; case and punctuation do not matter.

        Raises:
            UnknownDeviceError: No such model; the message names the closest ids.
        """
        id_ = self._ids_by_key.get(_key(name))
        if id_ is None:
            raise UnknownDeviceError(
                f"no SSD model is called {name!r}; the closest are "
                f"{', '.join(self.closest(name))}; `iojoule devices list` shows all"
            )
        return self._drives[id_]

    def closest(self, name: str, count: int = 3) -> tuple[str, ...]:
        """Return up to `count` ids whose id, model or alias is most like `name`."""
        wanted = _key(name)
        matcher = SequenceMatcher(autojunk=False)
        matcher.set_seq2(wanted)
        best: dict[str, float] = {}
        for known, id_ in self._ids_by_key.items():
            matcher.set_seq1(known)
            # a name that contains what was typed beats one that merely shares letters
            score = matcher.ratio() + (1 if wanted and wanted in known else 0)
            best[id_] = max(score, best.get(id_, 0))
        return tuple(sorted(best, key=lambda id_: (-best[id_], id_))[:count])


@cache
def load_catalogue() -> Catalogue:
    """Return the catalogue that ships with iojoule (read once per process, about 30 ms)."""
    folder = files("iojoule.datasets.catalogue") / "drives"
    return Catalogue(
        parse_record(entry.read_text(encoding="utf-8"), f"catalogue/drives/{entry.name}", Drive)
        for entry in folder.iterdir()
        if entry.name.endswith(".toml")
    )


def _key(name: str) -> str:
    """Fold case and drop everything but letters and digits."""
    return "".join(character for character in name.casefold() if character.isalnum())
