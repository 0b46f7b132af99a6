"""What is said beforehand is what is done: the plan is the measuring code, played dry."""

import json
from pathlib import Path

import pytest

from iojoule.datasets.vocabulary import Operation
from iojoule.measure.campaign.rig import DriveFacts
from iojoule.measure.characterise.experiment import Job, ScaleName, extent_of
from iojoule.measure.characterise.experiments import EXPERIMENTS, chosen
from iojoule.measure.characterise.session import PlanningBench, commands, fills_first, plan_steps
from iojoule.measure.characterise.workbench import job_text, order_text
from iojoule.measure.drive.block_device import BlockDevice
from iojoule.measure.errors import CampaignError

CAPACITY = 10**12
DRIVE = DriveFacts(
    BlockDevice(Path("/dev/none"), "none", "0:0", CAPACITY, 512, Path("/nowhere")), None, None
)


@pytest.mark.parametrize("scale", list(ScaleName))
@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda one: one.name)
def test_a_question_writes_exactly_if_it_says_so_and_stays_in_the_area(experiment, scale) -> None:
    extent = extent_of(scale, CAPACITY if scale is ScaleName.QUICK else 1 << 25)
    bench = PlanningBench(extent, (0, 1, 3))
    experiment.measure(bench, extent)
    written = sum(job.bytes_written for job in bench.jobs)
    assert (written > 0) == experiment.writes
    for job in bench.jobs:
        window = job.window_bytes or extent.area_bytes - job.offset_bytes
        if job.order is not None:
            window = (max(job.order) + 1) * job.request_bytes
            assert sorted(job.order) == list(range(len(job.order)))
        assert job.offset_bytes + window <= extent.area_bytes
        assert "filename=/dev/none\n" in job_text(job, Path("/dev/none"), extent, 1)


def test_labels_are_names_of_their_own() -> None:
    extent = extent_of(ScaleName.FULL, 1 << 25)
    for experiment in EXPERIMENTS:
        bench = PlanningBench(extent, (0, 1))
        experiment.measure(bench, extent)
        labels = [job.label for job in bench.jobs]
        assert len(set(labels)) == len(labels), experiment.name


def test_what_cannot_be_asked_is_said_and_costs_nothing() -> None:
    extent = extent_of(ScaleName.QUICK, CAPACITY)
    steps = {
        one.experiment.name: one for one in plan_steps(EXPERIMENTS, extent, DRIVE, has_power=False)
    }
    assert "controller" in str(steps["idle"].obstacle)
    assert "power meter" in str(steps["asymmetry"].obstacle)
    assert steps["asymmetry"].bytes_written == 0
    assert steps["saturation"].obstacle is None
    said = "\n".join(commands(list(steps.values()), extent, Path("/dev/none")))
    assert "rw=randread" in said
    assert "left out" in said


def test_the_area_is_filled_first_only_where_something_is_written_anyway() -> None:
    extent = extent_of(ScaleName.QUICK, CAPACITY)

    def fills(*names: str) -> bool:
        return fills_first(plan_steps(chosen(names), extent, DRIVE, has_power=True))

    assert not fills("saturation", "locality")
    assert fills("saturation", "alignment")
    assert not fills("slc-cache", "alignment")


def test_an_unknown_question_is_refused_with_the_known_ones() -> None:
    with pytest.raises(CampaignError, match="slc-cache"):
        chosen(["slc"])


def test_an_order_is_replayed_request_by_request() -> None:
    job = Job("x", Operation.READ, 4096, order=(2, 0, 1), offset_bytes=8192)
    lines = order_text(job, Path("/dev/none")).splitlines()
    assert lines[3:6] == [f"/dev/none read {8192 + 4096 * place} 4096" for place in (2, 0, 1)]


def test_the_scopes_are_plain_numbers() -> None:
    for scale in ScaleName:
        extent = extent_of(scale, CAPACITY)
        assert extent.area_bytes % (1 << 20) == 0
        assert json.dumps(extent.share_bytes(1 / 18))
        assert extent.share_bytes(1e-12) == 1 << 20
