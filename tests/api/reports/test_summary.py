"""The summary of a recommendation: one form for every verdict, and the command that follows."""

import shlex
from pathlib import Path

import pytest

from iojoule.api.application.recommend import RecommendationAnswer, answer, workload_with
from iojoule.api.reports.configurations import is_tied, rank_value, ranked, same_setting, shown
from iojoule.api.reports.summary import command_for, rounded, summarise, with_command
from iojoule.datasets.profile import load_shipped_profile
from iojoule.recommender.recommend import Recommender
from iojoule.recommender.response import TIE, DurabilityAnswer, PowerCut


@pytest.fixture(scope="module")
def recommender() -> Recommender:
    return Recommender.under(load_shipped_profile("samsung-980-pro-1tb"))


@pytest.fixture
def ask(root, recommender):
    """Answer a shipped example with some fields replaced."""

    def recommend(name: str, **changes: object) -> RecommendationAnswer:
        fields = {key.replace("__", "."): value for key, value in changes.items()}
        path = root / "examples" / name
        return answer(recommender, workload_with(path, fields))

    return recommend


def test_a_change_states_its_saving_with_probability_and_how_to_set_it(ask) -> None:
    found = ask("kv-reads.toml", current__completion="polled")
    summary = found.summary
    assert found.action == "change"
    assert summary.verdict == found.saving.verdict.replace(" ", "_")
    assert summary.saving.percent == found.saving.percent
    assert summary.saving.probability == found.saving.probability
    assert summary.safe is True
    assert summary.would_change is None
    assert summary.next.command.startswith(command_for(found.device))
    assert "iojoule apply --recommendation - --drive /dev/nvme0n1" in summary.next.command


def test_a_change_says_that_todays_breaks_a_bound(ask) -> None:
    found = ask("page-reads.toml", current__jobs=2, concurrency_max=8)
    assert not found.current.meets_sla
    assert found.action == "change"
    assert "breaks a bound" in found.summary.sentence


@pytest.mark.parametrize(
    ("limit", "says"),
    [(200_000, "misses a preferred bound, this keeps it"), (20_000, "this misses it by less")],
)
def test_a_change_for_a_preferred_bound_breaks_no_other(ask, limit: float, says: str) -> None:
    sla = {"latency_p99_ns_max": limit, "soft": ["latency_p99_ns_max"]}
    today = {"jobs": 4, "request_bytes": 8192, "queue_depth": 1, "engine": "io_uring"}
    found = ask("page-reads.toml", sla=sla, current=today, concurrency_max=8)
    assert found.saving.verdict == "costs more"
    assert found.current.meets_sla
    assert says in found.summary.sentence


def test_no_change_names_the_best_candidate_and_what_decides(ask) -> None:
    found = ask("page-reads.toml")
    summary = found.summary
    assert summary.verdict == "no_change"
    assert summary.saving.percent == found.not_taken.saving.percent
    assert f"{found.not_taken.saving.probability:.3g}" in summary.sentence
    assert summary.would_change
    assert found.measure_next.command in summary.next.command


def test_a_saving_below_the_threshold_names_the_threshold_that_takes_it(ask) -> None:
    found = ask("kv-reads.toml", current__completion="polled", least_saving_percent=60)
    assert found.summary.verdict == "no_change"
    option = shlex.split(found.summary.next.command)[-2:]
    assert option[0] == "--least-saving"
    relaxed = float(option[1].rstrip("%"))
    again = ask("kv-reads.toml", current__completion="polled", least_saving_percent=relaxed)
    assert again.action == "change"


def test_a_saving_that_is_small_and_unproven_is_not_offered_for_a_lower_threshold(ask) -> None:
    found = ask("page-reads.toml", least_saving_percent=60)
    assert found.not_taken.saving.probability < 0.9
    assert found.summary.verdict == "no_change"
    assert "--least-saving" not in found.summary.next.command


