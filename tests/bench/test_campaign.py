"""A campaign's own time per run, beside fio's and the waiting that the plan asks for: under 1 s."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from iojoule.measure.campaign.folder import CampaignFolder
from iojoule.measure.lab import life
from tests.measure.lab.conftest import missing_for_a_disk

OWN_SECONDS = 1.0
IOJOULE = Path(sys.executable).with_name("iojoule")
SETTLE_SECONDS = 0.2
PLAN = f"""
schema_version = 1
name = "overhead"
repeats = 3
[run]
seconds = 1
ramp_seconds = 0
[settle]
baseline_seconds = 0
seconds = {SETTLE_SECONDS}
[[sweep]]
name = "s"
operation = "read"
request_bytes = "4KiB"
queue_depth = [1, 4, 8]
scheduler = ["none", "mq-deadline"]
power_state = [0, 1]
"""


def test_a_run_costs_less_than_a_second_of_its_own(tmp_path: Path) -> None:
    if reason := missing_for_a_disk():
        pytest.skip(reason)
    (tmp_path / "plan.toml").write_text(PLAN)
    out = tmp_path / "campaign"
    with life.up(tmp_path / "lab") as lab:
        state = lab.state
        command = [
            IOJOULE, "measure", "run", "--drive", state["drive"], "--controller",
            state["controller"], "--power", f"powersensor3:{state['powersensor3']}",
            "--rapl-root", state["rapl_root"], "--plan", tmp_path / "plan.toml", "--out", out,
        ]  # fmt: skip
        environment = {
            **os.environ,
            **lab.environment(),
            "IOJOULE_JOURNALS": str(tmp_path / "state"),
        }
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    life.down(tmp_path / "lab")
    assert done.returncode == 0, done.stderr
    records = CampaignFolder(out).records()
    own = np.array([one.wall_seconds - one.fio_seconds - SETTLE_SECONDS for one in records])
    print(
        json.dumps(
            {
                "runs": len(own),
                "own_seconds_median": round(float(np.median(own)), 3),
                "own_seconds_max": round(float(own.max()), 3),
            }
        )
    )
    assert np.median(own) < OWN_SECONDS
