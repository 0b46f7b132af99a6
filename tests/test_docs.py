"""The documentation: the site builds, its commands exist and run, its sizes are kept."""

import gzip
import importlib.util
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from iojoule.api.cli.app import TASKS, run
from iojoule.datasets.schema import COLUMNS
from iojoule.measure.campaign.plan import KNOBS
from iojoule.recommender.validation.laws import LAWS

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("docs/*.md"), *(ROOT / f"{n}.md" for n in ("README", "CONTRIBUTING"))])
WRITTEN = [*PAGES, ROOT / "SECURITY.md"]

RUN = re.compile(
    r"iojoule (recommend|predict|doctor|completion|what-if|fleet (plan|frontier)|timeline|devices"
    r"|exit-codes|workload (from (examples|trace)|presets|show)|profile (build|explain)|sim presets"
    r"|measure (plans|questions)|simulate --ssd samsung|validate laws .*--draws)\b"
)
"""Commands that need no hardware, service or file but the examples."""


def load(name: str) -> ModuleType:
    """A module of the folder scripts."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


GALLERY = load("gallery")


@pytest.fixture(scope="module")
def docs() -> ModuleType:
    """scripts/build_docs.py."""
    return load("build_docs")


@pytest.fixture(scope="module")
def known(docs: ModuleType) -> dict[str, set[str]]:
    """The options of every command; a group without a command's name stands for its `ask`."""
    accepted = {
        name: {option for one in command.params for option in (*one.opts, *one.secondary_opts)}
        for name, command in docs.commands()
    }
    return {name: own | accepted.get(f"{name} ask", set()) for name, own in accepted.items()}


