"""Reports: one file that loads and runs nothing, says what was answered, and can be read back."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from iojoule.api.application.profiles import profile_of
from iojoule.api.application.recommend import RecommendationAnswer, answer
from iojoule.api.application.what_if import what_if
from iojoule.api.application.what_if_response import WhatIfAnswer
from iojoule.api.reports.document import to_html
from iojoule.api.reports.recommendation import report
from iojoule.api.reports.report_file import Asked, data_of
from iojoule.api.reports.sentences import REASONS
from iojoule.api.reports.what_if import report as what_if_report
from iojoule.datasets.errors import InputError, SchemaVersionError
from iojoule.recommender.recommend import Recommender
from iojoule.recommender.request import parse_workload
from iojoule.recommender.what_if.situation import Situation

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)> & \u2028 'quoted\""
QUESTION = {
    "name": HOSTILE,
    "workload": {
        "operation": "read",
        "useful_request_bytes": 4096,
        "demand_operations_per_second": 10_000,
    },
    "current": {"engine": "io_uring", "queue_depth": 4, "jobs": 4, "submission_polling": True},
    "free": {"submission_polling": "all", "queue_depth": [1, 4, 16]},
    "sla": {"latency_p99_ns_max": 2e6},
    "factors": {"electricity_price_per_kwh": 0.3, "currency": "EUR"},
}
FLUSHED = {
    "operation": "write",
    "useful_request_bytes": 4096,
    "demand_operations_per_second": 10,
    "flush_every_writes": 1,
}
EXAMPLES = Path(__file__).parents[3] / "examples"


class Parts(HTMLParser):
    """What a browser would see: elements in order, with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def recommendation(device: str, **changes: object) -> RecommendationAnswer:
    profile = profile_of(device)
    if changes.pop("power", True) is False:
        lacking = dict.fromkeys(("device_power", "host_power", "system_power"))
        profile = profile.model_copy(update=lacking)
    return answer(Recommender(profile), parse_workload(QUESTION | changes))


def asked(device: str, **more: object) -> Asked:
    profile = profile_of(device)
    return Asked(
        at=datetime(2026, 1, 2, 3, 4, tzinfo=UTC),
        operation="/recommend",
        request={"device": device, "workload_profile": QUESTION} | more,
        command=["recommend", "--workload", "my file.toml"],
        sources=tuple(profile.sources),
    )


@pytest.fixture(scope="module")
def found() -> RecommendationAnswer:
    return recommendation("samsung-980-pro-1tb")


@pytest.fixture(scope="module")
def page(found: RecommendationAnswer) -> str:
    return to_html(report(found, asked("samsung-980-pro-1tb")))


def check_alone(page: str) -> None:
    """Well-formed; loads, runs and refers to nothing; every table and drawing is named."""
    parts = Parts(page)
    ElementTree.fromstring(page.split("\n", 1)[1])
    policy = next(one for one in parts.named("meta") if "http-equiv" in one)
    assert policy["http-equiv"] == "Content-Security-Policy"
    told = str(policy["content"])
    assert told.startswith("default-src 'none'; style-src 'unsafe-inline'")
    assert [one.get("type") for one in parts.named("script")] == ["application/json"]
    for tag in ("link", "img", "iframe", "object", "embed", "base", "form"):
        assert not parts.named(tag), tag
    for tag, attributes in parts.elements:
        assert not [name for name in attributes if name.startswith("on")], tag
        assert "src" not in attributes, tag
        for name in ("href", "xlink:href"):
            assert str(attributes.get(name, "#")).startswith("#"), tag
    style = page.partition("<style>")[2].partition("</style>")[0]
    assert "url(" not in style
    assert "@import" not in style
    ids = [str(one["id"]) for _, one in parts.elements if "id" in one]
    assert len(ids) == len(set(ids))
    for drawing in parts.named("svg"):
        assert set(str(drawing["aria-labelledby"]).split()) <= set(ids)
    assert all(one.get("scope") in ("col", "row") for one in parts.named("th"))


def test_the_page_stands_alone_whatever_is_in_it(page: str) -> None:
    check_alone(page)
    assert "alert(1)" in page
    assert "<img" not in page


