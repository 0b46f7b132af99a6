"""Disputed findings: asked and shown, never counted, and none but those of one section."""

from __future__ import annotations

from iojoule.datasets.findings import Asked, frozen_papers
from iojoule.recommender.validation.findings import DISPUTED, DISPUTED_GROUP, Row, shares

ENERGY = {"io_per_joule", "bytes_per_joule", "cpu_power_watts", "cpu_frequency_hertz"}


def test_only_energy_beside_libaio_is_disputed() -> None:
    listed = {
        row.fact_id: row for paper in frozen_papers() for row in paper.findings
        if isinstance(row, Asked)
    }  # fmt: skip
    assert listed.keys() >= DISPUTED.keys()
    section = {
        name for name, row in listed.items() if name.startswith("000") and row.section == "5.6"
    }
    energy = {name for name in section if listed[name].quantity in ENERGY}
    # one engine over power states stays
    assert energy - DISPUTED.keys() == {"000-186"}
    assert energy >= DISPUTED.keys()
    assert all(DISPUTED.values())


def _row(name: str, *, right: bool) -> Row:
    return Row(
        fact_id=name, paper="000", section="5.6", class_="micro", asked=True, answered=True,
        direction_right=right, magnitude_right=right, evidence="published",
        disputed=DISPUTED.get(name, ""),
    )  # fmt: skip


def test_disputed_rows_are_a_group_of_their_own() -> None:
    rows = [_row("000-175", right=True), _row("000-179", right=False), _row("000-184", right=True)]
    groups = {one.group: one for one in shares(rows)}
    assert (groups["all"].rows, groups["all"].direction_right) == (2, 2)
    assert groups["paper 000"].rows == 2
    assert (groups[DISPUTED_GROUP].rows, groups[DISPUTED_GROUP].direction_right) == (1, 0)
