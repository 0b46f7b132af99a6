import csv
import io
from pathlib import Path

import pytest

from iojoule.api.reports.plots import draw_front
from iojoule.datasets.errors import InputError
from iojoule.datasets.profile import load_shipped_profile
from iojoule.recommender.recommend import Recommender
from iojoule.recommender.request import parse_workload
from iojoule.recommender.response import Recommendation


def answer(device: str, **changes: object) -> Recommendation:
    question = {
        "workload": {
            "operation": "read",
            "useful_request_bytes": 4096,
            "demand_operations_per_second": 10_000,
        },
        "current": {"queue_depth": 8, "jobs": 2},
        "free": {"queue_depth": "all", "jobs": "all"},
    }
    return Recommender(load_shipped_profile(device)).recommend(parse_workload(question | changes))


@pytest.fixture(scope="module")
def found() -> Recommendation:
    return answer("samsung-980-pro-1tb", sla={"latency_p99_ns_max": 2e6})


def test_the_same_answer_is_the_same_picture(found: Recommendation, tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg"):
        draw_front(found, tmp_path / name)
    drawn = (tmp_path / "a.svg").read_bytes()
    assert drawn == (tmp_path / "b.svg").read_bytes()
    assert b"<dc:date>" not in drawn
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.svg", "b.svg"]


@pytest.mark.parametrize(("name", "start"), [("a.png", b"\x89PNG"), ("a.pdf", b"%PDF")])
def test_other_kinds_of_picture(
    name: str, start: bytes, found: Recommendation, tmp_path: Path
) -> None:
    draw_front(found, tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(start)


@pytest.mark.parametrize(
    ("device", "changes"),
    [
        ("samsung-860-pro", {}),
        ("samsung-980-pro-1tb", {"sla": {"latency_p99_ns_max": 1000}}),
        ("samsung-980-pro-1tb", {"objective": "edp", "scope": "system"}),
        ("samsung-980-pro-1tb", {"objective": "joules_per_useful_gb", "scope": "device"}),
        ("samsung-980-pro-1tb", {"free": {"power_state": [0]}}),
    ],
    ids=["no power", "infeasible", "edp", "joules", "nothing to change"],
)
def test_every_kind_of_answer_can_be_drawn(
    device: str, changes: dict[str, object], tmp_path: Path
) -> None:
    draw_front(answer(device, **changes), tmp_path / "front.svg")
    assert (tmp_path / "front.svg").stat().st_size > 5000


def test_a_folder_that_vanished_is_an_error_and_leaves_nothing(
    found: Recommendation, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        draw_front(found, tmp_path / "no" / "front.svg")
    assert not list(tmp_path.iterdir())


def test_a_table_holds_what_the_picture_shows(found: Recommendation, tmp_path: Path) -> None:
    draw_front(found, tmp_path / "front.csv")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "front.csv").read_text())))
    assert [row["role"] for row in rows].count("front") == len(found.pareto)
    today = next(row for row in rows if row["role"] == "today")
    tail = found.current.latency_p99_ns
    assert tail is not None
    assert float(today["latency_p99_ns"]) == tail.value
    assert float(today["latency_p99_ns_low"]) == tail.low
    assert today["latency_p99_ns_evidence"] == tail.evidence.value
    assert today["queue_depth"] == "8"
    assert today["submission_polling"] in ("", "false")