def test_the_answer_can_be_read_back(page: str, found: RecommendationAnswer) -> None:
    data = data_of(page, "report.html")
    assert RecommendationAnswer.model_validate(data["answer"]) == found
    assert data["kind"] == "recommendation"
    assert data["asked"]["request"]["workload_profile"]["name"] == HOSTILE
    assert data["asked"]["command"] == ["recommend", "--workload", "my file.toml"]


def test_it_says_what_the_answer_says(page: str, found: RecommendationAnswer) -> None:
    assert found.saving is not None
    assert found.saving.verdict == "expected"
    assert f"{found.saving.verdict}: " in page
    assert f"{found.saving.probability:.3g}" in page
    for heading in (
        "The answer",
        "The question",
        "The Pareto front",
        "Why this one",
        "What bounds cost",
        "Put it into effect",
        "Before acting on it",
        "Evidence and versions",
        "The same again",
    ):
        assert f"<h2>{heading}</h2>" in page
    assert "&#39;my file.toml&#39;" in page
    assert "EUR a year" in page
    assert "980pro_fio_randread.csv" in page


def test_the_same_answer_is_the_same_report(page: str, found: RecommendationAnswer) -> None:
    assert to_html(report(found, asked("samsung-980-pro-1tb"))) == page


@pytest.mark.parametrize(
    ("device", "changes", "said"),
    [
        (
            "samsung-860-pro",
            {"current": {"queue_depth": 8}, "free": {"queue_depth": "all"}, "power": False},
            "unknown: the profile has no power for this scope",
        ),
        (
            "samsung-980-pro-1tb",
            {"sla": {"latency_p99_ns_max": 1000}},
            REASONS["infeasible"],
        ),
        (
            "samsung-980-pro-1tb",
            {"workload": FLUSHED, "current": {}},
            REASONS["not_shown_to_hold"],
        ),
        (
            "samsung-980-pro-1tb",
            {"workload": QUESTION["workload"] | {"demand_operations_per_second": 560_000}},
            "unbounded",
        ),
        ("samsung-980-pro-1tb", {"current": {}}, "Lowest expected"),
        ("samsung-980-pro-1tb", {"free": {"power_state": [0]}}, "today"),
        (
            "samsung-980-pro-1tb",
            {"workload": {"operation": "write", "useful_request_bytes": 4096}, "sla": {}},
            "a power cut takes at most",
        ),
    ],
    ids=[
        "no power",
        "infeasible",
        "a flush of unknown cost",
        "near the capacity",
        "no today",
        "nothing to change",
        "writes as fast as possible",
    ],
)
def test_every_kind_of_answer_has_a_report(
    device: str, changes: dict[str, object], said: str
) -> None:
    page = to_html(report(recommendation(device, **changes), asked(device)))
    check_alone(page)
    assert said in page


def test_a_drive_without_power_has_a_report() -> None:
    lacking = dict.fromkeys(("device_power", "host_power", "system_power"))
    device = "samsung-860-pro"
    profile = profile_of(device).model_copy(update=lacking)
    question = QUESTION | {"current": {"queue_depth": 8}, "free": {"queue_depth": "all"}}
    found = answer(Recommender(profile), parse_workload(question))
    page = to_html(report(found, asked(device)))
    check_alone(page)
    assert found.saving is None
    assert "unknown: the profile has no power for this scope" in page


def outcome(**changes: object) -> WhatIfAnswer:
    base = Situation(profile_of("samsung-980-pro-1tb"), parse_workload(QUESTION))
    return what_if(base, changes)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"growth": 1.5, "drives": 2}, "power (drive + CPU)"),
        ({"sla": "p99 < 1 us"}, "nothing meets the SLA"),
        ({"cap": "device power <= 2.7 W for 1 h"}, "Under 2.70 W of drive"),
    ],
)
def test_a_what_if_has_a_report(changes: dict[str, object], said: str) -> None:
    found = outcome(**changes)
    page = to_html(what_if_report(found, asked("samsung-980-pro-1tb", changes=changes)))
    check_alone(page)
    assert said in page
    assert WhatIfAnswer.model_validate(data_of(page, "w.html")["answer"]) == found


