import csv
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from iojoule.sim.device import DeviceConfig
from iojoule.sim.formats.mqsim_inputs import write_device_xml, write_workload_xml
from iojoule.sim.result import SimulationResult
from iojoule.sim.workload import FlowConfig, FlowKind, Scenario

DEVICE = DeviceConfig(
    preconditioning=False, gc_preemptible=False, mapping_ideal=True, channels=2,
    chips_per_channel=2, blocks_per_plane=64, cache_bytes=1 << 20,
)  # fmt: skip
READS = FlowConfig(stop_ns=1_000_000, queue_depth=4)
WRITES = FlowConfig(stop_ns=1_000_000, read_percent=0, seed=5)

PER_FLOW = {
    "serviced", "serviced_read", "serviced_write", "sim_end_ns", "flow_last_completion_ns",
    "drt_ns", "drt_read_ns", "drt_write_ns", "e2e_ns", "max_drt_ns", "p50_ns", "p99_ns", "p999_ns",
}  # fmt: skip
PER_DEVICE = {
    "pages_read", "pages_programmed", "blocks_erased", "cmd_read", "cmd_mp_read", "cmd_prog",
    "cmd_mp_prog", "cmd_erase", "map_reads", "cmt_queries", "cmt_hits", "gc_exec",
}  # fmt: skip
PER_SCENARIO = {"device", "flows", "run_user_seconds", "run_wall_seconds", "peak_bytes", "events"}


def drive_file(folder: Path, device: DeviceConfig = DEVICE, name: str = "ssd.xml") -> Path:
    path = folder / name
    path.write_text(write_device_xml(device), encoding="ascii")
    return path


def workload_file(folder: Path, *scenarios: tuple[FlowConfig, ...]) -> Path:
    path = folder / "work.xml"
    made = [Scenario(flows=flows) for flows in scenarios or ((READS, WRITES),)]
    path.write_text(write_workload_xml(made, DEVICE), encoding="ascii")
    return path


@pytest.fixture
def simulate(iojoule, tmp_path: Path):
    """Simulate the drive and the workload of the test's folder."""

    def run(*arguments: str):
        return iojoule(
            "simulate", "--ssd", tmp_path / "ssd.xml", "--workload", tmp_path / "work.xml",
            *arguments,
        )  # fmt: skip

    drive_file(tmp_path)
    workload_file(tmp_path)
    return run


def test_json_has_every_figure_and_never_null(simulate) -> None:
    done = simulate()
    assert done.code == 0
    assert "null" not in done.out
    (scenario,) = json.loads(done.out)["scenarios"]
    assert set(scenario) >= PER_SCENARIO
    assert set(scenario["device"]) >= PER_DEVICE
    reads, writes = scenario["flows"]
    assert set(reads) >= PER_FLOW
    assert (reads["serviced"], reads["serviced_write"], reads["drt_write_ns"]) == (
        reads["serviced_read"], 0, 0,
    )  # fmt: skip
    assert (writes["serviced"], writes["serviced_read"]) == (writes["serviced_write"], 0)
    assert isinstance(reads["p99_ns"], int)
    SimulationResult.model_validate_json(done.out)


def test_scenarios_come_in_the_order_of_the_file(simulate, tmp_path: Path) -> None:
    workload_file(tmp_path, (READS,), (WRITES,), (READS, READS))
    scenarios = json.loads(simulate("--jobs", "3").out)["scenarios"]
    assert [len(each["flows"]) for each in scenarios] == [1, 1, 2]
    assert [each["flows"][0]["serviced_write"] > 0 for each in scenarios] == [False, True, False]


def test_tables_say_what_json_says(simulate) -> None:
    told = simulate("-o", "table").out
    (scenario,) = json.loads(simulate().out)["scenarios"]
    for flow in scenario["flows"]:
        assert f" {flow['serviced']} " in told
    assert f" {scenario['device']['pages_programmed']} " in told
    assert "Synth.No_1" in told


