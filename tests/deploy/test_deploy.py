"""What the service is installed with; the dashboard is judged beside its figures."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from iojoule.api.cli.app import run


@pytest.fixture(params=["iojoule", "iojoule-exporter"])
def unit(root: Path, request: pytest.FixtureRequest) -> str:
    """A systemd unit."""
    return (root / "deploy" / f"{request.param}.service").read_text()


@pytest.fixture
def steps(root: Path) -> list[tuple[str, str]]:
    """The instructions of the Containerfile and what they are given."""
    text = (root / "deploy" / "Containerfile").read_text()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ").splitlines()
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in joined) if name]


def analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed: apt-get install systemd")
    return subprocess.run(
        ["systemd-analyze", *arguments], capture_output=True, text=True, check=False
    )


EXPOSURE = {
    "iojoule.service": 20,
    "iojoule-exporter.service": 20,
    "iojoule-govern.service": 30,
}
"""Tenths of systemd's scale of 10; the governor is root and may set features of controllers."""


@pytest.mark.parametrize("name", EXPOSURE)
def test_systemd_understands_all_of_a_unit(name: str, root: Path, tmp_path: Path) -> None:
    here = tmp_path / name
    text = (root / "deploy" / name).read_text()
    here.write_text(text.replace("/opt/iojoule/bin/iojoule", sys.executable))
    done = analyze("verify", "--man=no", str(here))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", EXPOSURE)
def test_a_unit_is_as_closed_as_systemd_calls_ok(name: str, root: Path) -> None:
    unit = root / "deploy" / name
    done = analyze("security", "--offline=true", f"--threshold={EXPOSURE[name]}", str(unit))
    assert done.returncode == 0, done.stdout


def test_the_governor_has_one_capability_and_restores_when_it_was_killed(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (root / "deploy" / "iojoule-govern.service").read_text()
    said = dict(re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE))
    assert said["CapabilityBoundingSet"] == "CAP_SYS_ADMIN"
    for name in ("ExecStart", "ExecStopPost"):
        arguments = [one for one in shlex.split(said[name])[1:] if not one.startswith("$")]
        assert run([*arguments, "--help"]) == 0
        options = capsys.readouterr().out
        assert all(one in options for one in arguments if one.startswith("--"))
    assert "--restore" in said["ExecStopPost"]


def test_no_part_runs_as_root(unit: str, steps: list[tuple[str, str]]) -> None:
    assert "DynamicUser=yes" in unit
    users = [rest for name, rest in steps if name == "USER"]
    last = max(index for index, (name, _) in enumerate(steps) if name == "FROM")
    assert users == ["65532:65532"]
    assert ("USER", users[0]) in steps[last:]


def test_what_is_started_is_a_command_there_is(
    unit: str, steps: list[tuple[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    found = re.search(r"^ExecStart=\S+ (.*)$", unit, re.MULTILINE)
    assert found
    told = next(rest for name, rest in steps if name == "CMD")
    for arguments in (shlex.split(found[1]), shlex.split(told.strip("[]").replace(",", " "))):
        assert run([*arguments, "--help"]) == 0
        options = capsys.readouterr().out
        assert all(one in options for one in arguments if one.startswith("--"))


def test_the_image_is_made_of_what_there_is_and_of_what_was_checked(
    root: Path, steps: list[tuple[str, str]]
) -> None:
    for name, rest in steps:
        assert name != "ADD"  # takes addresses and unpacks
        if name == "COPY" and "--from" not in rest:
            assert all((root / one).exists() for one in rest.split()[:-1])
        if name == "FROM":
            assert re.search(r":\d", rest)
    installs = [
        part
        for name, rest in steps
        if name == "RUN"
        for part in rest.split("&&")
        if "/pip " in part
    ]
    assert installs
    assert all("--require-hashes" in one or "--no-index" in one for one in installs)
