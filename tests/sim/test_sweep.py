import time
from dataclasses import replace

import pytest

from iojoule.datasets.errors import InputError
from iojoule.sim.device import DeviceConfig
from iojoule.sim.engines import Limits, RunOptions
from iojoule.sim.engines.embedded import EmbeddedEngine
from iojoule.sim.errors import ConfigError, LimitError
from iojoule.sim.findings import RefusedError
from iojoule.sim.result import ScenarioResult
from iojoule.sim.sweep import (
    Axis,
    Job,
    LeftOut,
    combinations,
    parse_axis,
    run_designs,
    run_jobs,
    with_values,
)  # fmt: skip
from iojoule.sim.workers import open_pool
from iojoule.sim.workload import FlowConfig, Scenario

DEVICE = DeviceConfig(preconditioning=False, gc_preemptible=False, mapping_ideal=True)
SCENARIO = Scenario(flows=(FlowConfig(stop_ns=2_000_000), FlowConfig(stop_ns=2_000_000, seed=9)))


@pytest.mark.parametrize(
    ("text", "axis"),
    [
        ("channels=4,8", Axis("channels", (4, 8))),
        ("gc_policy=rga, greedy", Axis("gc_policy", ("rga", "greedy"))),
        ("overprovisioning_ratio=0.07", Axis("overprovisioning_ratio", (0.07,))),
        ("flows.channel_ids=[0,1],[2,3]", Axis("flows.channel_ids", ([0, 1], [2, 3]))),
        ("mapping_ideal=true,false", Axis("mapping_ideal", (True, False))),
    ],
)
def test_an_axis_is_read_as_toml_with_bare_words(text: str, axis: Axis) -> None:
    assert parse_axis(text) == axis


@pytest.mark.parametrize("text", ["channels", "=4", "channels="])
def test_what_is_no_axis_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="must be FIELD=VALUE"):
        parse_axis(text)


def test_the_last_axis_varies_fastest() -> None:
    found = list(combinations([Axis("a", (1, 2)), Axis("b", (3, 4))]))
    assert found == [{"a": 1, "b": 3}, {"a": 1, "b": 4}, {"a": 2, "b": 3}, {"a": 2, "b": 4}]
    assert list(combinations([])) == [{}]


def test_too_many_combinations_are_refused_before_any_is_made() -> None:
    with pytest.raises(InputError, match="vary less"):
        next(combinations([Axis(str(n), tuple(range(100))) for n in range(10)]))
    with pytest.raises(InputError, match="varied twice"):
        next(combinations([Axis("a", (1,)), Axis("a", (2,))]))


def test_fields_of_the_drive_of_all_flows_and_of_one() -> None:
    device, scenario = with_values(
        DEVICE,
        SCENARIO,
        {"physical.slc.static_blocks_per_plane": 3, "flows.queue_depth": 7, "flows[1].seed": 5},
    )
    assert device.physical.slc.static_blocks_per_plane == 3
    assert [(flow.queue_depth, flow.seed) for flow in scenario.flows] == [(7, 1), (7, 5)]


def test_a_flow_on_all_channels_stays_on_all_of_them() -> None:
    whole = SCENARIO.on(DEVICE)
    _, scenario = with_values(DEVICE, whole, {"channels": 2})
    assert scenario.flows[0].channel_ids == ()
    assert scenario.flows[0].chip_ids == (0, 1, 2, 3)
    part = Scenario(flows=(FlowConfig(stop_ns=1, channel_ids=(0, 1)),))
    assert with_values(DEVICE, part, {"channels": 4})[1].flows[0].channel_ids == (0, 1)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"chanels": 1}, "did you mean channels?"),
        ({"channels": 0}, "channels = 0: is 0, but must be 1 to 1024"),
        ({"channels.x": 0}, "channels has no fields"),
        ({"flows[7].seed": 0}, "there are 2 flows"),
        ({"flows.sead": 0}, "did you mean seed?"),
        ({"physical.slc.size": 0}, "no such field"),
    ],
)
def test_a_value_that_cannot_be_is_refused(values: dict[str, object], said: str) -> None:
    with pytest.raises(RefusedError, match=said.replace("?", r"\?")):
        with_values(DEVICE, SCENARIO, values)


def test_results_come_in_the_order_of_the_jobs_whatever_runs_first() -> None:
    depths = (64, 1, 16)
    jobs = [Job(*with_values(DEVICE, SCENARIO, {"flows.queue_depth": d})) for d in depths]
    shares: dict[int, float] = {}
    with open_pool(3) as pool:
        together = run_jobs(jobs, EmbeddedEngine(), pool=pool, watch=shares.__setitem__)
    alone = [EmbeddedEngine().run(job.device, job.scenario) for job in jobs]
    assert [each.flows for each in together] == [each.flows for each in alone]
    assert shares == {0: 1.0, 1: 1.0, 2: 1.0}


class Fails:
    """Fails on one seed, and takes a minute for the others."""

    def run(
        self, device: DeviceConfig, scenario: Scenario, options: RunOptions | None = None
    ) -> ScenarioResult:
        if device.seed == 13:
            raise ConfigError("thirteen", field="seed")
        time.sleep(60)
        raise AssertionError


def test_one_failure_calls_the_others_off_and_names_its_place() -> None:
    jobs = [
        Job(DEVICE.model_copy(update={"seed": seed}), SCENARIO, places={"seed": "ssd.xml, line 9"})
        for seed in (12, 13, 14)
    ]
    message = r"^ssd\.xml, line 9: thirteen$"
    with open_pool(2) as pool, pytest.raises(ConfigError, match=message):
        run_jobs(jobs, Fails(), pool=pool)


def test_designs_that_go_past_a_limit_are_left_out_and_the_others_go_on() -> None:
    stops = (1_000, 1_000_000_000, 2_000)
    varied = [{"flows.stop_ns": stop} for stop in stops]
    jobs = [
        Job(*with_values(DEVICE, SCENARIO, values), labels={"varied": values}) for values in varied
    ]
    options = RunOptions(limits=Limits(events=5_000))
    with open_pool(2) as pool:
        told = run_designs(jobs, EmbeddedEngine(), pool=pool, options=options)
    assert [isinstance(each, LeftOut) for each in told] == [False, True, False]
    with pytest.raises(LimitError):  # a single drive, of which nothing is varied
        run_designs([replace(jobs[1], labels={})], EmbeddedEngine(), options=options)


def test_a_single_run_tells_how_far_it_is() -> None:
    class Halves:
        def run(
            self, device: DeviceConfig, scenario: Scenario, options: RunOptions | None = None
        ) -> ScenarioResult:
            assert options is not None
            assert options.progress is not None
            options.progress(0.5)
            return EmbeddedEngine().run(device, scenario)

    told: list[tuple[int, float]] = []
    with open_pool(2) as pool:
        run_jobs(
            [Job(DEVICE, SCENARIO)], Halves(), pool=pool, watch=lambda *said: told.append(said)
        )
    assert told == [(0, 0.5), (0, 1.0)]


def test_one_number_for_each_bit_of_a_cell_is_that_of_all() -> None:
    device, _ = with_values(DEVICE, SCENARIO, {"page_read_ns": 40_000})
    assert device.page_read_ns == (40_000,) * 3
    device, _ = with_values(DEVICE, SCENARIO, {"page_read_ns": [1000, 2000, 3000]})
    assert device.page_read_ns == (1000, 2000, 3000)
