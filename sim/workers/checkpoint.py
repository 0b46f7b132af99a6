"""Stores results as they are computed, so that interrupted work resumes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from iojoule.datasets.errors import InputError
from iojoule.datasets.input_file import json_of
from iojoule.sim.errors import WorkersLostError
from iojoule.sim.workers.pool import I, Pool, R, S, build

M = TypeVar("M", bound=BaseModel)

SCHEMA_VERSION = 1
FILES = "results*.jsonl"


class Kept(Generic[M]):
    """Results, a line of JSON each, found by a key of what they are results of.

    Args:
        folder: Holds the file; made where it is missing. The files of others in it are read too.
        kind: What a result is.
        part: Tells this file from those of others that compute a part of the results each.

    Raises:
        InputError: It cannot be read or written.
    """

    def __init__(self, folder: Path, kind: type[M], part: str = "") -> None:
        self.path, self.kind = folder / f"results{part}.jsonl", kind
        self._known: dict[str, M] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for path in {*folder.glob(FILES)} - {self.path}:
                for line in path.read_bytes().split(b"\n"):
                    self._read(line)
            lines = self.path.read_bytes().split(b"\n") if self.path.exists() else []
            for line in lines:
                self._read(line)
            self._file = self.path.open("ab")
            if lines and lines[-1]:  # whoever wrote it was ended within a line
                self._file.write(b"\n")
        except OSError as error:
            raise self._unusable(error) from None

    def _read(self, line: bytes) -> None:
        try:
            told = json_of(line)
            if told["schema_version"] == SCHEMA_VERSION:
                self._known[told["key"]] = self.kind.model_validate_json(json.dumps(told["result"]))
        except (ValueError, TypeError, KeyError, ValidationError):
            return  # half a line, or what another version made: computed once more

    def __getitem__(self, key: str) -> M | None:
        """The result of a key, or None."""
        return self._known.get(key)

    def keep(self, key: str, result: M) -> None:
        """Write a result to the file at once.

        Raises:
            InputError: The disk is full.
        """
        self._known[key] = result
        said = {
            "schema_version": SCHEMA_VERSION,
            "key": key,
            "result": result.model_dump(mode="json"),
        }
        try:
            self._file.write(json.dumps(said).encode() + b"\n")
            self._file.flush()
        except OSError as error:
            raise self._unusable(error) from None

    def close(self, *, delete: bool = False) -> None:
        """Close the file; `delete` it and its folder where nobody needs them any more."""
        self._file.close()
        if delete:
            self.path.unlink()
            self.path.parent.rmdir()

    def _unusable(self, error: OSError) -> InputError:
        return InputError(f"{self.path}: cannot be used ({error.strerror}); name another folder")


def key_of(*what: Any) -> str:
    """A key of JSON values that say what is computed; another build of iojoule has other keys."""
    said = json.dumps([build(), *what], sort_keys=True, default=str)
    return hashlib.sha256(said.encode()).hexdigest()[:32]


def map_kept(
    pool: Pool,
    function: Callable[[S, I], R],
    items: Sequence[I],
    *,
    shared: S,
    kept: Kept[Any] | None,
    keys: Sequence[str],
    seconds: Sequence[float] | None = None,
    done: Callable[[int, R], None] | None = None,
) -> list[R]:
    """As `Pool.map`, but what is kept is not computed, and results of the kind kept are.

    Args:
        pool: Where.
        function: See `Pool.map`, as for the others.
        items: What is computed.
        shared: For all items.
        kept: None keeps nothing.
        keys: Of the items.
        seconds: Predicted.
        done: Told of what was kept too.

    Raises:
        WorkersLostError: Says also where results are kept.
    """
    results: dict[int, R] = {}

    def finished(index: int, result: R) -> None:
        results[index] = result
        if done is not None:
            done(index, result)

    missing = []
    for index, key in enumerate(keys):
        found = None if kept is None else kept[key]
        if found is None:
            missing.append(index)
        else:
            finished(index, found)

    def computed(place: int, result: R) -> None:
        if kept is not None and isinstance(result, kept.kind):
            kept.keep(keys[missing[place]], result)
        finished(missing[place], result)

    try:
        pool.map(
            function,
            [items[index] for index in missing],
            shared=shared,
            seconds=None if seconds is None else [seconds[index] for index in missing],
            done=computed,
        )
    except WorkersLostError as error:
        if kept is None:
            raise
        raise WorkersLostError(
            f"{error.message}; {len(results)} of {len(items)} results are kept in "
            f"{kept.path.parent}, from where the same command goes on"
        ) from None
    return [results[index] for index in range(len(items))]
