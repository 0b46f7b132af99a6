"""MQSim's result file, response log and last words: read, and written in the same layout."""

import contextlib
import gzip
import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iojoule.datasets.errors import InputError
from iojoule.sim.device import DeviceConfig
from iojoule.sim.engines import RunOptions
from iojoule.sim.engines.embedded import EmbeddedEngine
from iojoule.sim.engines.mqsim import MqsimEngine
from iojoule.sim.engines.mqsim_process import Execution
from iojoule.sim.formats.files import read_drive, read_workload
from iojoule.sim.formats.mqsim_result import (
    parse_result,
    read_response_log,
    read_result,
    read_serviced,
    write_result_xml,
)
from iojoule.sim.result import LatencyByClass, LatencySummary, OriginCounts, ScenarioResult
from iojoule.sim.workload import Scenario
from tests.sim.recordings import FOLDER, ONE_CHIP, RUNS
from tests.sim.test_result import device, reads, scenario

RESULT = "workload_scenario_1.xml"


def recorded(name: str) -> str:
    return (FOLDER / name / RESULT).read_text()


def test_a_result_file_is_read_whole() -> None:
    report = parse_result(recorded("two_flows"), "here")
    assert [flow.requests for flow in report.flows] == [24, 24]
    mixed, writes = report.flows
    assert mixed.reads + mixed.writes == 24
    assert (writes.reads, writes.bytes_read, writes.bytes_written) == (0, 0, 24 * 8192)
    assert writes.device.mean_us == 2049
    assert report.count("Total_CMT_Queries") == 63
    # 2 chips: 2 kinds of queues with 4 classes each, and 5 without
    assert len(report.queues) == 2 * (2 * 4 + 5)
    assert report.dequeued("Mapping_Read_TR_Queue") == report.count(
        "Issued_Flash_Read_CMD_For_Mapping"
    )
    assert {queue.priority for queue in report.queues} == {-1, 0, 1, 2, 3}
    assert [(chip.channel, chip.chip) for chip in report.chips] == [(0, 0), (1, 0)]
    assert all(0 < chip.execution < 1 for chip in report.chips)


@given(st.data())
def test_a_damaged_result_is_read_or_refused_and_nothing_else(data: st.DataObject) -> None:
    text = recorded("two_flows")
    place = st.integers(0, len(text))
    for _ in range(data.draw(st.integers(1, 4))):
        start, end = sorted((data.draw(place), data.draw(place)))
        end = min(end, start + data.draw(st.sampled_from((0, 1, 4, 64, len(text)))))
        text = text[:start] + data.draw(st.text('<>/&!"=@-0129 enainf.', max_size=12)) + text[end:]
    with contextlib.suppress(InputError):
        parse_result(text, "here")


@given(st.lists(st.text("0123456789\t -.e#\"'", max_size=30), max_size=8))
def test_a_damaged_log_is_read_or_refused_and_nothing_else(lines: list[str]) -> None:
    header = "SimulationTime(us)\tReponseTime(us)\tEndToEndDelay(us)\n"
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "damaged.log"
        log.write_text(header + "\n".join(lines))
        with contextlib.suppress(InputError):
            assert read_response_log(log).shape[1] == 3


def test_what_never_happened_is_none() -> None:
    report = parse_result(recorded("reads"), "here")
    assert report.counts["Average_Page_Movement_For_GC"] is None
    assert all(q.mean_waiting_ns == 0 for q in report.queues if not q.dequeued)
    nothing = recorded("reads").replace(
        "<Min_Device_Response_Time>88<", "<Min_Device_Response_Time>1271310319<"
    )
    (flow,) = parse_result(nothing, "here").flows
    assert flow.device.mean_us is flow.device.min_us is None
    assert flow.end_to_end.min_us == 88


@pytest.mark.parametrize(
    ("damaged", "said"),
    [
        ("", "not well-formed"),
        (recorded("reads")[:2000], "not well-formed"),
        ("<MQSim_Results/>", "cut short"),
        ("<other/>", "begins with <other>"),
        ("<!DOCTYPE a><MQSim_Results/>", "a declaration"),
        (recorded("reads").replace("Request_Count>24", "Request_Count>many", 2), "many"),
        (recorded("reads").replace("Bytes_Transferred_Read", "Bytes", 2), "is missing"),
        (recorded("reads").replace("@0@0", "@0", 1), "values to unpack"),
        (recorded("reads").replace('DataXfer="0', 'DataXfer="7', 1), "DataXfer is 7"),
    ],
)
def test_what_is_no_result_is_refused(damaged: str, said: str) -> None:
    with pytest.raises(InputError, match=f"^here: .*{said}"):
        parse_result(damaged, "here")


def test_a_file_that_is_not_there_or_not_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_result(tmp_path / "none.xml")
    (tmp_path / "binary.xml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not ASCII"):
        read_result(tmp_path / "binary.xml")
    with pytest.raises(InputError, match="not a response log"):
        read_response_log(tmp_path / "none.log")


def test_a_log_of_nothing_has_no_rows(tmp_path: Path) -> None:
    log = tmp_path / "empty.log"
    log.write_text("SimulationTime(us)\tReponseTime(us)\tEndToEndDelay(us)\n")
    assert read_response_log(log).shape == (0, 3)


