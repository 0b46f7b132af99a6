"""What answers needs nothing of the extras: each command runs where their packages are missing."""

import subprocess
import sys
from pathlib import Path

import pytest

from iojoule.api.cli.app import EXTRAS

DRIVE = ("--device", "samsung-980-pro-1tb")
WORKLOAD = ("--workload", "examples/page-reads.toml")

PROGRAM = f"""
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {sorted(EXTRAS)}:
            raise ModuleNotFoundError(name, name=name.split(".")[0])
sys.meta_path.insert(0, Missing())
from iojoule.api.cli import app
sys.exit(app.run(sys.argv[1:]))
"""


def run(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-c", PROGRAM, *arguments]
    root = Path(__file__).parents[2]
    return subprocess.run(command, capture_output=True, check=False, cwd=root)


@pytest.mark.parametrize(
    "arguments",
    [
        ("devices", "list"),
        ("devices", "show", "samsung-980-pro-1tb"),
        ("fleet", "plan", "examples/fleet.toml"),
        ("predict", *DRIVE, "--set", "queue_depth=16"),
        ("profile", "explain", *DRIVE),
        ("recommend", *DRIVE, *WORKLOAD),
        ("timeline", "write=5", "idle=5", *DRIVE),
        ("what-if", *DRIVE, *WORKLOAD, "-c", "growth=1.5"),
        ("workload", "from", "examples/oltp.fio"),
        ("workload", "presets"),
    ],
    ids=lambda arguments: "-".join(arguments[:2]),
)
def test_a_command_that_answers_needs_no_extra(arguments: tuple[str, ...]) -> None:
    done = run(*arguments)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout


def test_a_sweep_names_the_extra_that_stores_it(tmp_path: Path) -> None:
    target = str(tmp_path / "sweep.parquet")
    done = run("what-if", "sweep", *DRIVE, *WORKLOAD, "--axis", "growth=1,2", "--out", target)
    assert done.returncode == 3
    assert "iojoule[fit]" in done.stderr.decode()
    assert not Path(target).exists()
