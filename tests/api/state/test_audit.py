"""Each change that is accepted has one line, whatever is killed or restored."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update

from iojoule.api.application.profiles import profile_of
from iojoule.api.state import (
    api_keys,
    audit,
    datasets,
    jobs,
    ownership,
    profiles,
    restore,
    tables,
)
from iojoule.api.state.api_keys import Scope
from iojoule.api.state.backup import back_up
from iojoule.api.state.callers import Caller, Limits, Origin
from iojoule.api.state.errors import ConflictError, NotFoundError, QuotaError
from iojoule.api.state.idempotency import Key
from iojoule.api.state.place import Place, State
from tests.api.state.test_backup import Elsewhere, elsewhere, opened
from tests.api.state.test_quotas import uploaded
from tests.api.state.test_retention import DEVICE, done

__all__ = ["elsewhere"]

ANN = Caller(
    Origin.KEY, "ann", "a" * 12, sees_all=False, limits=Limits(jobs_waiting_max=1),
    request_id="r1", remote_address="192.0.2.1",
)  # fmt: skip
BEN = Caller(Origin.KEY, "ben", "b" * 12, sees_all=False)


def lines(state: State) -> list[dict[str, Any]]:
    with state.database.read() as connection:
        return list(audit.lines(connection))


def actions(state: State) -> list[tuple[str, str, str]]:
    return [(one["action"], one["object"], one["outcome"]) for one in lines(state)]


def test_changes_are_recorded_with_who_what_and_when(state: State, tmp_path: Path) -> None:
    dataset = uploaded(state, tmp_path, ANN)
    with state.database.write() as connection:
        job = jobs.submit(connection, "simulation", {}, caller=ANN).id
        ownership.share_dataset(connection, dataset, True, ANN)
        ownership.share_dataset(connection, dataset, True, ANN)  # is so already
        jobs.cancel(connection, job, ANN)
        jobs.cancel(connection, job, ANN)
        ownership.delete_job(connection, job, ANN)
        ownership.delete_dataset(connection, dataset, ANN)
    found = lines(state)
    assert [(one["action"], one["object"], one["outcome"]) for one in found] == [
        ("dataset.upload", f"dataset/{dataset}", "done"),
        ("job.submit", f"job/{job}", "done"),
        ("dataset.share", f"dataset/{dataset}", "done"),
        ("job.cancel", f"job/{job}", "cancelled"),
        ("job.delete", f"job/{job}", "done"),
        ("dataset.delete", f"dataset/{dataset}", "done"),
    ]
    for one in found:
        assert (one["owner"], one["key_id"], one["origin"]) == ("ann", "a" * 12, "key")
        assert (one["request_id"], one["remote_address"]) == ("r1", "192.0.2.1")
        assert one["at"].endswith("+00:00")
        assert json.loads(json.dumps(one)) == one


def test_what_is_refused_or_repeated_changes_nothing_and_has_no_line(
    state: State, tmp_path: Path
) -> None:
    key = Key("POST /simulations", "mine", "0" * 64, "a" * 12)
    with state.database.write() as connection:
        job = jobs.submit(connection, "simulation", {}, key=key, caller=ANN)
        assert jobs.submit(connection, "simulation", {}, key=key, caller=ANN) == job
    before = actions(state)
    assert len(before) == 1

    def refused(change: Any, error: type[Exception]) -> None:
        with pytest.raises(error), state.database.write() as connection:
            change(connection)

    refused(lambda c: jobs.submit(c, "simulation", {}, caller=ANN), QuotaError)
    refused(lambda c: jobs.cancel(c, job.id, BEN), NotFoundError)
    refused(lambda c: ownership.delete_job(c, job.id, ANN), ConflictError)
    refused(lambda c: ownership.share_job(c, job.id, True, BEN), NotFoundError)
    assert actions(state) == before


def test_keys_leave_no_secret(state: State) -> None:
    with state.database.write() as connection:
        key, text = api_keys.create(connection, "grid", Scope.READ, caller=Caller.local())
        api_keys.change(connection, key.id, {"jobs_waiting_max": 3}, Caller.local())
        api_keys.change(connection, key.id, {"jobs_waiting_max": 3}, Caller.local())
        api_keys.revoke(connection, key.id, Caller.local())
        api_keys.revoke(connection, key.id, Caller.local())
    found = lines(state)
    assert [one["action"] for one in found] == ["key.create", "key.change", "key.revoke"]
    assert found[1]["details"] == {
        "before": {"jobs_waiting_max": None}, "after": {"jobs_waiting_max": 3}
    }  # fmt: skip
    told = json.dumps(found)
    assert text.split("_", 2)[2] not in told
    assert key.secret_sha256 not in told
    assert all(one["os_user"] for one in found)


def test_what_the_service_does_by_itself_is_recorded(state: State) -> None:
    with state.files.keeping(), state.database.write() as connection:
        profiles.publish(connection, state, profile_of(DEVICE), None)
        profiles.show(connection, DEVICE, None, 1, BEN)
    old = done(state, 40)
    state.sweep(30 * 86400.0)
    assert actions(state)[:2] == [
        ("profile.publish", f"profile/{DEVICE}/1", "done"),
        ("profile.use", f"profile/{DEVICE}/0", "done"),
    ]
    assert actions(state)[-1] == ("job.forget", f"job/{old.id}", "done")


def test_lines_stay_unless_somebody_says_for_how_long(state: State) -> None:
    done(state, 0)
    table = tables.audit
    with state.database.write() as connection:
        connection.execute(update(table).values(at=table.c.at - 100 * 86400.0))
    state.sweep(30 * 86400.0)
    assert [one[0] for one in actions(state)] == ["job.submit"]
    state.sweep(None, 90 * 86400.0)
    assert [one[0] for one in actions(state)] == ["audit.forget"]


def test_lines_can_be_asked_for_from_a_time_on_and_page_by_page(state: State) -> None:
    with state.database.write() as connection:
        made = [jobs.submit(connection, "simulation", {}).id for _ in range(5)]
    objects = [f"job/{id_}" for id_ in made]
    with state.database.read() as connection:
        assert [one["object"] for one in audit.lines(connection, limit=2)] == objects[-2:]
        assert list(audit.lines(connection, since=4e9)) == []
        first = audit.page(connection, 3, None)
        rest = audit.page(connection, 3, first.next_cursor)
    assert {one["object"] for one in (*first.items, *rest.items)} == set(objects)
    assert rest.next_cursor is None


def _change_and_die(place: Place, folder: Path, number: int, committed: Any) -> None:
    state = State(place)
    caller = Caller(Origin.KEY, "ann", "a" * 12, sees_all=False)
    for _ in range(number):
        uploaded(state, folder, caller)
    with state.database.write() as connection:
        made = jobs.submit(connection, "simulation", {}, caller=caller)
    if number % 2:  # and once in the midst of a transaction
        with state.database.write() as connection:
            jobs.cancel(connection, made.id, caller)
            committed.set()
            os.kill(os.getpid(), signal.SIGKILL)
    committed.set()
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("number", [1, 2])
def test_what_was_committed_has_exactly_one_line_though_its_process_is_killed(
    state: State, tmp_path: Path, number: int
) -> None:
    spawn = multiprocessing.get_context("spawn")  # a fork of a process with threads may hang
    committed = spawn.Event()
    process = spawn.Process(target=_change_and_die, args=(state.place, tmp_path, number, committed))
    process.start()
    process.join(60)
    assert (process.exitcode, committed.is_set()) == (-signal.SIGKILL, True)
    with state.database.read() as connection:
        kept = datasets.listed(connection, 100, None).items
        queued = jobs.listed(connection, 100, None).items
    expected = [("dataset.upload", f"dataset/{one.id}", "done") for one in kept]
    expected += [("job.submit", f"job/{one.id}", "done") for one in queued]
    assert sorted(actions(state)) == sorted(expected)
    assert (len(kept), [one.state for one in queued]) == (number, ["queued"])


def test_the_log_goes_on_through_a_restore(
    state: State, elsewhere: Elsewhere, tmp_path: Path
) -> None:
    first = done(state, 0)
    file, target = tmp_path / "one.iojoule", elsewhere()
    back_up(state, file)
    with opened(target) as other:
        second = done(other, 0)
    restore.restore(target, file, replace=True)
    with opened(target) as restored:
        assert sorted(actions(restored)) == sorted([
            ("job.submit", f"job/{first.id}", "done"),
            ("job.submit", f"job/{second.id}", "done"),
            ("backup.restore", "state", "done"),
        ])  # fmt: skip
        with restored.database.read() as connection:
            assert list(connection.scalars(select(tables.jobs.c.id))) == [first.id]
