import time
from pathlib import Path

import pytest

from iojoule.api.jobs.calibration_request import Calibration, exclusive
from iojoule.api.jobs.supervisor import Supervisor
from iojoule.api.jobs.worker import Worker
from iojoule.api.state import datasets, jobs, profiles
from iojoule.api.state.datasets import Checked
from iojoule.api.state.ids import new_id
from iojoule.api.state.jobs import Job
from iojoule.api.state.place import State
from iojoule.datasets.provenance import Provenance
from iojoule.datasets.store import Dataset, write_dataset
from tests.api.jobs.test_worker import kill_workers, waited
from tests.sim.calibration.hidden import HIDDEN, measured

DEVICE = "samsung-980-pro-1tb"


def dataset(state: State, tmp_path: Path) -> str:
    rows = measured(HIDDEN, (4096, 16384, 65536), (1, 4, 16))
    made = Dataset.from_measurements(rows, Provenance(importer="test"))
    data, sidecar = write_dataset(made, tmp_path / "dataset")
    checked = Checked(data, sidecar, "parquet", DEVICE, len(made), made.columns, 0, "0" * 64)
    id_ = new_id()
    with state.files.keeping(), state.database.write() as connection:
        datasets.add(connection, state, id_, checked)
    return id_


def submitted(state: State, dataset_id: str, designs: int = 8) -> Job:
    asked = Calibration(
        device=DEVICE, datasets=[dataset_id], drive=DEVICE, parameters=["page_read_ns"], rounds=1,
        designs=designs, tables=False,
    )  # fmt: skip
    with state.database.write() as connection:
        return jobs.submit(connection, "calibration", asked.model_dump(), exclusive(DEVICE))


@pytest.mark.slow
def test_a_calibration_publishes_with_its_end_or_not_at_all(
    state: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("iojoule.api.jobs.calibration.cores", lambda: 1)
    job = submitted(state, dataset(state, tmp_path))
    worker = Worker(state)
    with monkeypatch.context() as broken:
        broken.setattr(worker, "_end", lambda *_: None)  # killed when all was computed
        assert worker.run_one()
    jobs.abandon(state.database, worker.name)
    with state.database.read() as connection:
        assert not profiles.all_shown(connection)
    assert worker.run_one()
    with state.database.read() as connection:
        assert jobs.find(connection, job.id).state == "done"
        shown = profiles.all_shown(connection)[DEVICE]
    assert (shown.number, shown.job_id) == (1, job.id)
    assert profiles.read(state, shown).simulated is not None


@pytest.mark.slow
def test_two_calibrations_of_one_device_follow_each_other_though_workers_are_killed(
    state: State, tmp_path: Path
) -> None:
    kept = dataset(state, tmp_path)
    asked = [submitted(state, kept, designs=40) for _ in range(2)]
    with Supervisor(state, 2):
        for _ in range(3):
            time.sleep(4.0)
            kill_workers()
        ended = [waited(state, job, lambda now: now.ended) for job in asked]
    assert [job.state for job in ended] == ["done", "done"]
    with state.database.read() as connection:
        versions = profiles.listed(connection, DEVICE, 10, None).items
        assert profiles.shown(connection, DEVICE).number == 2
    assert [one.number for one in versions] == [2, 1]
    assert {one.job_id for one in versions} == {job.id for job in asked}
    first, second = ended
    assert (first.finished_at or 0) <= (second.started_at or 0)
    for one in versions:
        assert profiles.read(state, one).profile_version == f"calibration-{one.number}"


def test_a_calibration_on_a_damaged_dataset_says_which(state: State, tmp_path: Path) -> None:
    id_ = dataset(state, tmp_path)
    job = submitted(state, id_)
    with state.database.read() as connection:
        digest = datasets.find(connection, id_).data_sha256
    state.files.path(digest).write_bytes(b"something else")
    assert Worker(state).run_one()
    with state.database.read() as connection:
        found = jobs.find(connection, job.id)
    assert found.state == "failed"
    assert found.error is not None
    assert found.error["type"] == "urn:iojoule:problem:stored-data-are-damaged"
    assert id_ in found.error["detail"]
