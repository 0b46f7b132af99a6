import csv
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from iojoule import __version__
from iojoule.api.cli import app as app_module
from iojoule.api.cli import console
from iojoule.api.cli.deferred import DeferredCommand
from iojoule.api.exit_codes import OUTPUT_CLOSED, error_classes, exit_codes
from iojoule.datasets import errors

HEAVY = ("scipy", "sklearn", "matplotlib", "pyarrow", "fastapi")


def test_the_version(iojoule) -> None:
    assert iojoule("--version").out == f"iojoule {__version__}\n"


def test_every_error_class_has_a_documented_exit_code(iojoule) -> None:
    documented = {
        int(row["exit_code"]) for row in json.loads(iojoule("exit-codes", "-o", "json").out)
    }
    assert {kind.exit_code for kind in error_classes()} | {0, 2, 70, 130, 141} == documented


def test_error_classes_that_share_an_exit_code_share_its_meaning() -> None:
    # a subclass may only tell more, as the name of what is refused
    kinds = list(error_classes())
    assert len({kind.exit_code for kind in kinds}) == len(
        {(kind.exit_code, kind.title) for kind in kinds}
    )
    kinds.remove(errors.IojouleError)
    assert not {kind.exit_code for kind in kinds} & {0, 1, 2, 70, 130, 141}
    assert exit_codes()[errors.InfeasibleError.exit_code] == "Infeasible"


@pytest.mark.parametrize("kind", list(error_classes()))
def test_an_error_is_one_line_and_its_exit_code(
    kind: type[errors.IojouleError], monkeypatch: pytest.MonkeyPatch, iojoule
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise kind("this is wrong; do that")

    monkeypatch.setattr("iojoule.api.application.devices.list_devices", fail)
    done = iojoule("devices", "list")
    assert (done.code, done.out, done.err) == (
        kind.exit_code,
        "",
        "error: this is wrong; do that\n",
    )


def test_a_fault_of_our_own_is_a_short_report(monkeypatch: pytest.MonkeyPatch, iojoule) -> None:
    def fail() -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("iojoule.api.application.devices.list_devices", fail)
    done = iojoule("devices", "list")
    assert done.code == 70
    assert "ZeroDivisionError: division by zero" in done.err
    assert "report" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("raised", "code"), [(KeyboardInterrupt, 130), (console.OutputClosedError, 141)]
)
def test_interrupted_or_unread_it_ends_quietly(
    raised: type[BaseException], code: int, monkeypatch: pytest.MonkeyPatch, iojoule
) -> None:
    def fail() -> None:
        raise raised

    monkeypatch.setattr("iojoule.api.application.devices.list_devices", fail)
    done = iojoule("devices", "list")
    assert (done.code, done.err) == (code, "")


def test_a_help_that_nobody_reads_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    os.close(read)
    with open(write, "w") as unread:  # noqa: PTH123 - a descriptor has no path
        monkeypatch.setattr(sys, "stdout", unread)
        assert app_module.run(["devices", "--help"]) == OUTPUT_CLOSED


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("devices", "list", "--nonsense"),
        ("devices", "show"),
        ("devices", "list", "-o", "yaml"),
        ("predict",),
        ("predict", "--device", "a", "--profile", "b"),
        ("predict", "--device", "samsung-980-pro-1tb", "--set", "queue_depth"),
        ("recommend", "--device", "samsung-980-pro-1tb"),
        ("recommend", "--device", "a", "--workload", "b", "--scope", "room"),
        ("fit",),
        ("fit", "--shipped", "--report"),
        ("fit", "data.parquet"),
        ("import", "fio"),
        ("key", "create", "--scope", "all", "--name", "x"),
        ("audit", "--last", "99999999999999999999"),
    ],
)
def test_what_is_not_understood_exits_with_2(arguments: tuple[str, ...], iojoule) -> None:
    done = iojoule(*arguments)
    assert done.code == 2
    assert done.err.startswith("error: ")
    assert done.out == ""


