"""What the service says of a drive: its power law and its model card."""

import httpx
import pytest


def test_a_power_law_has_its_measurements(service: httpx.Client, device: str) -> None:
    found = service.get(f"/devices/{device}/power-law").json()
    assert found["law"]["measurements_total"] == len(found["law"]["measurements"])
    assert {one["operation"] for one in found["law"]["lines"]} == {"read", "write"}
    assert all(one["licence"] for one in found["sources"])
    expected = service.get("/devices/wd-zn540/power-law").json()["law"]
    assert {one["evidence"] for one in expected["lines"]} == {"datasheet"}
    assert expected["measurements_total"] == 0


@pytest.mark.parametrize("resource", ["power-law", "model-card"])
def test_an_unknown_drive_is_a_problem(service: httpx.Client, resource: str) -> None:
    refused = service.get(f"/devices/no-such-drive/{resource}")
    assert refused.status_code == 404
    assert refused.headers["content-type"] == "application/problem+json"


def test_a_model_card_comes_in_sections_and_as_a_page(service: httpx.Client) -> None:
    card = service.get("/devices/wd-zn540/model-card").json()
    assert card["kind"] == "Model card"
    kinds = {block["kind"] for section in card["sections"] for block in section["blocks"]}
    assert kinds == {"text", "points", "table", "picture"}
    page = service.get("/devices/wd-zn540/model-card", headers={"Accept": "text/html"})
    assert page.headers["content-type"].startswith("text/html")
    assert page.headers["content-disposition"] == 'attachment; filename="wd-zn540.html"'
    for section in card["sections"]:
        assert section["heading"].replace("'", "&#39;") in page.text
