"""The code base itself: one import name, complete packages, nothing tracked that must not be."""

import ast
import importlib.metadata
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import grimp
import pytest
from packaging.requirements import Requirement

import iojoule
from iojoule.sim import _core

ROOT = Path(__file__).resolve().parent.parent
LINKS = ROOT / "src" / "iojoule"
FOLDERS = ("datasets", "measure", "model", "sim", "recommender", "meter", "api")
PRESENT = tuple(name for name in FOLDERS if (ROOT / name).is_dir())
NATIVE = (".c", ".cpp", ".hpp")
EXTENSIONS = ("sim/_core",)


def run(*command: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command without the network settings or import paths of the caller getting in."""
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": "", "PIP_NO_INDEX": "1", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def tracked_files() -> list[Path]:
    # safe.directory: the checkout may belong to someone else than whoever runs the tests.
    listed = run("git", "-c", "safe.directory=*", "ls-files", "-z", cwd=ROOT)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    paths = (ROOT / name for name in listed.stdout.split("\0") if name)
    return [path for path in paths if path.is_file() and not path.is_symlink()]


def modules() -> Iterator[tuple[str, Path]]:
    """Every module of the product with its dotted name."""
    for folder in PRESENT:
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            yield ".".join(("iojoule", *parts)).removesuffix(".__init__"), path


@cache
def parsed(path: Path) -> ast.Module:
    """The syntax tree of a module, parsed once for all tests."""
    return ast.parse(path.read_text(encoding="utf-8"))


def test_every_folder_is_linked_and_every_link_arrives() -> None:
    links = {path.name: path for path in LINKS.iterdir() if path.is_symlink()}
    assert set(PRESENT) <= set(links), "ln -s ../../FOLDER src/iojoule/FOLDER"
    assert set(links) <= set(FOLDERS)
    for name, link in links.items():
        assert link.readlink() == Path("../..") / name, "a link must be relative"
        assert (link / "__init__.py").is_file(), f"{link} does not arrive at a package"


def test_every_folder_with_modules_is_a_package() -> None:
    bare = {path.parent for _, path in modules() if not (path.parent / "__init__.py").is_file()}
    assert not bare


def test_the_layers_contract_sees_every_module() -> None:
    # A checker that does not follow the links reports a clean house whatever is in it.
    seen = grimp.build_graph("iojoule", cache_dir=None).modules
    assert {name for name, _ in modules()} <= seen


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_bare_name_cannot_be_imported(folder: str, tmp_path: Path) -> None:
    found = run(sys.executable, "-c", f"import {folder}", cwd=tmp_path)
    assert found.returncode != 0
    assert "ModuleNotFoundError" in found.stderr


FINDS_ITSELF = {
    "shutil.which": {"iojoule.datasets.programs", "iojoule.measure.command.session"},
    "os.execvpe": {"iojoule.api.cli.lab"},
    "sys.executable": {"iojoule.datasets.programs", "iojoule.measure.host_calibration.loads"},
}
"""Beside the one place that finds programs: the user's own commands, and a Python run with -I."""


def test_programs_are_found_in_one_place() -> None:
    offenders = [
        f"{name}: {ast.unparse(node)}"
        for name, path in modules()
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Attribute)
        if isinstance(node.value, ast.Name)  # to write each chain of attributes out takes seconds
        if name not in FINDS_ITSELF.get(ast.unparse(node), {name})
        or ast.unparse(node).startswith(("os.system", "os.popen", "os.execl", "os.spawn"))
    ]
    assert not offenders, "use iojoule.datasets.programs"


def test_every_public_module_says_what_it_is_for() -> None:
    silent = [
        name
        for name, path in modules()
        if not path.stem.startswith("_") or path.stem == "__init__"
        if not ast.get_docstring(parsed(path))
    ]
    assert not silent


def registry_hosts() -> set[str]:
    """Hosts that packages come from: the public ones and those this machine is set up to use."""
    # In parts, because this file is tracked too.
    public = ("pypi", "pythonhosted", "npmjs", "maven")
    hosts = {f"{name}.{'org'}" for name in public} | {"/".join(["debian.org", "debian"])}
    for variable in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "UV_INDEX_URL", "UV_DEFAULT_INDEX"):
        for address in os.environ.get(variable, "").split():
            hosts |= {host for host in [urlsplit(address).hostname] if host}
    return hosts


def test_nothing_tracked_names_a_package_registry_or_this_checkout() -> None:
    hosts = [rf"\b{re.escape(host)}" for host in registry_hosts()]
    # A checkout directly below the root has a name too short to tell from other words.
    here = [rf"(?<![\w./-]){re.escape(str(ROOT))}\b"] if len(ROOT.parts) > 2 else []
    forbidden = re.compile("|".join([*hosts, *here]))
    offenders = {
        str(path.relative_to(ROOT)): match.group()
        for path in tracked_files()
        if (match := forbidden.search(path.read_bytes().decode("utf-8", errors="replace")))
    }
    assert not offenders


def pinned() -> dict[str, str]:
    text = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    entries = text.replace("\\\n", " ").splitlines()
    assert all("--hash=sha256:" in entry for entry in entries), "make lock"
    requirements = [Requirement(entry.split("--hash")[0]) for entry in entries]
    return {each.name: str(each.specifier).removeprefix("==") for each in requirements}