@pytest.mark.parametrize("number", ["nan", "inf", "1e308", "-1e308"])
@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (("fleet", "plan", "fleet.toml"), "--budget"),
        (("simulate", "--ssd", "x", "--day", "1000"), "--interval"),
        (("simulate", "--ssd", "x"), "--series-step"),
        (("meter",), "--seconds"),
        (("recommend", "--workload", "w.toml"), "--confidence"),
    ],
)
def test_a_number_that_nothing_can_be_is_not_understood(
    arguments: tuple[str, ...], option: str, number: str, iojoule
) -> None:
    done = iojoule(*arguments, option, number)
    assert (done.code, done.out) == (2, "")
    assert option in done.err


def test_a_command_without_its_subcommand_shows_the_help(iojoule) -> None:
    assert "devices" in iojoule().out
    assert "show" in iojoule("devices").out


def test_main_leaves_the_process_with_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["iojoule", "devices", "show", "nonsense"])
    with pytest.raises(SystemExit) as left:
        app_module.main()
    assert left.value.code == errors.UnknownDeviceError.exit_code


@pytest.mark.parametrize("arguments", [["--version"], ["devices", "list"], ["exit-codes"]])
def test_small_commands_import_nothing_heavy(arguments: list[str]) -> None:
    program = (
        "import sys\n"
        "from iojoule.api.cli.app import run\n"
        f"assert run({arguments!r}) == 0\n"
        f"print(sorted(set({HEAVY!r}) & set(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stderr == "[]\n"


def test_recommend_imports_no_fitting_library(root) -> None:
    workload = str(root / "examples" / "oltp.toml")
    program = (
        "import sys\n"
        "from iojoule.api.cli.app import run\n"
        f"run(['recommend', '--device', 'samsung-980-pro-1tb', '--workload', {workload!r}])\n"
        f"print(sorted(set({HEAVY!r}) & set(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stderr.splitlines()[-1] == "[]"


def test_csv_and_json_say_the_same_as_the_table(iojoule) -> None:
    listed = list(csv.DictReader(io.StringIO(iojoule("exit-codes", "-o", "csv").out)))
    assert [int(row["exit_code"]) for row in listed] == list(exit_codes())
    table = iojoule("exit-codes").out
    assert all(said in table for said in exit_codes().values())


def test_the_list_of_commands_says_what_the_commands_say() -> None:
    group = typer.main.get_command(app_module.app)
    for command in group.commands.values():
        if isinstance(command, DeferredCommand):
            help_text = command.load().help.partition("\n\n")[0]
            assert " ".join(help_text.split()) == command.help


def test_the_help_is_one_screen_with_every_command_by_its_task(iojoule) -> None:
    told = iojoule("--help").out
    lines = told.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 100
    group = typer.main.get_command(app_module.app)
    listed = [name for names in app_module.TASKS.values() for name in names]
    assert sorted(listed) == sorted(group.commands)
    assert all(f" {name}" in told for name in listed)


def test_no_help_text_holds_brackets_that_markup_swallows() -> None:
    waiting = [("iojoule", typer.main.get_command(app_module.app))]
    while waiting:
        name, command = waiting.pop()
        command = command.load() if isinstance(command, DeferredCommand) else command
        texts = [command.help or "", *(getattr(one, "help", None) or "" for one in command.params)]
        assert not re.findall(r"\[/?[A-Za-z@#][^\]\n]*\]", " ".join(texts)), name
        waiting += [(f"{name} {key}", one) for key, one in getattr(command, "commands", {}).items()]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_a_script_that_asks_this_program(iojoule, shell: str) -> None:
    assert app_module.COMPLETES in iojoule("completion", shell).out


@pytest.mark.parametrize(
    ("words", "expected"),
    [("iojoule rec", "recommend"), ("iojoule recommend --sett", "--settings")],
)
def test_commands_and_options_are_completed(words: str, expected: str) -> None:
    asked = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    done = subprocess.run(
        [str(Path(sys.executable).with_name("iojoule"))],
        env={**os.environ, app_module.COMPLETES: "complete_bash", **asked},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert expected in done.stdout.split()
