"""The simulator's own tests once more, with the core under AddressSanitizer and UBSan."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
CORE = ROOT / "build" / "core-sanitize"
pytestmark = pytest.mark.slow

NEVER_IN_THE_CORE = (
    "tests/sim/calibration/test_discrepancy.py",
    "tests/sim/calibration/test_estimate.py",
    "tests/sim/formats/test_fuzz.py",
    "tests/sim/workers/test_dask.py",
)
"""Numbers, parsing and other processes alone, half of the time of tests/sim: no sanitizer looks
there."""

# The sanitized core goes before the usual one. Programs that the tests start are not ours to check.
PROGRAM = f"""
import os, sys
del os.environ["LD_PRELOAD"]
import iojoule.sim
iojoule.sim.__path__.insert(0, {str(CORE)!r})
from iojoule.sim import _core
assert _core.__file__.startswith({str(CORE)!r}), _core.__file__
import pytest
sys.exit(pytest.main(sys.argv[1:]))
"""


def library(name: str) -> str:
    """Where the compiler has a library; it answers with the bare name when it has none."""
    compiler = os.environ.get("CXX", "c++")
    found = subprocess.run(
        [compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True
    ).stdout.strip()
    if not Path(found).is_absolute():
        pytest.skip(f"{compiler} has no {name}")
    return found


def test_what_is_left_out_never_enters_the_core() -> None:
    for one in NEVER_IN_THE_CORE:
        text = (ROOT / one).read_text(encoding="utf-8")
        assert "_core" not in text
        assert "engines" not in text


def test_the_simulators_tests_pass_under_sanitizers(tmp_path: Path) -> None:
    if shutil.which(os.environ.get("CXX", "c++")) is None:
        pytest.skip("there is no C++ compiler")
    subprocess.run([ROOT / "scripts" / "build_core.sh", "sanitize"], check=True)
    ignored = [f"--ignore={one}" for one in NEVER_IN_THE_CORE]
    chosen = ["-m", "not slow and not bench and not soak", *ignored, "tests/sim"]
    # A Python that was not linked with the sanitizer must load it first, and with it the C++
    # library, whose exceptions it watches. What Python itself does not free is not looked for.
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, "-q", *chosen],
        cwd=ROOT,
        env={
            **os.environ,
            "LD_PRELOAD": f"{library('libasan.so')} {library('libstdc++.so')}",
            # pytest holds the standard streams when the process ends
            "ASAN_OPTIONS": f"detect_leaks=0:log_path={tmp_path / 'report'}",
            "UBSAN_OPTIONS": f"print_stacktrace=1:log_path={tmp_path / 'report'}",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    reports = "\n".join(path.read_text()[:4000] for path in tmp_path.glob("report*"))
    assert ran.returncode == 0, f"{ran.stdout[-4000:]}\n{ran.stderr[-4000:]}\n{reports}"
    assert not reports
