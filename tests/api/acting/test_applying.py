"""Setting and taking back, on a host below a folder: all of it, or nothing."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from iojoule.api.acting import applying
from iojoule.api.acting.applying import apply, require_consent, take_back_file
from iojoule.api.acting.errors import SlaBreachedError
from iojoule.api.acting.proposal import Proposal, propose
from iojoule.datasets.errors import InputError
from iojoule.measure.campaign.rig import DriveFacts
from iojoule.measure.errors import HostStateError, UnsafeDriveError
from iojoule.measure.host.journal import HostState, process_start
from tests.api.acting.answers import answer
from tests.api.acting.hosts import SERIAL, host, values, write

WANTED = {"cpu_governor": "powersave", "cpu_frequency_max_hertz": 2e9, "cstate_limit": 0}


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IOJOULE_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("IOJOULE_JOURNALS", str(tmp_path / "state"))
    monkeypatch.setattr(applying, "wake", lambda _: None)


@pytest.fixture
def facts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DriveFacts:
    found = host(tmp_path / "sys")
    monkeypatch.setattr(applying, "inspect_drive", lambda drive, controller: (found, None))
    return found


@pytest.fixture
def proposal(facts: DriveFacts) -> Proposal:
    return propose(answer(WANTED), facts, None)


def say(_: str) -> None: ...


def test_undo_gives_back_exactly_what_was(tmp_path: Path, proposal: Proposal) -> None:
    before = values(tmp_path / "sys")
    undo = tmp_path / "undo.json"
    apply(proposal, proposal.steps, None, undo, say)
    after = values(tmp_path / "sys")
    changed = {name for name in before if before[name] != after[name]}
    assert len(changed) == len(proposal.steps) == 2 + 2 + 2 * 2
    assert list((tmp_path / "state").glob("*")) == [], "the journal's work is the undo file's now"
    assert take_back_file(undo, say) == len(proposal.steps)
    assert values(tmp_path / "sys") == before
    assert not undo.exists()


def test_a_setting_that_is_refused_takes_the_others_back(
    tmp_path: Path, proposal: Proposal, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = values(tmp_path / "sys")
    text = Path.write_text
    last = proposal.steps[-1].change.path  # type: ignore[attr-defined]

    def refuses(path: Path, value: str, *args: object, **more: object) -> int:
        if str(path) == last:
            raise OSError(22, "Invalid argument")
        return text(path, value)

    monkeypatch.setattr(Path, "write_text", refuses)
    undo = tmp_path / "undo.json"
    with pytest.raises(HostStateError, match="refuses '1'"):
        apply(proposal, proposal.steps, None, undo, say)
    assert values(tmp_path / "sys") == before
    assert not undo.exists()


def test_a_breach_takes_everything_back(tmp_path: Path, proposal: Proposal) -> None:
    before = values(tmp_path / "sys")
    seen: list[dict[str, str]] = []

    def watch() -> None:
        seen.append(values(tmp_path / "sys"))
        raise SlaBreachedError("too slow")

    undo = tmp_path / "undo.json"
    with pytest.raises(SlaBreachedError):
        apply(proposal, proposal.steps, None, undo, say, watch=watch)
    assert seen != [before], "it was set while it was watched"
    assert values(tmp_path / "sys") == before
    assert not undo.exists()


KILLED = """
import os, signal, sys
from pathlib import Path
from iojoule.api.acting import applying
from iojoule.api.acting.proposal import propose
from tests.api.acting.answers import answer
from tests.api.acting.hosts import host
from tests.settable import declare_all_below
folder = Path(sys.argv[1])
declare_all_below(folder)
proposal = propose(answer({"cpu_governor": "powersave"}), host(folder / "sys"), None)
kill = lambda: os.kill(os.getpid(), signal.SIGKILL)
applying.apply(proposal, proposal.steps, None, folder / "undo.json", print, watch=kill)
"""


def test_after_a_kill_the_next_command_takes_it_back(tmp_path: Path, facts: DriveFacts) -> None:
    before = values(tmp_path / "sys")
    root = Path(__file__).resolve().parents[3]
    subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path)],
        check=False,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    assert values(tmp_path / "sys") != before
    said: list[str] = []
    assert take_back_file(tmp_path / "undo.json", said.append) == 0
    assert all("restored after a crash" in line for line in said)
    assert values(tmp_path / "sys") == before


def test_where_another_process_sets_the_same_nothing_is_set_nor_kept(
    tmp_path: Path, proposal: Proposal
) -> None:
    others = HostState("another drive")
    others.set(proposal.steps[-1].change, "1")
    (journal,) = (tmp_path / "state").iterdir()
    other = {"pid": os.getppid(), "pid_started": process_start(os.getppid())}
    journal.write_text(json.dumps(json.loads(journal.read_text()) | other))
    before = values(tmp_path / "sys")
    steps = [replace(step, then="0") if step.then == "1" else step for step in proposal.steps]
    with pytest.raises(HostStateError):
        apply(proposal, steps, None, tmp_path / "undo.json", say)
    assert values(tmp_path / "sys") == before
    assert not (tmp_path / "undo.json").exists()


def test_the_serial_number_has_to_be_typed(proposal: Proposal) -> None:
    require_consent(proposal, f" {SERIAL} ")
    for typed in (None, "S1"):
        with pytest.raises(UnsafeDriveError, match=SERIAL):
            require_consent(proposal, typed)


def test_what_takes_back_an_earlier_change_is_not_overwritten(
    tmp_path: Path, proposal: Proposal
) -> None:
    undo = tmp_path / "undo.json"
    undo.write_text("mine")
    with pytest.raises(InputError, match="takes back an earlier change"):
        apply(proposal, proposal.steps, None, undo, say)
    assert undo.read_text() == "mine"


def test_another_drive_at_the_node_is_left_alone(
    tmp_path: Path, facts: DriveFacts, proposal: Proposal
) -> None:
    undo = tmp_path / "undo.json"
    apply(proposal, proposal.steps, None, undo, say)
    write(facts.device.folder / "device", serial="ANOTHER")
    now = values(tmp_path / "sys")
    with pytest.raises(UnsafeDriveError, match="is now the drive ANOTHER"):
        take_back_file(undo, say)
    assert values(tmp_path / "sys") == now
    assert undo.exists()
