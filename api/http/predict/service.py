"""From a request to predictions."""

from __future__ import annotations

import re
from typing import Any

from iojoule.api.application.fields import FIELDS
from iojoule.api.application.predict import ask
from iojoule.api.http import figures
from iojoule.api.http.predictors import ServedProfiles
from iojoule.datasets.errors import InputError, within

_ROW = re.compile(r"configurations\[(\d+)\]: ")


def predict(profiles: ServedProfiles, device: str, stated: list[dict[str, Any]]) -> dict[str, Any]:
    """The answer as plain values.

    Args:
        profiles: What answers.
        device: Id, model or alias of a drive.
        stated: Configurations, each the fields that it states.

    Raises:
        UnknownDeviceError, NoProfileError: Nothing can be predicted for the drive.
        InputError: A configuration cannot exist; names its place.
    """
    with within("device"):
        predictors = profiles.predictors_for(device)
    named = {name for one in stated for name in one}
    names = [name for name in FIELDS if name in named]
    rows = [[one.get(name) for name in names] for one in stated]
    try:
        answers = ask(
            predictors, names, rows, where=lambda row: f"configurations[{row}]", place="the body"
        )
    except InputError as error:
        match = _ROW.match(error.message)
        if match is None or error.field is None:
            raise
        place = f"configurations.{match[1]}.{error.field}"
        raise type(error)(error.message, field=place) from None
    figures.count_predictions(answers.evidence)
    return answers.document()
