import re
from collections.abc import Callable
from pathlib import Path

import pytest

from iojoule.datasets.errors import InputError
from iojoule.sim.device import DeviceConfig
from iojoule.sim.findings import RefusedError, Severity
from iojoule.sim.formats.files import WorkloadFile, read_workload
from iojoule.sim.formats.mqsim_inputs import write_workload_xml
from iojoule.sim.workload import FlowConfig, FlowKind, Scenario
from tests.errors import having

Read = Callable[..., WorkloadFile]


def test_a_workload_comes_back_as_it_was_written(workload_with: Read) -> None:
    workload = workload_with()
    assert workload.findings == ()
    synthetic, trace = workload.scenarios[0].flows
    assert synthetic == FlowConfig(
        stop_ns=10**9,
        channel_ids=tuple(range(8)),
        chip_ids=(0, 1, 2, 3),
        die_ids=(0, 1),
        plane_ids=(0, 1),
    )
    assert (trace.kind, trace.trace_path) == (FlowKind.TRACE, "traces/a.trace")


def test_every_scenario_of_a_file_is_read_in_order(tmp_path: Path) -> None:
    scenarios = [Scenario(flows=(FlowConfig(stop_ns=n),)) for n in (1, 2, 3)]
    path = tmp_path / "w.xml"
    path.write_text(write_workload_xml(scenarios, DeviceConfig()), encoding="ascii")
    assert [each.flows[0].stop_ns for each in read_workload(path).scenarios] == [1, 2, 3]


def test_xml_must_list_the_ids_so_the_drive_must_be_known() -> None:
    with pytest.raises(InputError, check=having(field="scenarios[0].flows[0].channel_ids")):
        write_workload_xml([Scenario(flows=(FlowConfig(stop_ns=1),))])


def test_a_trace_with_signs_in_its_name_survives(tmp_path: Path) -> None:
    flow = FlowConfig(kind=FlowKind.TRACE, trace_path='a&b<c> "d" \u00e9.trace')
    path = tmp_path / "w.xml"
    path.write_text(write_workload_xml([Scenario(flows=(flow,))], DeviceConfig()), encoding="ascii")
    assert read_workload(path).scenarios[0].flows[0].trace_path == flow.trace_path


def test_tags_of_mqsims_own_files_without_effect_are_notes(workload_with: Read) -> None:
    workload = workload_with(("<Bandwidth>0</Bandwidth>", "<Intensity>32768</Intensity>"))
    assert {said.name for said in workload.findings} == {"tag_without_effect", "tag_missing"}
    assert {said.severity for said in workload.findings} == {Severity.NOTE}
    assert workload.scenarios[0].flows[0].bandwidth_bytes_per_second == 0


@pytest.mark.parametrize(
    "tag",
    [
        "Synthetic_Generator_Type",
        "Channel_IDs",
        "Stop_Time",
        "Read_Percentage",
        "Address_Alignment_Unit",
        "Average_No_of_Reqs_in_Queue",
        "Priority_Class",
        "Relay_Count",
        "File_Path",
    ],
)
def test_a_tag_that_mqsim_would_read_from_wild_memory_must_be_there(
    workload_with: Read, tag: str, tmp_path: Path
) -> None:
    workload_with()
    path = tmp_path / "workload.xml"
    path.write_text(re.sub(rf"<{tag}>.*</{tag}>", "", path.read_text(encoding="ascii")))
    with pytest.raises(RefusedError, match=f"has no {tag}, .*; write it") as caught:
        read_workload(path)
    assert caught.value.name == "tag_missing"


def test_bandwidth_must_be_there_where_it_counts(workload_with: Read) -> None:
    with pytest.raises(RefusedError, check=having(name="tag_missing")):
        workload_with((">QUEUE_DEPTH<", ">BANDWIDTH<"), ("<Bandwidth>0</Bandwidth>", ""))


