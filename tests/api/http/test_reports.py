"""Answers as pages, where the request prefers them."""

import httpx
import pytest

from iojoule.api.http.fleet import EXAMPLE as PLAN
from iojoule.api.http.fleet import FRONTIER_EXAMPLE as FRONTIER
from iojoule.api.http.recommend import EXAMPLE as RECOMMEND
from iojoule.api.http.what_if import EXAMPLE as WHAT_IF
from iojoule.api.reports.report_file import data_of

HTML = {"Accept": "text/html"}


QUESTIONS = {
    "/recommend": (RECOMMEND, "kv-reads-on-"),
    "/what-if": (WHAT_IF, "kv-reads-on-"),
    "/fleet/plan": (PLAN, "rack-plan."),
    "/fleet/frontier": (FRONTIER, "rack-frontier."),
}


@pytest.mark.parametrize("path", QUESTIONS)
def test_the_page_holds_the_answer(service: httpx.Client, path: str) -> None:
    body, name = QUESTIONS[path]
    page = service.post(path, json=body, headers=HTML)
    assert page.status_code == 200, page.text
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["vary"] == "Accept"
    assert "sandbox" in page.headers["content-security-policy"]
    assert page.headers["content-disposition"].startswith(f'attachment; filename="{name}')
    data = data_of(page.text, path)
    assert data["answer"] == service.post(path, json=body).json()
    again = service.post(data["asked"]["operation"], json=data["asked"]["request"])
    assert again.json() == data["answer"]


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("*/*", "application/json"),
        ("application/json, text/html;q=0.9", "application/json"),
        ("text/*", "text/html"),
        ("text/html, application/xhtml+xml, */*;q=0.8", "text/html"),
        ("text/html;q=0, */*", "application/json"),
        ("text/html;q=nonsense", "application/json"),
    ],
)
def test_what_is_preferred_is_answered(service: httpx.Client, accept: str, kind: str) -> None:
    found = service.post("/recommend", json=RECOMMEND, headers={"Accept": accept})
    assert found.headers["content-type"].startswith(kind)


def test_what_goes_wrong_is_a_problem_as_ever(service: httpx.Client) -> None:
    refused = service.post("/recommend", json={"device": "no such drive"}, headers=HTML)
    assert refused.status_code == 422
    assert refused.headers["content-type"] == "application/problem+json"


def test_both_forms_are_described(service: httpx.Client) -> None:
    paths = service.get("/openapi.json").json()["paths"]
    for path in QUESTIONS:
        content = paths[path]["post"]["responses"]["200"]["content"]
        assert set(content) == {"application/json", "text/html"}
        assert "$ref" in content["application/json"]["schema"]
