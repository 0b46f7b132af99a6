"""The laws judged on shipped profiles, drives of the catalogue and profiles of a user's own."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from iojoule.api.application.predict import ask
from iojoule.api.application.predictors import Predictors
from iojoule.api.application.profiles import profile_in, profile_of
from iojoule.api.application.recommend import answer
from iojoule.datasets.catalogue import load_catalogue
from iojoule.datasets.errors import InputError
from iojoule.datasets.profile import DeviceProfile, shipped_profiles
from iojoule.recommender.recommend import Recommender
from iojoule.recommender.request import parse_workload
from iojoule.recommender.validation.laws import LAWS, Law, Served, Subject


class Documents(Served):
    """The documents that the command line and the service hand out, as JSON carries them."""

    def recommend(self, profile: DeviceProfile, workload: dict[str, Any]) -> dict[str, Any]:
        """A recommendation, through JSON; raises ValueError where JSON cannot carry it."""
        found = answer(Recommender.under(profile), parse_workload(workload)).model_dump(mode="json")
        carried: dict[str, Any] = json.loads(json.dumps(found, allow_nan=False))
        return carried

    def predict(
        self, profile: DeviceProfile, rows: Sequence[dict[str, Any]]
    ) -> list[dict[str, Any]]:
        """Predictions, one record a row."""
        names = sorted({name for row in rows for name in row})
        cells = [[row.get(name) for name in names] for row in rows]
        answers = ask(Predictors(profile), names, cells, where=lambda row: f"row {row}", place="")
        carried: list[dict[str, Any]] = json.loads(
            json.dumps(list(answers.records()), allow_nan=False)
        )
        return carried


def subjects(devices: Sequence[str], files: Sequence[Path]) -> Iterator[Subject]:
    """What is judged: the drives and profiles named, else every profile that ships.

    Raises:
        UnknownDeviceError, NoProfileError: No such drive, or nothing can be expected of it.
        InputError: A file is missing or is no profile.
    """
    named = list(devices) or ([] if files else list(shipped_profiles()))
    real = [drive.id for drive in load_catalogue() if drive.drive_class != "emulated"]
    profiles = [*map(profile_in, files), *map(profile_of, named)]
    yield from (Subject(profile, profile_of, real, Documents()) for profile in profiles)


def laws_of(numbers: Sequence[int]) -> list[Law]:
    """The laws of those numbers; every law where none is named.

    Raises:
        InputError: There is no such law.
    """
    known = {one.number: one for one in LAWS}
    for number in numbers:
        if number not in known:
            raise InputError(
                f"--law {number}: there is no such law; there are {min(known)} to {max(known)}",
                field="law",
            )
    return [known[number] for number in sorted(set(numbers) or known)]
