"""What-ifs over HTTP are those of the command line, but for what reads files or simulates."""

from typing import Any

import httpx
import pytest

from iojoule.api.http.what_if.schemas import EXAMPLE
from iojoule.api.profiles import profile_of
from iojoule.api.what_ifs import what_if
from iojoule.recommender.what_if.situation import Situation
from iojoule.recommender.workload import parse_workload


def asked(service: httpx.Client, changes: dict[str, Any]) -> httpx.Response:
    return service.post("/what-if", json={**EXAMPLE, "changes": changes})


def test_the_answer_is_that_of_the_command_line(service: httpx.Client) -> None:
    found = service.post("/what-if", json=EXAMPLE)
    assert found.status_code == 200, found.text
    base = Situation(profile_of(EXAMPLE["device"]), parse_workload(EXAMPLE["workload_profile"]))
    assert found.json() == what_if(base, EXAMPLE["changes"]).model_dump(mode="json")


def test_no_growth_changes_nothing(service: httpx.Client) -> None:
    found = asked(service, {"growth": 1.0}).json()
    assert found["same_configuration"]
    assert all(one["change"]["value"] == 0 for one in found["differences"])


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"geometry.channels": 4}, "/changes"),
        ({"preset": "/etc/passwd"}, "/changes"),
        ({"grwoth": 2}, "/changes/grwoth"),
        ({"device": "../profile.json"}, None),
    ],
)
def test_what_cannot_be_changed_is_named(
    service: httpx.Client, changes: dict[str, Any], field: str | None
) -> None:
    found = asked(service, changes)
    assert found.status_code in (404, 422)
    assert field is None or found.json()["field"] == field