def blocks(text: str, kind: str) -> Iterator[str]:
    """Fenced blocks of a language."""
    yield from re.findall(rf"^```{kind}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def lines(block: str) -> list[str]:
    """Commands of a block, continued lines joined, comments and prompts removed."""
    joined = block.replace("\\\n", " ")
    shown = [line.removeprefix("$ ").split("  #")[0].strip() for line in joined.splitlines()]
    return [re.sub(r" +", " ", line) for line in shown if line]


def commands(page: Path) -> list[str]:
    """Every iojoule command on a page."""
    text = page.read_text("utf-8")
    shown = [line for block in blocks(text, "sh") for line in lines(block)]
    for block in blocks(text, "console"):
        shown += lines("\n".join(line for line in block.splitlines() if line.startswith("$ ")))
    shown += lines("\n".join(re.findall(r"^    (\$ iojoule .*)", text, re.MULTILINE)))
    return [line for line in shown if line.startswith("iojoule ") and ".whl" not in line]


COMMANDS = sorted({(page.name, command) for page in PAGES for command in commands(page)})


@pytest.mark.parametrize(("page", "command"), COMMANDS)
def test_a_documented_command_exists_with_its_options(
    known: dict[str, set[str]], page: str, command: str
) -> None:
    words = shlex.split(command.split(" | ")[0].split(" > ")[0])
    options = words[: words.index("--")] if "--" in words else words
    name = words.pop(0)
    while words and f"{name} {words[0]}" in known:
        name += f" {words.pop(0)}"
    assert name != "iojoule" or words[0].startswith("--")
    used = {word.split("=")[0] for word in options if re.match(r"--?[a-z]", word)}
    assert used <= known[name] | {"--help"}, (page, command)


def numbers(text: str) -> set[str]:
    """The numbers of a text, as they are printed."""
    return set(re.findall(r"\d[\d,]*(?:\.\d+)?", text))


NUMBER = re.compile(r"-?\d+\.\d+")
DRAWN_PART = re.compile(r"\b[pm][0-9a-f]{10}\b")
"""Name of a part of a drawing: a hash of all digits of its coordinates."""


def same_drawing(drawn: Path, shown: Path) -> None:
    """Nobody can see the difference; another processor rounds last digits otherwise."""
    one, other = (DRAWN_PART.sub("", path.read_text("utf-8")) for path in (drawn, shown))
    assert NUMBER.sub("", one) == NUMBER.sub("", other), drawn.name
    places = [float(number) for number in NUMBER.findall(other)]
    assert [float(number) for number in NUMBER.findall(one)] == pytest.approx(places, abs=0.01)


OF_THE_READER = re.compile(
    r"my-|mine|db\.toml|points\.csv|servers|now\.json|--dask|W\.toml|ssdconfig|build drive"
    r"|--identify|explain drive|findings\.json|today\.toml"
)
"""Files that these commands read are not in the repository."""
RUNNABLE = sorted(
    {
        line
        for page, line in COMMANDS
        if RUN.match(line) and not OF_THE_READER.search(line) and page != GALLERY.PAGE.name
    }
)


START = 128_166_372_003_061_629
TRACE = "".join(
    f"{START + 10_000 * n},web,0,{('Read', 'Write')[n % 3 == 0]},{8192 * n % 2**30},8192,900\n"
    for n in range(2_000)
)
"""A block trace as MSR Cambridge writes them: 100 ns, host, disk, kind, offset, size, time."""


@pytest.mark.slow
@pytest.mark.parametrize("command", RUNNABLE)
def test_a_documented_command_runs(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    with gzip.open(tmp_path / "web.csv.gz", "wt") as trace:
        trace.write(TRACE)
    monkeypatch.chdir(tmp_path)
    assert run(shlex.split(command.split(" > ")[0].split(" | ")[0])[1:]) in (0, 7)


SHOWN = [
    pytest.param(page, id=page.stem, marks=[pytest.mark.slow] * (page == GALLERY.PAGE))
    for page in PAGES
    if "```console" in page.read_text("utf-8")
]


@pytest.mark.parametrize("page", SHOWN)
def test_the_numbers_of_documented_outputs_are_printed(page: Path, tmp_path: Path) -> None:
    for command, output in GALLERY.shown(page):
        assert numbers(output) - numbers(GALLERY.printed(command, tmp_path)) == set(), command
    for drawn in tmp_path.glob("*.svg"):
        same_drawing(drawn, ROOT / "docs" / drawn.name)


def test_the_recommendation_of_the_readme_is_printed(tmp_path: Path) -> None:
    [command] = [line for line in commands(ROOT / "README.md") if "recommend" in line]
    [output] = blocks((ROOT / "README.md").read_text("utf-8"), "text")
    assert numbers(output) - numbers(GALLERY.printed(command, tmp_path)) == set()


def test_the_reference_lists_every_field_knob_law_and_option(docs: ModuleType) -> None:
    schema = docs.schema()
    assert [name for name in COLUMNS if f"| `{name}` |" not in schema] == []
    plans = docs.plan_files()
    assert [name for name in KNOBS if f"| `{name}` |" not in plans] == []
    laws = docs.law_table()
    assert [law.number for law in LAWS if f"| {law.number} | {law.title} |" not in laws] == []
    assert "--least-saving" in docs.command_line()


def test_the_map_of_the_packages_is_that_of_their_imports() -> None:
    shown = load("module_map").drawing()
    assert shown in (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    arrows = set(re.findall(r"(\w+) --> (\w+)", shown))
    assert not {(target, source) for source, target in arrows} & arrows


def test_the_glossary_has_at_most_forty_terms() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    glossary = text.split("## Glossary")[1].split("\n## ")[0]
    assert 20 < glossary.count("\n| ") - 1 <= 40


@pytest.mark.parametrize(("package", "extra"), [("pyarrow", "fit"), ("uvicorn", "service")])
def test_a_missing_extra_is_named_with_exit_code_3(package: str, extra: str) -> None:
    program = (
        "import sys; from iojoule.api.cli import app; "
        f"app.app = lambda *a, **k: __import__('{package}_is_missing'); "
        f"app.EXTRAS['{package}_is_missing'] = app.EXTRAS['{package}']; sys.exit(app.run([]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert done.returncode == 3
    assert f"iojoule[{extra}]" in done.stderr.decode()


def test_every_table_of_results_is_on_a_page(docs: ModuleType) -> None:
    used = {name for page in PAGES for name in docs.RESULTS.findall(page.read_text("utf-8"))}
    assert used == {path.stem for path in ROOT.glob("docs/results/*.csv")}


def test_links_of_the_root_pages_exist() -> None:
    for page in WRITTEN:
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text("utf-8")):
            if page.parent == ROOT and "://" not in target:
                assert (ROOT / target).exists(), (page.name, target)


def test_paths_of_the_checkout_exist() -> None:
    """Where contributors are sent to."""
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    named = re.findall(r"`((?:datasets|model|sim|recommender|measure|api)/[\w./]+)`", page)
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_the_documentation_is_short() -> None:
    drawn = re.compile(r"```mermaid.*?```", re.DOTALL)
    words = {page.name: len(drawn.sub("", page.read_text("utf-8")).split()) for page in WRITTEN}
    assert words["README.md"] <= 900
    assert sum(words.values()) <= 18_000


def test_every_command_has_a_manual_page_without_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    man = load("build_man")
    monkeypatch.setattr(man, "BUILT", tmp_path / "man")
    man.main()
    pages = {path.stem: path.read_text() for path in (tmp_path / "man").iterdir()}
    names = [name for listed in TASKS.values() for name in listed]
    assert sorted(pages) == sorted(["iojoule", *(f"iojoule-{name}" for name in names)])
    assert r"\-\-settings APPLICATION[=VERSION]" in pages["iojoule-recommend"]
    assert "iojoule what\\-if sweep" in pages["iojoule-what-if"]
    if (groff := shutil.which("groff")) is not None:
        done = subprocess.run(
            [groff, "-man", "-ww", "-Tutf8", *sorted((tmp_path / "man").iterdir())],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stderr == ""


@pytest.mark.slow
def test_the_site_builds_and_all_links_hold() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts/build_docs.py"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (ROOT / "build/docs/site/reference/cli.html").is_file()