def test_xml_is_mqsims_own_layout(simulate) -> None:
    root = ElementTree.fromstring(simulate("-o", "xml").out)
    assert root.tag == "MQSim_Results"
    assert len(root.findall("Host/Host.IO_Flow")) == 2
    assert root.find("SSDDevice/SSDDevice.FTL") is not None
    queues = root.findall("SSDDevice/SSDDevice.TSU/")
    assert len(queues) == 7 * len(root.findall("SSDDevice/SSDDevice.FlashChips"))
    assert sum(int(queue.attrib["No_Of_Transactions_Dequeued"]) for queue in queues) > 0


def test_xml_of_several_runs_goes_into_files(simulate, tmp_path: Path) -> None:
    workload_file(tmp_path, (READS,), (WRITES,))
    assert simulate("-o", "xml").code == 2
    folder = tmp_path / "results"
    done = simulate("-o", "xml", "--directory", str(folder))
    names = ["work_scenario_1.xml", "work_scenario_2.xml"]
    assert done.out.splitlines() == [str(folder / name) for name in names]
    assert sorted(path.name for path in folder.iterdir()) == names


def test_xml_of_a_part_has_the_names_that_it_has_of_the_whole(simulate, tmp_path: Path) -> None:
    ask = ("-o", "xml", "--vary", "channels=1,2,4", "--directory")
    assert simulate(*ask, str(tmp_path / "whole")).code == 0
    for part in ("1/2", "2/2"):
        assert simulate(*ask, str(tmp_path / "parts"), "--shard", part).code == 0
    whole, parts = (
        {path.name: path.read_text() for path in (tmp_path / folder).iterdir()}
        for folder in ("whole", "parts")
    )
    assert len(whole) == 3
    assert whole == parts


def test_a_sweep_says_what_each_run_was(simulate) -> None:
    done = simulate("--vary", "flows.queue_depth=1,8", "--vary", "channels=1,2")
    scenarios = json.loads(done.out)["scenarios"]
    assert [each["varied"] for each in scenarios] == [
        {"flows.queue_depth": depth, "channels": channels}
        for depth in (1, 8)
        for channels in (1, 2)
    ]  # fmt: skip
    assert scenarios[0]["ssd"].endswith("ssd.xml")
    deep = simulate("--vary", "flows.queue_depth=1,8", "-o", "table").out
    assert "flows.queue_depth = 8" in deep


def test_a_design_that_goes_past_a_limit_is_left_out_and_named(simulate, tmp_path: Path) -> None:
    state = tmp_path / "state"
    workload_file(tmp_path, (FlowConfig(total_requests=100, stop_ns=0),))
    vary = ("--vary", "channels=2", "--vary", "flows.total_requests=100,100000")
    for _ in range(2):  # what is left out is not kept, and is left out again
        done = simulate(*vary, "--max-events", "20000", "--state", str(state))
        assert done.code == 0
        told = json.loads(done.out)
        assert [each["varied"]["flows.total_requests"] for each in told["scenarios"]] == [100]
        assert [each["varied"] for each in told["left_out"]] == [
            {"channels": 2, "flows.total_requests": 100_000}
        ]
        assert told["left_out"][0]["reason"]
        assert "left out: flows.total_requests = 100000" in done.err
    assert len((state / "results.jsonl").read_bytes().splitlines()) == 1


def test_a_corner_of_a_sweep_that_is_no_drive_is_left_out(simulate) -> None:
    vary = ("--vary", "blocks_per_plane=64,65536", "--vary", "pages_per_block=64,65536")
    done = simulate(*vary, "--max-memory", "64", "--jobs", "1")
    assert done.code == 0
    told = json.loads(done.out)
    assert [tuple(each["varied"].values()) for each in told["scenarios"]] == [(64, 64)]
    assert (65536, 65536) in [tuple(each["varied"].values()) for each in told["left_out"]]


