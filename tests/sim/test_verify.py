from pathlib import Path

import pytest

from iojoule.datasets.errors import InputError
from iojoule.sim.engines.embedded import EmbeddedEngine
from iojoule.sim.verify import COLUMNS, read_cases, verify, verify_all
from tests.sim.reference_folder import (
    DEVICE,
    SCENARIO,
    change_first_row,
    write_reference,
    write_table,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One case whose reference is what the simulator itself says."""
    write_reference(tmp_path, {"a": "own"})
    return tmp_path


def test_equal_results_are_equal(folder: Path) -> None:
    (verdict,) = verify_all(read_cases(folder))
    assert verdict.equal
    assert verdict.compared == len(COLUMNS) == 30


def test_a_mean_may_be_rounded_and_a_count_may_not(folder: Path) -> None:
    mean = EmbeddedEngine().run(DEVICE, SCENARIO).flows[0].drt_ns
    change_first_row(folder, drt_ns=mean + 0.9, serviced=1)
    (verdict,) = verify_all(read_cases(folder))
    assert [(each.column, each.expected) for each in verdict.differences] == [("serviced", 1.0)]
    change_first_row(folder, drt_ns=mean + 1.1)
    (verdict,) = verify_all(read_cases(folder))
    assert [each.column for each in verdict.differences] == ["serviced", "drt_ns"]


def test_a_run_that_fails_is_a_verdict(folder: Path) -> None:
    text = (folder / "cases" / "a.ssd.xml").read_text(encoding="ascii")
    hybrid = text.replace(">PAGE_LEVEL<", ">HYBRID<")
    (folder / "cases" / "a.ssd.xml").write_text(hybrid, encoding="ascii")
    (case,) = read_cases(folder)
    verdict = verify(case, EmbeddedEngine())
    assert not verdict.equal
    assert "no implementation" in (verdict.failure or "")


def test_a_folder_without_references_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_cases(tmp_path / "none")
    write_table(folder, [{"case": "a", "group": "b"}])
    with pytest.raises(InputError, match="has no column serviced"):
        read_cases(folder)


def test_a_case_without_inputs_is_refused(folder: Path) -> None:
    (folder / "cases" / "a.wl.xml").unlink()
    with pytest.raises(InputError, match=r"a\.wl\.xml: is not there"):
        read_cases(folder)
