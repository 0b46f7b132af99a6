"""Every way in which MQSim is known to fail has its name, whether it says something or not."""

import json
from typing import Any

import pytest

from iojoule.sim.engines import EngineError, Limits
from iojoule.sim.engines.mqsim_process import (
    CRASHES,
    LOSSES,
    SILENCES,
    SYMPTOMS,
    Execution,
    raise_if_failed,
    raise_if_lost,
    raise_if_stopped,
)
from iojoule.sim.errors import CancelledError, LimitError
from iojoule.sim.findings import Finding, Severity
from iojoule.sim.known_defects import KNOWN_DEFECTS
from tests.errors import having
from tests.sim.recordings import FOLDER


def ended(returncode: int = 0, stderr: str = "", stopped: str | None = None) -> Execution:
    return Execution(returncode, "", stderr, 0.1, 0.1, 1 << 20, stopped)


def found(name: str) -> Finding:
    return Finding(name, Severity.WARNING, "some_field", "what is wrong; what to do")


def name_of(returncode: int, stderr: str = "", *findings: Finding) -> str:
    with pytest.raises(EngineError) as failed:
        raise_if_failed(ended(returncode, stderr), findings)
    return failed.value.name


WORDS = [json.loads(line) for line in (FOLDER / "last_words.jsonl").read_text().splitlines()]
ABORT = "terminate called after throwing an instance of "


@pytest.mark.parametrize("words", WORDS, ids=lambda words: words["stderr"][-40:])
def test_what_it_says_has_a_name(words: dict[str, Any]) -> None:
    assert name_of(words["returncode"], words["stderr"]) == words["name"]


@pytest.mark.parametrize(("signal", "names"), CRASHES.items())
def test_a_silent_crash_is_named_by_the_trap_that_its_inputs_are_in(
    signal: str, names: tuple[str, ...]
) -> None:
    number = {"SIGFPE": 8, "SIGSEGV": 11, "SIGABRT": 6}[signal]
    for name in names:
        assert name_of(-number, "", found("unrelated"), found(name)) == name
    assert name_of(-number, "", found("unrelated")) == "failed"


def test_what_is_not_known_is_told_as_it_was_said() -> None:
    with pytest.raises(EngineError, match=r"exit code 7 .* It said: first \| last"):
        raise_if_failed(ended(7, "first\n\nlast\n"), ())


def test_a_good_end_passes() -> None:
    raise_if_failed(ended(), ())
    raise_if_stopped(ended(), Limits())
    assert raise_if_lost([("flow", 3, 3), ("empty", 0, 0)], (), tolerate=False) == ()


def test_stops_from_outside() -> None:
    with pytest.raises(CancelledError):
        raise_if_stopped(ended(-9, stopped="cancelled"), Limits())
    with pytest.raises(LimitError, check=having(limit="wall_seconds")):
        raise_if_stopped(ended(-9, stopped="wall_seconds"), Limits(wall_seconds=5))
    with pytest.raises(LimitError, check=having(limit="memory_bytes")) as stopped:
        raise_if_stopped(ended(-6, ABORT + "std::bad_alloc"), Limits(memory_bytes=1024))
    assert stopped.value.limit == "memory_bytes"
    for signal, name in ((25, "output_too_large"), (9, "killed")):
        with pytest.raises(EngineError) as failed:
            raise_if_stopped(ended(-signal), Limits())
        assert failed.value.name == name


@pytest.mark.parametrize("name", SILENCES)
def test_a_run_that_serviced_nothing_is_an_error(name: str) -> None:
    for tolerate in (True, False):
        with pytest.raises(EngineError, match="generated 16 requests and serviced 0") as failed:
            raise_if_lost([("flow", 16, 0)], (found(name),), tolerate=tolerate)
        assert failed.value.name == name
    with pytest.raises(EngineError) as failed:
        raise_if_lost([("flow", 16, 0)], (), tolerate=True)
    assert failed.value.name == "nothing_serviced"


@pytest.mark.parametrize("name", LOSSES)
def test_lost_requests_are_named_by_their_trap(name: str) -> None:
    with pytest.raises(EngineError) as failed:
        raise_if_lost([("a", 5, 5), ("b", 16, 12)], (found(name),), tolerate=False)
    assert failed.value.name == name
    (said,) = raise_if_lost([("a", 5, 5), ("b", 16, 12)], (found(name),), tolerate=True)
    assert "b: MQSim generated 16 requests and serviced 12" in said


def test_causes_are_rows_of_the_table_of_traps() -> None:
    known = {trap.name for trap in KNOWN_DEFECTS}
    assert {name for names in CRASHES.values() for name in names} <= known
    assert {*SILENCES, *LOSSES} <= known
    by_word_only = {
        "cmt_below_entry",
        "cmt_loses_waiting",
        "missing_trace",
        "trace_goes_back",
        "blocks_exhausted",
        "unknown_word",
        "not_a_number",
    }
    assert {symptom.name for symptom in SYMPTOMS} - known == by_word_only