def test_a_value_that_no_design_can_have_is_an_error(simulate) -> None:
    done = simulate("--vary", "channels=1,0", "--vary", "dies_per_chip=1,2")
    assert done.code == 3
    assert "channels = 0" in done.err
    assert done.out == ""


def test_a_part_whose_designs_are_all_left_out_is_no_failure(simulate, tmp_path: Path) -> None:
    workload_file(tmp_path, (FlowConfig(total_requests=100, stop_ns=0),))
    vary = ("--vary", "flows.total_requests=100,100000", "--max-events", "20000")
    done = simulate(*vary, "--shard", "2/2")
    assert done.code == 0
    told = json.loads(done.out)
    assert (len(told["scenarios"]), len(told["left_out"])) == (0, 1)


def test_of_several_drives_and_workloads_what_is_left_out_is_named_with_its_files(
    simulate, tmp_path: Path
) -> None:
    other = drive_file(tmp_path, DEVICE.model_copy(update={"flash_technology": "slc"}), "b.xml")
    workload_file(tmp_path, (FlowConfig(total_requests=100, stop_ns=0),))
    vary = ("--vary", "flows.total_requests=100,100000", "--max-events", "20000")
    err = simulate("--ssd", other, *vary).err
    assert "left out: ssd = ssd, flows.total_requests = 100000" in err
    assert "left out: ssd = b, flows.total_requests = 100000" in err
    again = tmp_path / "again.xml"
    again.write_bytes((tmp_path / "work.xml").read_bytes())
    assert "left out: workload = again, flows" in simulate("--workload", again, *vary).err


def test_a_part_without_runs_is_drawn_as_none(simulate, tmp_path: Path) -> None:
    for name in ("points.csv", "points.svg"):
        path = tmp_path / name
        done = simulate("--vary", "channels=1,2", "--shard", "3/3", "--plot", str(path))
        assert done.code == 0
        assert path.is_file()


def test_where_no_design_can_be_run_the_first_is_named(simulate) -> None:
    done = simulate("--vary", "channels=1,2", "--max-events", "10", "--jobs", "1")
    assert done.code == 12
    assert "channels = 1" in done.err
    assert done.out == ""


def test_the_points_of_a_sweep_are_those_of_its_runs(simulate, tmp_path: Path) -> None:
    points = tmp_path / "points.csv"
    done = simulate("--vary", "channels=1,2", "--plot", str(points))
    flows = [flow for each in json.loads(done.out)["scenarios"] for flow in each["flows"]]
    rows = list(csv.DictReader(points.read_text().splitlines()))
    assert [row["channels"] for row in rows] == ["1", "1", "2", "2"]
    assert [float(row["latency_p99_ns"]) for row in rows] == [flow["p99_ns"] for flow in flows]
    two = simulate("--vary", "channels=1", "--vary", "flows.seed=1", "--plot", str(points))
    assert two.code == 2


def physical(iojoule, folder: Path):
    """Simulate a small drive with energy whose geometry is varied."""
    (folder / "flows.toml").write_text(
        "schema_version = 1\n[[scenarios]]\n[[scenarios.flows]]\nread_percent = 100\n"
        "queue_depth = 8\nworking_set_percent = 5\ntotal_requests = 400\n"
    )
    vary = ("channels=1,2,4", "dies_per_chip=1,2", "blocks_per_plane=48,64")
    small = ("chips_per_channel=1", "planes_per_die=1", *vary)

    def run(*arguments: str):
        axes = [word for axis in small for word in ("--vary", axis)]
        return iojoule(
            "simulate", "--ssd", "samsung-pm9a3-960gb", "--workload", folder / "flows.toml",
            "--engine", "fast", "-j", "1", *axes, *arguments,
        )  # fmt: skip

    return run


