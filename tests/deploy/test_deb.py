"""The Debian package: it builds, installs into an empty root and answers from there."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.soak

if shutil.which("dh") is None:
    pytest.skip("debhelper is not installed: apt-get install debhelper", allow_module_level=True)
if os.geteuid() != 0:
    pytest.skip("only root may mount the installed root", allow_module_level=True)


def run(*words: str | Path, cwd: Path) -> str:
    done = subprocess.run(words, capture_output=True, text=True, cwd=cwd, check=False)
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def package(root: Path) -> Path:
    run("make", "deb", cwd=root)
    [built] = (root / "dist").glob("iojoule_*.deb")
    return built


@pytest.fixture(scope="module")
def installed(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root in which dpkg installed the package alone."""
    place = tmp_path_factory.mktemp("root")
    for name in ("updates", "info", "triggers"):
        (place / "var/lib/dpkg" / name).mkdir(parents=True)
    for name in ("status", "available"):
        (place / "var/lib/dpkg" / name).touch()
    forced = ("--force-depends", "--force-script-chrootless")  # it has no Python and no shell
    run("dpkg", f"--root={place}", *forced, "--install", package, cwd=place)
    return place


def answer(installed: Path, root: Path, *words: str) -> str:
    """What the installed command prints, its folder mounted where the package wants it."""
    script = (
        'mount -t tmpfs tmpfs /opt && mkdir /opt/iojoule && mount --bind "$0" /opt/iojoule && '
        'exec env -i PATH=/usr/bin:/bin HOME=/tmp /opt/iojoule/bin/iojoule "$@"'
    )
    place = installed / "opt/iojoule"
    return run("unshare", "--mount", "sh", "-c", script, place, *words, cwd=root)


def test_the_package_depends_on_the_python_it_was_built_with(package: Path, root: Path) -> None:
    fields = run("dpkg-deb", "--field", package, "Depends", cwd=root)
    assert "python3 (>= 3." in fields
    assert "python3 (<< 3." in fields


def test_no_file_names_the_folder_it_was_built_in(installed: Path, root: Path) -> None:
    for folder in ("opt/iojoule/bin", "usr", "lib"):
        for path in (installed / folder).rglob("*"):
            if path.is_file() and not path.is_symlink():
                assert str(root).encode() not in path.read_bytes(), path


def test_command_manual_completion_and_units_are_there(installed: Path) -> None:
    assert (installed / "usr/bin/iojoule").readlink() == Path("/opt/iojoule/bin/iojoule")
    for name in (
        "usr/share/man/man1/iojoule-recommend.1.gz",
        "usr/share/bash-completion/completions/iojoule",
        "lib/systemd/system/iojoule.service",
    ):
        assert (installed / name).stat().st_size > 0


def test_it_answers(installed: Path, root: Path) -> None:
    assert answer(installed, root, "--version").startswith("iojoule ")
    asked = "recommend --device samsung-980-pro-1tb --workload examples/page-reads.toml -o json"
    found = answer(installed, root, *asked.split())
    assert '"action"' in found
