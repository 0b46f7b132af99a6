"""A workload profile as the text of a file that `iojoule recommend --workload` takes."""

from __future__ import annotations

import json
from typing import Any

import tomlkit

from iojoule.recommender.workload import WorkloadProfile


def as_data(profile: WorkloadProfile) -> dict[str, Any]:
    """What the profile states, as plain data; what it leaves open is left out."""
    data: dict[str, Any] = profile.model_dump(mode="json", exclude_none=True, exclude_unset=True)
    return {"name": profile.name, **data}


def as_toml(profile: WorkloadProfile) -> str:
    """The profile as TOML."""
    data = as_data(profile)
    notes = data.pop("notes", [])
    document = tomlkit.document()
    document["name"] = data.pop("name")
    if notes:
        listed = tomlkit.array()
        listed.extend(notes)
        document["notes"] = listed.multiline(multiline=True)
    tables = {name: value for name, value in data.items() if isinstance(value, dict)}
    for name, value in data.items():
        if name not in tables:
            document[name] = value
    for name, table in tables.items():
        if table:
            document[name] = table
    return tomlkit.dumps(document)


def as_json(profile: WorkloadProfile) -> str:
    """The profile as JSON."""
    return json.dumps(as_data(profile), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
