"""PostgreSQL on the virtual drive, measured through the real interfaces, against what really was.

The lab knows the energy that its drive took and the commands that reached it.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from iojoule.measure.command.request import CommandRequest, parse_metric
from iojoule.measure.command.session import measure_command

pytestmark = pytest.mark.slow

life = pytest.importorskip("iojoule.measure.lab.life", reason="this checkout has no lab")

USER = "postgres"


def programs() -> Path:
    """Where PostgreSQL's server programs are."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found or shutil.which("pgbench") is None:
        pytest.skip("PostgreSQL is not installed (Debian: postgresql, postgresql-contrib)")
    return found[-1].parent


def run(*words: str | Path) -> None:
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"


def as_postgres(*words: str | Path) -> tuple[str, ...]:
    return ("runuser", "-u", USER, "--", *map(str, words))


@pytest.fixture
def lab() -> Iterator[Any]:
    if os.geteuid() != 0:
        pytest.skip("only root may make and mount a file system")
    for needed in ("mkfs.ext4", "runuser", "mount"):
        if shutil.which(needed) is None:
            pytest.skip(f"{needed} is not installed")
    try:
        pwd.getpwnam(USER)
    except KeyError:
        pytest.skip(f"there is no user {USER}")
    programs()
    from iojoule.measure.errors import LabError

    # PostgreSQL's user must be able to walk to its data
    folder = Path(mkdtemp(prefix="iojoule-pgbench-"))
    folder.chmod(0o755)
    try:
        try:
            client = life.up(folder / "lab")
        except LabError as error:
            pytest.skip(f"the lab is not possible here: {error.message}")
        try:
            yield client
        finally:
            client.close()
            life.down(folder / "lab")
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def socket_folder(lab: Any) -> Iterator[Path]:
    """PostgreSQL with its data on the lab's drive, listening in this folder alone."""
    base = lab.paths.folder.parent
    mounted, socket = base / "mnt", base / "socket"
    binaries = programs()
    with ExitStack() as undo:
        run(
            "mkfs.ext4",
            "-q",
            "-E",
            "nodiscard,lazy_itable_init=0,lazy_journal_init=0",
            lab.state["drive"],
        )
        mounted.mkdir()
        run("mount", lab.state["drive"], mounted)
        undo.callback(run, "umount", mounted)
        for folder in (mounted / "cluster", socket):
            folder.mkdir()
            shutil.chown(folder, USER)
        data = mounted / "cluster" / "data"
        run(*as_postgres(binaries / "initdb", "-D", data, "-A", "trust"))
        options = f"-c listen_addresses='' -c unix_socket_directories={socket}"
        control = as_postgres(binaries / "pg_ctl", "-D", data, "-w")
        run(*control, "-l", str(socket / "log"), "-o", options, "start")
        undo.callback(run, *control, "-m", "immediate", "stop")
        run(*as_postgres("pgbench", "-h", socket, "-q", "-i", "-s", "1", "postgres"))
        run(*as_postgres("psql", "-q", "-h", socket, "-c", "CHECKPOINT", "postgres"))
        yield socket


def test_the_energy_of_a_transaction_is_what_the_drive_took(
    lab: Any, socket_folder: Path, tmp_path: Path
) -> None:
    result = measure_command(
        CommandRequest(
            command=as_postgres("pgbench", "-h", socket_folder, "-c", "4", "-T", "8", "postgres"),
            folder=tmp_path / "out",
            metrics=[parse_metric("transactions=actually processed: ([0-9]+)")],
            work="transactions",
            drive=Path(lab.state["drive"]),
            sensors=[f"powersensor3:{lab.state['powersensor3']}"],
            rapl_root=Path(lab.state["rapl_root"]),
        )
    )
    result.require_success()
    (one,) = result.runs
    truth = lab.record(one.begin_monotonic_ns, one.end_monotonic_ns)
    device = one.power["device"]
    assert device.energy_joules == pytest.approx(truth["device_energy_joules"], rel=0.02)
    assert one.work is not None
    per_unit = one.joules_per_unit["device"].value
    assert per_unit == pytest.approx(truth["device_energy_joules"] / one.work, rel=0.02)
    package = truth["host_energy_joules"]["package-0"]
    assert one.power["cpu"].energy_joules == pytest.approx(package, rel=0.03)
    # every commit waits for a flush, and a flush is a command
    assert one.drive_io is not None
    assert one.drive_io.flushes == pytest.approx(truth["flush"]["completions"], abs=2)
    really = sum(truth[kind]["completions"] for kind in ("read", "write", "flush"))
    assert one.drive_io.device_commands_high is not None
    assert one.drive_io.device_commands_low - 4 <= really <= one.drive_io.device_commands_high + 4
    assert one.drive_io.write_bytes == pytest.approx(truth["write"]["bytes"], rel=0.02)