def test_serviced_requests_are_on_standard_output() -> None:
    said = (FOLDER / "two_flows" / "stdout.txt").read_text()
    assert read_serviced(said) == [
        ("Host.IO_Flow.Synth.No_0", 24, 24),
        ("Host.IO_Flow.Synth.No_1", 24, 24),
    ]
    assert read_serviced("MQSim started") == []


def judged(name: str) -> ScenarioResult:
    done = Execution(0, (FOLDER / name / "stdout.txt").read_text(), "", 0.1, 0.1, 1, None)
    asked, flows = RUNS[name]
    return MqsimEngine(Path("unused")).judge(FOLDER / name, done, asked, flows, (), RunOptions())


@pytest.mark.parametrize("name", [name for name in RUNS if name != "trace"])
def test_what_is_read_is_written_again_to_the_byte(name: str) -> None:
    assert write_result_xml(judged(name), RUNS[name][0]) == recorded(name)


def embedded(asked: DeviceConfig, flows: Scenario) -> str:
    return write_result_xml(EmbeddedEngine().run(asked, flows, RunOptions(queues=True)), asked)


def without_the_path_of_a_trace(text: str) -> str:
    return re.sub(r"IO_Flow\.Trace\.[^<]*", "IO_Flow.Trace", text)


@pytest.mark.parametrize("name", RUNS)
def test_the_embedded_engine_writes_what_mqsim_wrote(name: str) -> None:
    asked, flows = RUNS[name]
    expected = without_the_path_of_a_trace(recorded(name))
    assert without_the_path_of_a_trace(embedded(asked, flows)) == expected


@pytest.mark.parametrize("case", ["001_rr4k_qd1", "138_gc_rga_occ60_8kw", "167_stock_s3_tpcc"])
def test_the_embedded_engine_writes_the_reference_examples(
    case: str, reference: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(reference)
    asked = read_drive(f"cases/{case}.ssd.xml").device
    flows = read_workload(f"cases/{case}.wl.xml").with_traces(0)
    (path,) = (reference / "examples").glob(f"{case}*")
    content = path.read_bytes()
    expected = (gzip.decompress(content) if path.suffix == ".gz" else content).decode("ascii")
    assert embedded(asked, flows) == expected


def test_a_trace_is_written_under_the_name_that_the_user_knows() -> None:
    written = write_result_xml(judged("trace"), RUNS["trace"][0])
    assert "six.trace</Name>" in written
    assert written.splitlines()[5:] == recorded("trace").splitlines()[5:]


def test_rates_are_written_over_whole_seconds_as_mqsim_does() -> None:
    flow = reads(count=4, generated=6, seconds=2.9)
    written = write_result_xml(scenario(flow), ONE_CHIP)
    assert "<IOPS>3.000000</IOPS>" in written  # 6 generated in 2 s
    assert "<Bandwidth_Read>8192.000000</Bandwidth_Read>" in written
    short = write_result_xml(scenario(reads(seconds=0.5)), ONE_CHIP)
    assert "<IOPS>inf</IOPS>" in short
    assert "<IOPS_Write>-nan</IOPS_Write>" in short


def test_idle_leaves_the_execution_out_as_mqsim_does() -> None:
    drive = device(chip_exec_ns=(500_000_000,), chip_transfer_ns=(250_000_002,))
    written = write_result_xml(scenario(reads(seconds=1.0), device=drive), ONE_CHIP)
    assert 'Fraction_of_Time_in_Execution="0.500000"' in written
    assert 'Fraction_of_Time_Idle="0.750000"' in written


def test_a_flow_without_completions_has_mqsims_numbers() -> None:
    none = LatencyByClass(all=LatencySummary())
    flow = reads(0, generated=3, seconds=0.0, device_latency=none, end_to_end_latency=none)
    written = write_result_xml(scenario(flow), ONE_CHIP)
    (read_again,) = parse_result(written, "here").flows
    assert "<Min_Device_Response_Time>1271310319<" in written
    assert read_again.device.min_us is None


def test_collections_are_written_with_their_mean_moves() -> None:
    drive = device(gc_exec=4, gc_page_moves=10, blocks_erased_by_origin=OriginCounts(gc=4))
    report = parse_result(write_result_xml(scenario(device=drive), ONE_CHIP), "here")
    assert report.counts["Average_Page_Movement_For_GC"] == 2.5
    assert report.counts["Average_Page_Movement_For_WL"] is None


def test_names_are_escaped() -> None:
    written = write_result_xml(scenario(reads(name="a <b> & \u00fc")), ONE_CHIP)
    assert parse_result(written, "here").flows[0].name == "a <b> & \u00fc"


def test_the_reference_examples_are_read(reference: Path) -> None:
    paths = sorted((reference / "examples").glob("*"))
    for path in paths:
        text = path.read_bytes()
        text = gzip.decompress(text) if path.suffix == ".gz" else text
        report = parse_result(text.decode("ascii"), path.name)
        pages = report.count("Issued_Flash_Read_CMD") + 2 * report.count(
            "Issued_Flash_Multiplane_Read_CMD"
        )
        kinds = ("User_Read_TR_Queue", "Mapping_Read_TR_Queue", "GC_Read_TR_Queue")
        assert sum(map(report.dequeued, kinds)) == pages
    assert len(paths) == 5
