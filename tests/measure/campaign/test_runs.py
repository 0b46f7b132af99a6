"""From a plan to its runs."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iojoule.datasets.schema import Configuration, Workload
from iojoule.measure.campaign.plan import (
    KNOBS,
    load_plan,
    parse_plan,
    read_size,
    read_values,
    shipped_plans,
)
from iojoule.measure.campaign.runs import Abilities, expand
from iojoule.measure.errors import CampaignError
from tests.errors import having

HEAD = 'schema_version = 1\nname = "p"\n'
SWEEP = '[[sweep]]\nname = "s"\noperation = "read"\nrequest_bytes = "4KiB"\n'


def runs_of(text: str, states: list[int] | None = None, **abilities: Any):
    known = tuple(states) if states is not None else None
    return expand(parse_plan(HEAD + text, "plan"), Abilities(known, **abilities))


def test_what_io_uring_cmd_cannot_send_at_once_is_left_out() -> None:
    text = SWEEP.replace('"4KiB"', '["128KiB", "256KiB"]') + 'engine = ["io_uring", "io_uring_cmd"]'
    found = runs_of(text + "\n", passthrough_bytes_max=131072)
    assert len(found.runs) == 2 * 3  # twice each
    [(reason, count)] = found.impossible.items()
    assert ("131,072 bytes at once" in reason, count) == (True, 1)


def test_what_needs_a_character_node_is_left_out_where_there_is_none() -> None:
    text = SWEEP + 'engine = ["io_uring", "io_uring_cmd"]\n'
    both, one = (runs_of(text, passthrough=there) for there in (True, False))
    assert not both.impossible
    assert {run.point.configuration.engine for run in one.runs} == {"io_uring"}
    assert sum(one.impossible.values()) == len(both.runs) / 2 / 2  # twice each


def test_every_knob_is_a_field_of_the_schema() -> None:
    kinds = {"workload": Workload, "configuration": Configuration}
    assert all(name in kinds[kind].model_fields for name, kind in KNOBS.items())


@pytest.mark.parametrize("name", shipped_plans())
def test_shipped_plans_expand_and_say_what_they_are_for(name: str) -> None:
    plan, _ = load_plan(name)
    assert plan.title
    assert expand(plan, Abilities((0, 1, 2))).runs


def test_a_sweep_is_the_product_of_its_knobs_times_the_repeats() -> None:
    found = runs_of("repeats = 3\n" + SWEEP + "queue_depth = [1, 4, 16]\njobs = [1, 2]\n")
    assert len(found.runs) == 3 * 2 * 3
    assert len({run.point.key for run in found.runs}) == 6
    assert [run.number for run in found.runs] == list(range(1, 19))


def test_the_order_is_random_but_the_same_for_one_seed_and_repeats_lie_apart() -> None:
    text = "repeats = 2\n" + SWEEP + "queue_depth = { from = 1, to = 128, factor = 2 }\n"
    first, again = runs_of(text), runs_of(text)
    assert first == again
    depths = [run.point.configuration.queue_depth for run in first.runs]
    assert depths[:8] != sorted(depths[:8])
    assert [run.repeat for run in first.runs] == [0] * 8 + [1] * 8
    assert runs_of("seed = 2\n" + text).runs != first.runs


def test_what_cannot_exist_is_left_out_and_counted() -> None:
    found = runs_of(SWEEP + 'engine = ["psync", "libaio"]\nqueue_depth = [1, 8]\n')
    assert len(found.runs) == 3 * 2
    ((reason, count),) = found.impossible.items()
    assert "psync holds one request" in reason
    assert count == 1


def test_what_this_host_cannot_do_is_left_out_with_the_reason() -> None:
    text = SWEEP + (
        'completion = ["interrupt", "polled"]\nscheduler = ["none", "kyber"]\n'
        "job_numa_node = [0, 1]\n"
    )
    found = runs_of(
        "repeats = 1\n" + text,
        polls=False,
        schedulers=frozenset({"none"}),
        numa_nodes=frozenset({0}),
    )
    assert len(found.runs) == 1
    assert sum(found.impossible.values()) == 7
    assert {reason.partition(":")[0] for reason in found.impossible} == {
        "completion",
        "scheduler",
        "job_numa_node",
    }


def test_operational_stands_for_the_drives_states() -> None:
    found = runs_of("repeats = 1\n" + SWEEP + 'power_state = "operational"\n', [0, 1, 2])
    assert {run.point.configuration.power_state for run in found.runs} == {0, 1, 2}


LIMITED = SWEEP + "power_limit_watts = [0, 3.5]\n"


def test_where_a_limit_is_swept_every_run_says_its_own() -> None:
    text = "repeats = 1\n" + LIMITED + SWEEP.replace('"s"', '"others"')
    found = runs_of(text, [0, 1], limits_power=True)
    limits = {run.sweep: set[float | None]() for run in found.runs}
    for run in found.runs:
        limits[run.sweep].add(run.point.configuration.power_limit_watts)
    assert limits == {"s": {0.0, 3.5}, "others": {0.0}}
    unswept = runs_of(SWEEP, [0, 1], limits_power=True)
    assert {run.point.configuration.power_limit_watts for run in unswept.runs} == {None}


def test_states_above_a_limit_are_left_out() -> None:
    text = "repeats = 1\n" + LIMITED + "power_state = [0, 1]\npost_write_power_state = 1\n"
    found = runs_of(text, [0, 1], limits_power=True, caps_watts={0: 8.0, 1: 3.5})
    chosen = [run.point.configuration for run in found.runs]
    assert {(one.power_state, one.power_limit_watts) for one in chosen} == {
        (0, 0.0),
        (1, 0.0),
        (1, 3.5),
    }
    ((reason, count),) = found.impossible.items()
    assert (reason.partition(":")[0], count) == ("power_state", 1)


def test_a_drive_without_limits_takes_none() -> None:
    with pytest.raises(CampaignError, match="power_limit_watts"):
        runs_of(LIMITED, [0, 1], limits_power=False)


@pytest.mark.parametrize(
    ("sweep", "states", "message"),
    [
        ("power_limit_watts = 3.5\n", None, "no controller is known"),
        ("power_limit_watts = -1\n", [0], "power_limit_watts"),
        ('power_state = "operational"\n', None, "name it with --controller"),
        ("power_state = 1\n", None, "no controller is known"),
        ("power_state = 4\n", [0, 1], "none of the drive's operational states"),
        ("queue_depht = 4\n", None, "queue_depht: is neither a knob"),
        ("queue_depth = 0\n", None, "queue_depth"),
        ("queue_depth = []\n", None, "empty list"),
        ("queue_depth = { from = 8, to = 1, factor = 2 }\n", None, "holds nothing"),
        ("queue_depth = { from = 1, to = 8 }\n", None, "factor = 2"),
        ('working_set_bytes = "4 bananas"\n', None, "is no size"),
        ('engine = "windowsaio"\n', None, "engine"),
    ],
)
def test_a_wrong_plan_is_refused_with_the_field(
    sweep: str, states: list[int] | None, message: str
) -> None:
    with pytest.raises(CampaignError, match=message):
        runs_of(SWEEP + sweep, states)


def test_a_distribution_of_sizes_stands_for_a_size() -> None:
    head = '[[sweep]]\nname = "s"\noperation = "read"\nrequest_bytes_mix = '
    (run,) = runs_of("repeats = 1\n" + head + '"4KiB/60:64KiB/40"\n').runs
    assert run.point.workload.request_bytes_mix == "4096/60:65536/40"
    assert run.point.configuration.request_bytes == 28672
    for wrong, message in (("4KiB/60:64KiB/30", "100 percent"), ("4KiB", "is no distribution")):
        with pytest.raises(CampaignError, match=message):
            runs_of(head + f'"{wrong}"\n')
    with pytest.raises(CampaignError, check=having(field="sweep.0")):
        runs_of(head + '"4KiB/100"\nrequest_bytes = 4096\n')


def test_a_plan_without_a_possible_run_is_refused() -> None:
    with pytest.raises(CampaignError, match="no run is possible: queue_depth: psync"):
        runs_of(SWEEP + 'engine = "psync"\nqueue_depth = 2\n')


def test_an_unknown_plan_names_those_there_are() -> None:
    with pytest.raises(CampaignError, match="quick-lab"):
        load_plan("quik")


def test_a_sample_spreads_over_all_values() -> None:
    sweep = (
        SWEEP + "samples = 32\nqueue_depth = { from = 1, to = 128, factor = 2 }\njobs = [1, 2]\n"
    )
    points = {run.point.key: run.point for run in runs_of("repeats = 1\n" + sweep).runs}.values()
    assert {point.configuration.queue_depth for point in points} == {2**n for n in range(8)}
    assert len(points) <= 16


def test_patterns_stay_apart_where_the_drive_is_preconditioned_for_each() -> None:
    found = runs_of(
        "[precondition]\nuntil_steady = true\n"
        + SWEEP
        + 'pattern = ["random", "sequential"]\nqueue_depth = [1, 2, 4, 8]\n'
    )
    patterns = [run.point.workload.pattern for run in found.runs]
    assert patterns == sorted(patterns, key=lambda one: one == "random")


@pytest.mark.parametrize(
    ("text", "size"),
    [("4KiB", 4096), ("4k", 4096), ("1MiB", 1 << 20), ("1 MB", 10**6), ("512", 512), (8, 8)],
)
def test_sizes_are_read_with_their_unit(text: str | int, size: int) -> None:
    assert read_size(text) == size


@given(
    low=st.integers(1, 64),
    factor=st.integers(2, 5),
    count=st.integers(1, 6),
    past=st.floats(0, 0.9),
)
def test_a_range_by_factor_holds_every_step_up_to_its_end(
    low: int, factor: int, count: int, past: float
) -> None:
    high = int(low * factor ** (count - 1) * (1 + past * (factor - 1)))
    values = read_values({"from": low, "to": high, "factor": factor})["values"]
    assert values == tuple(low * factor**n for n in range(count))


def test_the_documented_plan_is_real() -> None:
    text = (Path(__file__).parents[3] / "docs" / "measuring.md").read_text("utf-8")
    example = text.split("```toml\n")[1].split("```")[0]
    assert len(expand(parse_plan(example, "the document"), Abilities((0, 1, 2))).runs) == 144