def test_what_is_no_report_is_refused(page: str) -> None:
    with pytest.raises(InputError, match=r"x\.html: is no report"):
        data_of("<html></html>", "x.html")
    with pytest.raises(InputError, match="is no report"):
        data_of(page.replace('"report_version"', '"'), "x.html")
    with pytest.raises(SchemaVersionError, match="version 9"):
        data_of(page.replace('"report_version":1', '"report_version":9'), "x.html")


def test_the_commands_write_reports(iojoule: Callable, device: str, tmp_path: Path) -> None:
    asks = ("--device", device, "--workload", EXAMPLES / "kv-reads.toml")
    file = tmp_path / "report.html"
    done = iojoule("recommend", *asks, "--report", file, "-o", "json")
    assert done.code == 0, done.err
    data = data_of(file.read_text("utf-8"), "report.html")
    assert data["answer"] == json.loads(done.out)
    assert data["asked"]["command"][:3] == ["recommend", "--device", device]
    check_alone(file.read_text("utf-8"))
    done = iojoule("what-if", *asks, "-c", "growth=2", "--report", file, "-o", "json")
    assert done.code == 0, done.err
    assert data_of(file.read_text("utf-8"), "report.html")["answer"] == json.loads(done.out)
    done = iojoule(
        "what-if",
        "sweep",
        *asks,
        "--axis",
        "growth=1,2",
        "--axis",
        "drives=1,2",
        "--jobs",
        "1",
        "--out",
        tmp_path / "s.parquet",
        "--report",
        file,
        "-o",
        "json",
    )
    assert done.code == 0, done.err
    page = file.read_text("utf-8")
    check_alone(page)
    assert data_of(page, "report.html")["answer"] == json.loads(done.out)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "s.parquet"]


@pytest.mark.parametrize(
    ("target", "said"), [("a.pdf", "ends in .html"), ("no/a.html", "does not exist")]
)
def test_a_report_that_cannot_be_written_is_refused_first(
    target: str, said: str, iojoule: Callable, device: str, tmp_path: Path
) -> None:
    asks = ("--device", device, "--workload", EXAMPLES / "kv-reads.toml")
    refused = iojoule("recommend", *asks, "--report", tmp_path / target)
    assert refused.code == 3
    assert said in refused.err
    assert not refused.out


def test_a_report_is_acted_on_as_the_answer_is(iojoule: Callable, tmp_path: Path) -> None:
    from iojoule.api.acting.answer_file import read_answer

    file = tmp_path / "report.html"
    made = recommendation("samsung-980-pro-1tb")
    file.write_text(to_html(report(made, asked("samsung-980-pro-1tb"))))
    assert made.recommended is not None
    assert read_answer(file).recommended.configuration == made.recommended.configuration
    other = tmp_path / "other.html"
    other.write_text(to_html(what_if_report(outcome(growth=2), asked("samsung-980-pro-1tb"))))
    with pytest.raises(InputError, match="is no recommendation"):
        read_answer(other)


def test_fleets_have_reports(iojoule: Callable, tmp_path: Path) -> None:
    plan, frontier = tmp_path / "plan.html", tmp_path / "frontier.html"
    done = iojoule(
        "fleet",
        "plan",
        EXAMPLES / "fleet.toml",
        "--budget",
        "6000",
        "--gap",
        "0.05",
        "--report",
        plan,
        "-o",
        "json",
    )
    assert done.code == 0, done.err
    points = tmp_path / "frontier.csv"
    curve = iojoule(
        "fleet",
        "frontier",
        EXAMPLES / "fleet.toml",
        "--points",
        "3",
        "--gap",
        "0.05",
        "--report",
        frontier,
        "--plot",
        points,
        "-o",
        "json",
    )
    assert curve.code == 0, curve.err
    for path, told in ((plan, done), (frontier, curve)):
        page = path.read_text("utf-8")
        check_alone(page)
        assert data_of(page, path.name)["answer"] == json.loads(told.out)
    found = json.loads(curve.out)["points"]
    assert len(points.read_text().splitlines()) == len(found) + 1