@pytest.mark.parametrize(
    ("old", "new", "name", "said"),
    [
        ("Channel_IDs>0,1,", "Channel_IDs>0;1,", "not_a_number", "parted by commas"),
        ("Channel_IDs>0,1,", "Channel_IDs>0,,1,", "not_a_number", "parted by commas"),
        ("Channel_IDs>0,1,", f"Channel_IDs>{'0,' * 500}1,", "list_too_long", "name fewer ids"),
        ("Channel_IDs>0,1,", "Channel_IDs>4096,1,", "out_of_range", "ids count from 0"),
        (">RANDOM_UNIFORM<", ">MIXED_STREAMING_RANDOM<", "mixed_streaming", "use two flows"),
        (">RANDOM_UNIFORM<", ">RANDOM_UNIFROM<", "unknown_word", "did you mean RANDOM_UNIFORM?"),
        ("Read_Percentage>100<", "Read_Percentage>101<", "out_of_range", "percentage"),
        ("Seed>1<", "Seed>-1<", "out_of_range", "MQSim hangs"),
        ("Stop_Time>1000000000<", "Stop_Time>0<", "out_of_range", "set one of them"),
        ("MQSim_IO_Scenarios", "Scenarios", "wrong_root", "its workload.xml"),
        ("IO_Scenario>", "Scenario>", "empty", "holds no IO_Scenario"),
        ("IO_Flow_Parameter_Set_", "Flow_", "empty", "holds no flow"),
    ],
)
def test_what_mqsim_would_misread_is_refused_with_the_place(
    workload_with: Read, old: str, new: str, name: str, said: str
) -> None:
    with pytest.raises(RefusedError, match=re.escape(said)) as caught:
        workload_with((old, new))
    assert caught.value.name == name
    assert re.search(r"workload\.xml, line \d+, \w+: ", caught.value.message)


@pytest.mark.parametrize("working_set", ["0", "101"])
def test_a_working_set_that_is_none_is_the_whole_as_in_mqsim(
    workload_with: Read, working_set: str
) -> None:
    workload = workload_with(("Set_Percentage>100<", f"Set_Percentage>{working_set}<"))
    assert workload.scenarios[0].flows[0].working_set_percent == 100
    assert [said.name for said in workload.findings] == ["working_set_whole"]


def test_the_unit_of_a_trace_is_ignored_as_in_mqsim(workload_with: Read) -> None:
    workload = workload_with((">NANOSECOND<", ">MICROSECOND<"))
    assert [said.name for said in workload.findings] == ["time_unit_ignored"]


@pytest.mark.parametrize("synthetic", ["SyntheticFlowParamSet", "SyntheticFlowParameterSet"])
@pytest.mark.parametrize("trace", ["TraceFlowParamSet", "TraceFlowParameterSet"])
def test_sets_of_forks_are_read_with_a_warning(
    workload_with: Read, synthetic: str, trace: str
) -> None:
    workload = workload_with(
        ("IO_Flow_Parameter_Set_Synthetic>", f"{synthetic}>"),
        ("IO_Flow_Parameter_Set_Trace_Based>", f"{trace}>"),
    )
    assert len(workload.scenarios[0].flows) == 2
    assert [said.name for said in workload.findings] == ["tag_renamed", "tag_renamed"]


def test_a_trace_is_looked_for_here_and_beside_the_workload(
    workload_with: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workload = workload_with()
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "traces").mkdir(parents=True)
    monkeypatch.chdir(elsewhere)
    with pytest.raises(RefusedError, check=having(name="missing_trace")):
        workload.with_traces(0)
    beside = tmp_path / "traces" / "a.trace"
    beside.parent.mkdir()
    beside.write_text("0 0 0 8 1\n", encoding="ascii")
    assert workload.with_traces(0).flows[1].trace_path == str(beside)
    (elsewhere / "traces" / "a.trace").write_text("0 0 0 8 1\n", encoding="ascii")
    assert workload.with_traces(0).flows[1].trace_path == "traces/a.trace"
