"""Programs run apart, within limits, and are stopped when they must be."""

import os
import shlex
import sys
import time
from pathlib import Path

import pytest

from iojoule.sim.engines.mqsim_process import Execution, ProcessLimits, execute

ENOUGH = ProcessLimits(memory_bytes=2 << 30, wall_seconds=60, file_bytes=1 << 20)


def run(directory: Path, code: str, limits: ProcessLimits = ENOUGH, **options: object) -> Execution:
    return execute([sys.executable, "-c", code], directory, limits, **options)  # type: ignore[arg-type]


def test_what_it_says_how_it_ends_and_what_it_used(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        "import os, sys; print('said', os.getcwd()); print('oh', file=sys.stderr); sys.exit(3)",
    )
    assert done.returncode == 3
    assert done.stdout == f"said {tmp_path}\n"
    assert done.stderr == "oh\n"
    assert done.stopped is None
    assert done.signal_name is None
    assert done.wall_seconds > 0
    assert done.user_seconds >= 0
    assert done.peak_bytes > 1 << 20


def test_its_input_is_closed(tmp_path: Path) -> None:
    assert run(tmp_path, "import sys; print(len(sys.stdin.read()))").stdout == "0\n"


def test_a_signal_has_a_name(tmp_path: Path) -> None:
    done = run(tmp_path, "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    assert done.signal_name == "SIGSEGV"


def test_it_ends_when_the_time_is_over(tmp_path: Path) -> None:
    limits = ProcessLimits(memory_bytes=2 << 30, wall_seconds=0.2, file_bytes=1 << 20)
    done = run(tmp_path, "import time; time.sleep(600)", limits)
    assert done.stopped == "wall_seconds"
    assert done.signal_name == "SIGKILL"


def test_it_is_stopped_when_asked_with_all_that_it_started(tmp_path: Path) -> None:
    code = (
        "import subprocess; child = subprocess.Popen(['sleep', '600']); "
        "print(child.pid, flush=True); child.wait()"
    )
    done = run(tmp_path, code, cancelled=lambda: (tmp_path / "stdout.txt").stat().st_size > 0)
    assert done.stopped == "cancelled"
    assert ended(int(done.stdout))


def ended(pid: int) -> bool:
    """Gone, or only waiting to be collected by whoever adopted it."""
    for _ in range(100):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def test_an_interrupted_caller_leaves_nothing_running(tmp_path: Path) -> None:
    def interrupt() -> bool:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(
            tmp_path,
            "import os, time; print(os.getpid(), flush=True); time.sleep(600)",
            cancelled=interrupt,
        )
    said = (tmp_path / "stdout.txt").read_text()
    assert not said or ended(int(said))


LIMITED = (
    "import resource as r, time; "
    "[time.sleep(0.01) for _ in iter(lambda: r.getrlimit(r.RLIMIT_FSIZE)[0], 1 << 20)]"
)
"""The limits may come a moment after the program has begun: that of memory, then that of files."""


def test_memory_is_limited(tmp_path: Path) -> None:
    limits = ProcessLimits(memory_bytes=512 << 20, wall_seconds=60, file_bytes=1 << 20)
    done = run(tmp_path, f"{LIMITED}; bytearray(1 << 30)", limits)
    assert done.returncode == 1
    assert "MemoryError" in done.stderr


def test_what_it_may_write_is_limited(tmp_path: Path) -> None:
    done = run(tmp_path, f"{LIMITED}; open('much', 'wb').write(bytes(2 << 20))")
    assert (tmp_path / "much").stat().st_size <= 1 << 20
    assert "File too large" in done.stderr or done.signal_name == "SIGXFSZ"


def test_of_much_output_the_end_is_kept(tmp_path: Path) -> None:
    limits = ProcessLimits(memory_bytes=2 << 30, wall_seconds=60, file_bytes=1 << 24)
    done = run(tmp_path, "print('x' * (2 << 20)); print('end')", limits)
    assert len(done.stdout) == 1 << 20
    assert done.stdout.endswith("x\nend\n")


def test_a_program_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        execute([str(tmp_path / "none")], tmp_path, ENOUGH)
    assert os.listdir(tmp_path)  # noqa: PTH208  # its output files, and nothing else went wrong


def test_many_threads_may_run_programs_at_once(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def one(number: int) -> str:
        directory = tmp_path / str(number)
        directory.mkdir()
        return run(directory, f"print({shlex.quote(str(number))})").stdout

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(one, range(8))) == [f"{number}\n" for number in range(8)]