def designs(done) -> list[tuple[float, float, float]]:
    """Joules, p99 in ns, and cost where it is told."""
    return [
        (
            sum(each["device"]["energy_joules"].values()),
            max(flow["p99_ns"] for flow in each["flows"]),
            each.get("cost", 0.0),
        )
        for each in json.loads(done.out)["scenarios"]
    ]


def test_no_design_of_the_front_is_beaten_and_every_other_one_is(iojoule, tmp_path: Path) -> None:
    simulate = physical(iojoule, tmp_path)
    front = designs(simulate("--front", "--cost", "die=3,flash_gib=0.1"))
    everything = json.loads(simulate().out)["scenarios"]
    costs = []
    for each, (joules, p99, _) in zip(everything, designs(simulate()), strict=True):
        varied = each["varied"]
        dies = varied["channels"] * varied["dies_per_chip"]
        # pages of 16 KiB, 768 to a block
        gib = dies * varied["blocks_per_plane"] * 768 * 16384 / 2**30
        costs.append((joules, p99, 3 * dies + 0.1 * gib))
    assert 0 < len(front) < len(costs)

    def beaten(by: list[tuple[float, float, float]], one: tuple[float, float, float]) -> bool:
        return any(all(a <= b + 1e-9 for a, b in zip(other, one, strict=True)) for other in by)

    for index, one in enumerate(front):
        assert not beaten(front[:index] + front[index + 1 :], one)
        assert any(one == pytest.approx(each) for each in costs)
    assert all(beaten(front, one) for one in costs)


def test_serving_less_is_no_saving(iojoule, tmp_path: Path) -> None:
    simulate = physical(iojoule, tmp_path)
    flows = tmp_path / "flows.toml"
    flows.write_text(flows.read_text().replace("total_requests = 400", "stop_ns = 50_000_000"))
    latency = "physical.controller.command_latency_ns"
    done = simulate("--front", "--vary", f"{latency}=5_000,500_000")
    assert {each["varied"][latency] for each in json.loads(done.out)["scenarios"]} == {5_000}


def test_designs_under_different_loads_are_not_compared(iojoule, tmp_path: Path) -> None:
    simulate = physical(iojoule, tmp_path)
    other = tmp_path / "other.toml"
    other.write_text((tmp_path / "flows.toml").read_text())
    assert simulate("--front", "--workload", other).code == 2


def test_parts_of_an_array_are_joined(iojoule, tmp_path: Path) -> None:
    simulate, state = physical(iojoule, tmp_path), ("--state", str(tmp_path / "state"))
    parts = [designs(simulate("--shard", f"{part}/5", *state)) for part in range(1, 6)]
    assert sorted(len(part) for part in parts) == [2, 2, 2, 3, 3]
    files = sorted(path.name for path in (tmp_path / "state").iterdir())
    assert files == [f"results-{part}-of-5.jsonl" for part in range(1, 6)]
    before = {path: path.read_bytes() for path in (tmp_path / "state").iterdir()}
    joined = simulate(*state)
    assert designs(joined) == designs(simulate())
    assert all(path.read_bytes() == text for path, text in before.items())
    assert (tmp_path / "state" / "results.jsonl").read_bytes() == b""


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--shard", "0/4"), 2),
        (("--shard", "5/4"), 2),
        (("--shard", "2"), 2),
        (("--front", "--cost", "dice=3"), 3),
        (("--front", "--cost", "die=-1"), 3),
        (("--front", "--cost", "die=nan"), 3),
        (("--front", "--cost", "die=1e308"), 3),
        (("--front", "--cost", "die"), 3),
        (("--cost", "die=3"), 2),
        (("--interval", "5"), 2),
    ],
)
def test_parts_and_prices_that_are_none(
    words: tuple[str, ...], code: int, iojoule, tmp_path: Path
) -> None:
    assert physical(iojoule, tmp_path)(*words).code == code


def test_without_joules_there_is_no_front(simulate, tmp_path: Path) -> None:
    done = simulate("--vary", "channels=1,2", "--front")
    assert done.code == 3