def test_the_pins_satisfy_what_the_project_declares() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    development = (ROOT / "requirements-dev.in").read_text(encoding="utf-8").splitlines()
    declared = [
        *project["project"]["dependencies"],
        *project["build-system"]["requires"],
        *(line for line in development if line and not line.startswith("#")),
    ]
    pins = pinned()
    for requirement in map(Requirement, declared):
        assert requirement.name in pins, "make lock"
        assert requirement.specifier.contains(pins[requirement.name]), requirement


def test_the_version_has_one_source() -> None:
    assert importlib.metadata.version("iojoule") == iojoule.__version__


def test_make_help_lists_every_target() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    shown = run("make", "--no-print-directory", "help", cwd=ROOT).stdout
    assert set(re.findall(r"^  make ([a-z-]+)", shown, re.MULTILINE)) == targets


def native_fields(header: str) -> dict[str, set[str]]:
    """The data members of each structure that a header of the core declares, by its name."""
    text = (ROOT / "sim" / "core" / header).read_text(encoding="utf-8")
    comment, template, dimension = r"//.*", r"<[^<>]*>", r"\[\d+\]"
    function, value = r".*\)( const)? \{[^{}]*\}", r"=\s*(\{[^}]*\}|[^,;]*)"
    for noise in (comment, template, dimension, function, value):
        text = re.sub(noise, "", text)
    structures = re.findall(r"^struct (\w+) \{\n(.*?)^\};", text, re.MULTILINE | re.DOTALL)
    return {
        name: {part.split()[-1] for part in re.split("[,;]", body) if part.strip()}
        for name, body in structures
    }


def test_python_sees_every_field_of_the_core() -> None:
    # what a run is told declares itself (record.hpp)
    declared = native_fields("config.hpp") | native_fields("result.hpp")
    assert {"memory_bytes", "events"} <= declared["Limits"]
    for structure, fields in declared.items():
        bound = getattr(_core, structure, None)
        if bound is None:
            # its columns are in the dictionary FlowResult.series
            assert structure == "FlowStep"
            continue
        assert fields <= set(dir(bound)), structure


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from the sdist, the way an installer without this checkout would."""
    built = tmp_path_factory.mktemp("dist")
    backend = (
        "import sys; from scikit_build_core.build import build_sdist; build_sdist(sys.argv[1])"
    )
    archive = run(sys.executable, "-c", backend, built, cwd=ROOT)
    assert archive.returncode == 0, archive.stderr
    (sdist,) = built.glob("*.tar.gz")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    # Debug: what is packed where does not depend on how well it was compiled, which takes long.
    options = ("--no-deps", "--no-build-isolation", "--wheel-dir", built)
    options += ("--config-settings", "cmake.build-type=Debug")
    made = run(*pip, "wheel", *options, sdist, cwd=built)
    assert made.returncode == 0, made.stderr
    (path,) = built.glob("*.whl")
    return path


@pytest.mark.slow
def test_the_wheel_from_the_sdist_holds_every_tracked_file(wheel: Path) -> None:
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("iojoule/")}
    expected = {
        f"iojoule/{relative}"
        for relative in (path.relative_to(ROOT) for path in tracked_files())
        if relative.parts[0] in PRESENT and relative.suffix not in NATIVE
        if relative.name != "CMakeLists.txt"
        if relative.parts[:2] != ("api", "page") or relative.suffix == ".py"
    }
    page = {"iojoule/api/page/built/index.html"}  # the page is packed as it is served
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    compiled = {f"iojoule/{name}{suffix}" for name in EXTENSIONS}
    stubs = {f"iojoule/{name}.pyi" for name in EXTENSIONS}  # written by the build, not tracked
    typed = {"iojoule/__init__.py", "iojoule/py.typed"} | stubs
    assert expected | typed | page | compiled <= packed
    assert not {name for name in packed if "__pycache__" in name or name.endswith(NATIVE)}
    assert not {name for name in packed if "node_modules" in name or name.endswith(".tsx")}


@pytest.mark.slow
def test_the_package_installed_from_the_sdist_imports(wheel: Path, tmp_path: Path) -> None:
    target = tmp_path / "installed"
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    installed = run(*pip, "install", "--no-deps", "--target", target, wheel, cwd=tmp_path)
    assert installed.returncode == 0, installed.stderr
    # -S leaves out the .pth file of the editable install, which would answer first; the packages
    # this one depends on are then named by hand.
    program = f"""
import sys
sys.path += [{str(target)!r}, {sysconfig.get_path("purelib")!r}, {sysconfig.get_path("platlib")!r}]
import importlib
import importlib.resources
for folder in {PRESENT!r}:
    print(importlib.import_module("iojoule." + folder).__file__)
for name in {EXTENSIONS!r}:
    print(importlib.import_module("iojoule." + name.replace("/", ".")).__file__)
data = importlib.resources.files("iojoule.datasets")
print(sum(1 for entry in data.rglob("*") if entry.suffix in (".toml", ".json")))
"""
    found = run(sys.executable, "-S", "-c", program, cwd=tmp_path)
    assert found.returncode == 0, found.stderr
    *files, data_files = found.stdout.splitlines()
    assert all(Path(file).is_relative_to(target) for file in files)
    assert int(data_files) == sum(
        1 for path in (ROOT / "datasets").rglob("*") if path.suffix in (".toml", ".json")
    )
