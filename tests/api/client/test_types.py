"""What a type checker knows of a program that asks."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
from iojoule.api.client import Client

client = Client()
reveal_type(client.recommend("x", "ycsb-c").recommended)
reveal_type(client.predict("x", [{"jobs": 2}]).predictions[0].evidence)
reveal_type([one.rows for one in client.datasets()])
reveal_type(client.wait(client.simulate({"drive": "x"})))
reveal_type(client.profile("x", 0))
client.predict(device="x")
"""


@pytest.mark.slow
def test_arguments_and_answers_are_typed(root: Path, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    said = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file", "/dev/null",
         "--follow-imports", "silent", "--cache-dir", tmp_path / "cache", "program.py"],
        cwd=tmp_path, env={"MYPYPATH": str(root / "src")}, capture_output=True, text=True,
        check=False,
    ).stdout  # fmt: skip
    assert re.findall(r'program\.py:\d+: note: Revealed type is "(.*)"', said) == [
        "iojoule.recommender.response.Row | None",
        "iojoule.datasets.vocabulary.Evidence",
        "list[int]",
        "iojoule.api.http.schemas.JobStatus",
        "iojoule.datasets.profile.document.DeviceProfile",
    ]
    (wrong,) = re.findall(r"program\.py:\d+: error: (.*)", said)
    assert 'Missing positional argument "configurations"' in wrong