def test_several_drives_run_on_one_workload(simulate, tmp_path: Path) -> None:
    other = drive_file(tmp_path, DEVICE.model_copy(update={"flash_technology": "slc"}), "b.xml")
    scenarios = json.loads(simulate("--ssd", str(other)).out)["scenarios"]
    assert [Path(each["ssd"]).name for each in scenarios] == ["ssd.xml", "b.xml"]


def test_a_limit_or_step_below_a_nanosecond_is_one_and_not_none(simulate) -> None:
    assert simulate("--max-simulated", "1e-10").code == 11
    assert simulate("--series-step", "1e-10").code == 9


def test_a_series_has_the_step_that_was_asked_for(simulate) -> None:
    (scenario,) = json.loads(simulate("--series-step", "0.0001").out)["scenarios"]
    assert scenario["series_step_ns"] == 100_000
    flow = scenario["flows"][0]
    assert sum(flow["series"]["serviced_read"]) == flow["serviced"]


def test_what_is_to_be_doubted_is_on_standard_error(simulate, tmp_path: Path) -> None:
    drive_file(tmp_path, DEVICE.model_copy(update={"channel_megatransfers_per_second": 1200}))
    done = simulate()
    assert done.code == 0
    assert done.err.count("[channel_rate_free]") == 1
    assert done.err.startswith("warning: ")
    assert "line 46, Channel_Transfer_Rate: 1200 MT/s" in done.err
    assert json.loads(done.out)


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        ((">ADVANCED<", ">SIMPLE<"), 3, "Device_Level_Data_Caching_Mode: MQSim's SIMPLE cache"),
        (("333<", "333MT<"), 3, "Channel_Transfer_Rate: is '333MT'"),
        (("</Seed>", "</Sead>"), 3, "is not well-formed XML"),
        (("CWDP", "CWDP&x;"), 3, "undefined entity"),
    ],
)
def test_a_bad_drive_is_one_line_with_file_and_tag(
    simulate, tmp_path: Path, change: tuple[str, str], code: int, said: str
) -> None:
    path = tmp_path / "ssd.xml"
    path.write_text(path.read_text(encoding="ascii").replace(*change), encoding="ascii")
    done = simulate()
    assert (done.code, done.out) == (code, "")
    assert said in done.err
    assert done.err.startswith("error: ")


def test_a_missing_trace_is_named(simulate, tmp_path: Path) -> None:
    workload_file(tmp_path, (FlowConfig(kind=FlowKind.TRACE, trace_path="none.trace"),))
    done = simulate()
    assert done.code == 3
    assert "File_Path: there is no trace none.trace" in done.err


def test_a_broken_trace_is_named_with_its_line(simulate, tmp_path: Path) -> None:
    (tmp_path / "a.trace").write_text("5 0 0 8 1\n4 0 0 8 1\n", encoding="ascii")
    workload_file(tmp_path, (FlowConfig(kind=FlowKind.TRACE, trace_path="a.trace"),))
    done = simulate()
    assert done.code == 10
    assert "a.trace, line 2: " in done.err


@pytest.mark.parametrize(
    "limit",
    [("--max-events", "10"), ("--max-simulated", "1e-5"), ("--max-memory", "1")],
)
def test_a_run_beyond_a_limit_is_stopped(simulate, tmp_path: Path, limit: tuple[str, str]) -> None:
    if limit[0] == "--max-memory":
        drive_file(tmp_path, DEVICE.model_copy(update={"blocks_per_plane": 8192}))
    done = simulate(*limit)
    assert (done.code, done.out) == (11, "")


def test_neither_a_file_nor_a_preset(iojoule, tmp_path: Path) -> None:
    done = iojoule("simulate", "--ssd", "nonsense", "--workload", workload_file(tmp_path))
    assert done.code == 3
    assert "neither such a file nor such a preset" in done.err