def test_the_bound_that_is_proposed_makes_an_infeasible_request_feasible(ask) -> None:
    found = ask("page-reads.toml", sla__latency_p99_ns_max=20_000)
    assert found.summary.verdict == found.reason_code == "infeasible"
    assert found.summary.safe is None
    field, _, value = shlex.split(found.summary.next.command)[-1].partition("=")
    assert field == "sla.latency_p99_ns_max"
    again = ask("page-reads.toml", sla__latency_p99_ns_max=float(value))
    assert again.recommended is not None


def test_what_nobody_measured_is_named_as_what_would_change_the_answer(ask) -> None:
    found = ask("oltp.toml")
    assert found.summary.verdict == "not_shown_to_hold"
    assert "flush" in found.summary.would_change


def test_without_a_configuration_of_today_no_saving_is_stated(ask) -> None:
    found = ask("kv-reads.toml", current={}, free={"queue_depth": "all"})
    assert found.summary.verdict == "ranking"
    assert found.summary.saving is None


def test_todays_configuration_is_one_row(ask) -> None:
    found = ask("page-reads.toml", sla__latency_p99_ns_max=5e6)
    listed = shown(found, 20)
    (mark,) = [mark for mark, row in listed if same_setting(row, found.current)]
    assert mark.endswith("today")
    assert len(listed) == len({str(row.configuration) for _, row in listed})


def test_a_ranking_begins_with_the_row_that_it_names(ask, recommender) -> None:
    """Also where another takes less by so little that they are equal."""
    tied = answer(recommender, workload_with(Path("ycsb-b"), {}))
    plain = ask("kv-reads.toml", current={}, free={"queue_depth": "all"})
    assert tied.action == plain.action == "ranking"
    assert is_tied(tied)
    assert not is_tied(plain)
    for found in (tied, plain):
        first, *rest = ranked(found)
        assert first is found.recommended
        values = [rank_value(found, row) for row in rest]
        assert values == sorted(values)
        assert rank_value(found, first) <= (1.0 + TIE) * min(values)
        assert len(rest) == len(found.pareto) - any(same_setting(first, r) for r in found.pareto)


def test_a_weaker_durability_is_not_called_safe(ask) -> None:
    found = ask("kv-reads.toml", current__completion="polled")
    cut = PowerCut(writes=1.0, written_bytes=4096.0, seconds=1.0)
    durability = DurabilityAnswer(
        weakened=True,
        weaker_allowed=True,
        flush_every_writes=None,
        power_cut=cut,
        power_cut_today=cut,
        options=[],
        reason="",
    )
    assert summarise(found.model_copy(update={"durability": durability})).safe is False


def test_a_disk_of_the_sata_bus_has_its_own_node(ask) -> None:
    found = ask("kv-reads.toml", current__completion="polled")
    assert "/dev/sda" in summarise(found, "sata").next.command


def test_the_typed_command_replaces_the_general_one(ask) -> None:
    found = ask("page-reads.toml", sla__latency_p99_ns_max=20_000)
    typed = with_command(found.summary, found.device, "iojoule recommend --profile mine.json")
    assert typed.next.command.startswith("iojoule recommend --profile mine.json --set sla.")


@pytest.mark.parametrize(
    ("value", "up", "text"),
    [
        (133350.3, True, "134000"),
        (133350.3, False, "133000"),
        (0.12345, True, "0.124"),
        (0, True, "0"),
    ],
)
def test_a_bound_is_rounded_to_the_side_on_which_it_holds(value, up, text) -> None:
    assert rounded(value, up=up) == text


@pytest.mark.parametrize("today", [{}, {"queue_depth": 4, "jobs": 4}], ids=["ranking", "stays"])
def test_where_a_part_of_the_power_is_unknown_the_other_is_offered(root, today) -> None:
    profile = load_shipped_profile("samsung-980-pro-1tb").model_copy(update={"host_power": None})
    asked = workload_with(root / "examples" / "kv-reads.toml", {})
    asked = asked.model_copy(update={"current": type(asked.current)(**today)})
    found = answer(Recommender.under(profile), asked)
    assert "no CPU power" in found.summary.would_change
    assert found.summary.next.command.endswith("--scope device")
