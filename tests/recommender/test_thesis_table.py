"""Table 5.1 of the thesis beside the shipped profile."""

from iojoule.datasets.profile import load_shipped_profile
from iojoule.recommender.validation.thesis_table import DEVICE, thesis_table

VARIABLES = [
    "Request size", "I/O depth", "Jobs", "Interrupts", "I/O engine", "Mixed workloads",
    "Scheduler", "Intervals", "GC", "NUMA",
]  # fmt: skip


def test_every_row_is_answered_or_said_to_be_unanswerable() -> None:
    rules = thesis_table(load_shipped_profile(DEVICE))
    assert list(dict.fromkeys(rule.variable for rule in rules)) == VARIABLES
    assert all(rule.why and rule.evidence for rule in rules)
    assert [rule.variable for rule in rules if rule.agrees is None] == ["NUMA"]


def test_most_rules_hold_and_those_that_differ_are_known() -> None:
    rules = thesis_table(load_shipped_profile(DEVICE))
    counted = [rule for rule in rules if not rule.disputed]
    differ = {(rule.variable, rule.workload) for rule in counted if rule.agrees is False}
    # a change here is a change of what iojoule recommends: look at the figures, then decide
    assert differ == {("Jobs", "throughput"), ("Mixed workloads", "both")}


def test_rules_about_engines_are_shown_and_not_counted() -> None:
    rules = thesis_table(load_shipped_profile(DEVICE))
    assert {rule.variable for rule in rules if rule.disputed} == {"I/O engine"}
