import copy
import itertools
from pathlib import Path
from typing import Any

import httpx
import pytest

from iojoule.api.application.fleet import FleetAnswer
from iojoule.api.http.fleet import EXAMPLE, FRONTIER_EXAMPLE
from iojoule.recommender.fleet.document import Fleet, load_fleet
from tests.api.http.test_problems import problem

TEXT = {"Content-Type": "text/plain"}


def test_a_fleet_is_planned_within_its_limits(service: httpx.Client) -> None:
    answer = FleetAnswer.model_validate_json(service.post("/fleet/plan", json=EXAMPLE).content)
    (plan,) = answer.plans
    (rack,) = plan.domains
    assert rack.percentile_watts <= EXAMPLE["fleet"]["domains"][0]["limit_watts"]


@pytest.mark.parametrize(
    ("table", "field", "value", "status"),
    [
        ("drives", "device", "nothing", 404),
        ("drives", "domain", "nowhere", 422),
        ("classes", "demand_bytes_per_second", -1, 422),
        ("classes", "demand_bytes_per_second", 5e15, 422),
        ("classes", "demand_bytes_per_second", 1e18, 422),
        ("classes", "demand_bytes_per_second", 1e30, 422),
    ],
)
def test_what_cannot_be_planned_is_said(
    service: httpx.Client, table: str, field: str, value: Any, status: int
) -> None:
    question = copy.deepcopy(EXAMPLE)
    question["fleet"][table][0][field] = value
    found = problem(service.post("/fleet/plan", json=question), status)
    assert found["detail"]


def test_a_fleet_that_takes_long_is_left_to_the_command_line(service: httpx.Client) -> None:
    question = copy.deepcopy(EXAMPLE)
    (group,) = question["fleet"]["drives"]
    question["fleet"]["drives"] = [{**group, "name": f"group-{n}"} for n in range(101)]
    found = problem(service.post("/fleet/plan", json=question), 422)
    assert found["field"] == "/fleet/drives"


def test_more_watts_never_buy_less(service: httpx.Client) -> None:
    points = service.post("/fleet/frontier", json=FRONTIER_EXAMPLE).json()["points"]
    served = [one["served_bytes_per_second"] for one in points]
    assert len(served) >= 5
    assert all(later >= 0.999 * earlier for earlier, later in itertools.pairwise(served))


def test_a_fleet_names_no_file_of_the_service(service: httpx.Client) -> None:
    question = copy.deepcopy(EXAMPLE)
    question["fleet"]["classes"][0]["workload"] = "oltp.toml"
    found = problem(service.post("/fleet/plan", json=question), 422)
    assert found["field"] == "/fleet/classes/0/workload"


def test_a_fleet_file_is_read_as_the_command_reads_it(service: httpx.Client, root: Path) -> None:
    path = root / "examples" / "fleet.toml"
    sent = service.post("/fleet", content=path.read_bytes(), headers=TEXT)
    assert Fleet.model_validate(sent.json()) == load_fleet(path)
    again = service.post("/fleet", content=sent.content, headers=TEXT)
    assert again.json() == sent.json()


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ('[[domain]]\nname = "a"\n[[class]]\nname = "b"\nworkload = "/etc/passwd"\n', "workload"),
        ("[[domain", ""),
        ("{", ""),
        ('domain = 1\nclass = "x"\n', ""),
        ("\xff", ""),
    ],
)
def test_what_is_no_fleet_file_is_said(service: httpx.Client, text: str, field: str) -> None:
    found = problem(service.post("/fleet", content=text.encode("latin-1"), headers=TEXT), 422)
    assert found.get("field", "").endswith(field)
