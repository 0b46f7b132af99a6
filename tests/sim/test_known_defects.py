import csv
from collections.abc import Iterator
from pathlib import Path

import pytest

from iojoule.sim.device import CacheMechanism, DeviceConfig
from iojoule.sim.findings import Finding, RefusedError, Severity, refuse_errors
from iojoule.sim.formats.files import known_findings, read_drive, read_workload
from iojoule.sim.known_defects import KNOWN_DEFECTS, findings
from iojoule.sim.result import Mode
from iojoule.sim.workload import CachingMode, FlowConfig, FlowKind
from tests.errors import having
from tests.sim.failing_inputs import FAILING_INPUTS


def defects_of(case: str, folder: Path) -> dict[str, str]:
    """Names and messages of everything that is found in a failing input before it is run."""

    def found() -> Iterator[Finding]:
        drive = read_drive(folder / f"{case}.ssd.xml")
        workload = read_workload(folder / f"{case}.wl.xml")
        yield from drive.findings
        yield from workload.findings
        for number in range(len(workload.scenarios)):
            yield from known_findings(drive, workload, number)
            workload.with_traces(number)

    try:
        return {finding.name: str(finding) for finding in found()}
    except RefusedError as error:
        return {error.name: error.message}


@pytest.mark.parametrize("case", FAILING_INPUTS)
def test_every_failing_input_is_named_with_its_file(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("one.trace").write_text("0 0 0 8 1\n", encoding="ascii")
    FAILING_INPUTS[case].write(case, tmp_path)
    found = defects_of(case, tmp_path)
    assert f"{case}." in found[FAILING_INPUTS[case].name]


def test_every_failing_input_of_mqsim_itself_has_its_name(
    reference: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(reference)
    for case, failing in FAILING_INPUTS.items():
        found = defects_of(case, reference / "failures")
        assert f"{case}." in found[failing.name], case


def test_no_failure_of_the_list_is_left_out(reference: Path) -> None:
    with (reference / "failures.csv").open(encoding="utf-8") as file:
        assert [row["case"] for row in csv.DictReader(file)] == list(FAILING_INPUTS)


def test_a_reference_case_that_mqsim_runs_is_never_refused(reference: Path) -> None:
    cases = sorted((reference / "cases").glob("*.ssd.xml"))
    assert len(cases) == 105
    for path in cases:
        drive = read_drive(path)
        workload = read_workload(path.with_name(path.name.replace(".ssd.", ".wl.")))
        for number in range(len(workload.scenarios)):
            refuse_errors(known_findings(drive, workload, number))


def test_names_and_messages_of_the_table_are_in_order() -> None:
    names = [trap.name for trap in KNOWN_DEFECTS]
    assert len(set(names)) == len(names)
    for trap in KNOWN_DEFECTS:
        assert trap.remedy[0].islower(), trap.name
        assert not trap.message.endswith("."), trap.name


def test_a_drive_of_no_trap_has_no_finding() -> None:
    device = DeviceConfig(preconditioning=False, gc_preemptible=False)
    assert findings(device, [FlowConfig(stop_ns=10**9)]) == ()


def test_physical_mode_has_none_of_mqsims_overflows() -> None:
    device = DeviceConfig(
        mode=Mode.PHYSICAL,
        cache_mechanism=CacheMechanism.SIMPLE,
        cache_bytes=8 << 30,
        dram_megatransfers_per_second=6400,
        channel_megatransfers_per_second=2400,
    )
    assert findings(device, [FlowConfig(stop_ns=1, read_percent=0)]) == ()
    assert {
        f.name
        for f in findings(
            device.model_copy(update={"mode": Mode.COMPAT}), [FlowConfig(stop_ns=1, read_percent=0)]
        )
    } >= {"cache_32_bit", "dram_rate_32_bit", "cache_simple"}


def test_a_cache_below_the_buffers_of_the_planes_is_told_of_where_it_is_written() -> None:
    buffers = 2 * DeviceConfig().planes * DeviceConfig().page_bytes

    def told(size: int, **flow: int) -> list[str]:
        device = DeviceConfig(mode=Mode.PHYSICAL, cache_bytes=size)
        return [each.name for each in findings(device, [FlowConfig(stop_ns=1, **flow)])]

    assert told(buffers - 1, read_percent=0) == ["cache_below_buffers"]
    assert told(1, read_percent=50) == ["cache_below_buffers"]
    assert told(buffers, read_percent=0) == []
    assert told(0, read_percent=0) == []
    assert told(1, read_percent=100) == []


def test_the_worst_comes_first_and_is_raised() -> None:
    device = DeviceConfig(
        preconditioning=False,
        gc_preemptible=False,
        channel_megatransfers_per_second=1200,
        io_queue_depth=65536,
        suspension="program",
    )
    found = findings(device, [FlowConfig(stop_ns=1)])
    assert [each.severity for each in found] == [Severity.ERROR, Severity.WARNING, Severity.NOTE]
    with pytest.raises(RefusedError, check=having(name="io_queue_depth_16_bit")):
        refuse_errors(found)


def test_collection_that_cannot_start_is_no_reason_to_refuse() -> None:
    device = DeviceConfig(preconditioning=False, gc_preemptible=True)
    writes = FlowConfig(stop_ns=10**9, read_percent=0)
    assert "gc_preemptible" not in {each.name for each in findings(device, [writes])}
    # 32 chips program 2 planes in 750 us: 853 k pages in 10 s, more than 128 planes x 10 x 256
    small, writes = (
        device.model_copy(update={"blocks_per_plane": 20}),
        writes.model_copy(update={"stop_ns": 10**10}),
    )
    assert "gc_preemptible" in {each.name for each in findings(small, [writes])}
    reads = FlowConfig(stop_ns=10**9)
    assert "gc_preemptible" not in {each.name for each in findings(small, [reads])}


def test_only_the_flow_at_fault_is_named() -> None:
    device = DeviceConfig(preconditioning=False, gc_preemptible=False)
    good = FlowConfig(stop_ns=1, caching=CachingMode.TURNED_OFF)
    bad = FlowConfig(kind=FlowKind.TRACE, trace_path="t", trace_replays=2)
    found = [each.field for each in findings(device, [good, bad]) if each.name == "trace_replays"]
    assert found == ["flows[1].trace_replays"]
