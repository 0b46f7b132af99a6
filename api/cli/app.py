"""Puts the commands together and turns errors into exit codes and one line each."""

from __future__ import annotations

import os
import sys
import textwrap
import traceback
from typing import Annotated, Any, ClassVar

import typer

from iojoule import __version__
from iojoule.api.cli import console
from iojoule.api.cli.deferred import DeferredGroup
from iojoule.api.exit_codes import (
    INTERRUPTED,
    OUTPUT_CLOSED,
    UNEXPECTED,
    USAGE,
    exit_codes,
)
from iojoule.datasets.errors import InputError, IojouleError


class CommandLine(DeferredGroup):
    """Every command of `iojoule`, in the order of the help."""

    deferred: ClassVar = {
        "start": "Look at this host, observe its load, and recommend settings for it.",
        "doctor": "List what is installed, allowed and missing, with commands to type.",
        "completion": "Print the completion script of a shell.",
        "fit": "Fit a device profile from datasets, from a recipe, or all that ship.",
        "calibrate": "Fit a profile, calibrate the simulator on the same measurements, join both.",
        "predict": "Predict throughput, latency and power of configurations, with 90 % intervals.",
        "timeline": "Follow a drive over time: write bursts, a full cache, collecting, idle time.",
        "recommend": "Rank the configurations that meet the SLA for the least energy.",
        "apply": "Show, and with --run set, what puts a recommendation into effect on this host.",
        "undo": "Take back what `iojoule apply --run` set, exactly, and remove the file.",
        "verify": "Measure what a recommendation saves: interleaved runs with and without it.",
        "govern": "Keep drives within an SLA and a budget of watts by power state, scheduler and "
        "power limit.",
        "idle": "Show how drives rest, what wakes them, and which APST table would save more.",
        "serve": "Answer over HTTP until interrupted; /ui/ is the page, /ui/api its interface.",
        "worker": "Run the jobs of a service until interrupted, wherever its state is reached.",
        "backup": "Write all that a service keeps into one file; it may run and write meanwhile.",
        "restore": "Restore a backup, whole or not at all, while no service runs there.",
        "audit": "Write each change as one JSON object a line, the oldest first.",
        "simulate": "Simulate a drive under a workload, a block trace or a synthetic day.",
        "devices": "SSD models: what is published and what is fitted.",
        "import": "Turn measurements that exist into a dataset.",
        "measure": "Measure a drive: plan, run, resume, check.",
        "exporter": "Publish watts and joules of drives for Prometheus and OpenTelemetry.",
        "meter": "Estimate what each drive of this host draws, live, from block counters.",
        "top": "Watch drives: watts, joules, who causes them, and what would save; Ctrl-C ends.",
        "profile": "Build, look into, contribute to and choose device profiles.",
        "key": "Make, list, change and revoke the keys of those who may use a service.",
        "jobs": "What a service computes, and what came of it.",
        "datasets": "Measurements that a service keeps.",
        "what-if": "What another drive, workload, SLA, price or a power cap would change.",
        "fleet": "Many drives under one power budget: who serves what, for how many watts.",
        "lab": "A virtual testbed: a drive in slow motion behind the real interfaces.",
        "sim": "Files, references and presets of the simulator.",
        "validate": "Compare iojoule with what was published and with what must hold.",
        "workload": "Workload profiles from job files, traces, a live drive, and presets.",
    }
    modules: ClassVar = {
        "apply": "act",
        "undo": "act",
        "verify": "act",
        "audit": "backup",
        "worker": "serve",
        "restore": "backup",
        "import": "imports",
        "key": "keys",
    }

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """One screen: where to begin, then every command by its task."""
        width = min(console.columns(), 100)
        lines = [f"Usage: {ctx.command_path} COMMAND [OPTIONS]", "", str(self.help), ""]
        lines += [
            f"  {name:10}{text}" for name, text in self.deferred.items() if name in FIRST_STEPS
        ]
        lines += ["", f"Commands by task; `{ctx.command_path} COMMAND --help` explains one:"]
        for task, names in TASKS.items():
            lines += textwrap.wrap(
                " ".join(names), width, initial_indent=f"  {task:10}", subsequent_indent=" " * 12
            )
        more = f"Options: --version, --help. `{ctx.command_path} exit-codes` lists exit codes."
        lines += ["", more]
        console.emit("\n".join(lines) + "\n")


COMPLETES = "_IOJOULE_COMPLETE"
"""Environment variable by which the script of `iojoule completion` asks for completions."""

FIRST_STEPS = ("start", "recommend", "doctor")
"""Commands that a newcomer types first."""

TASKS = {
    "begin": ("start", "doctor", "completion", "exit-codes"),
    "answer": ("recommend", "what-if", "predict", "timeline", "fleet", "workload", "devices"),
    "measure": ("measure", "import", "fit", "calibrate", "profile", "validate", "lab"),
    "apply": ("apply", "undo", "verify", "govern", "idle"),
    "watch": ("meter", "top", "exporter"),
    "simulate": ("simulate", "sim"),
    "serve": ("serve", "worker", "key", "jobs", "datasets", "backup", "restore", "audit"),
}
"""Task -> its commands; every command has one."""


app = typer.Typer(
    name="iojoule",
    cls=CommandLine,
    help="Recommends the NVMe SSD and host I/O settings that meet an SLA for the least energy.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.command("exit-codes")
def list_exit_codes(output: console.FormatOption = console.Format.TABLE) -> None:
    """List what the exit codes mean."""
    records = [{"exit_code": code, "meaning": text} for code, text in exit_codes().items()]
    console.emit_records(records, output, {"exit_code": "code", "meaning": "meaning"})


def _version(asked: bool) -> None:
    if asked:
        console.emit(f"iojoule {__version__}\n")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Say the version."),
    ] = False,
) -> None:
    """Only the options that stand before a command."""


def main() -> None:
    """Run the command line and leave the process with the documented exit code."""
    _replace_closed_streams()
    if COMPLETES in os.environ:  # the script of `iojoule completion` asks
        from typer._completion_classes import completion_init

        completion_init()
    sys.exit(run())


def _replace_closed_streams() -> None:
    """Replace standard streams that are closed, so that no file that is opened takes their number.

    There is nothing to read, what is said on standard error is lost, and writing to standard
    output fails.
    """
    for name, mode, access in (
        ("stdin", "r", os.O_RDONLY),
        ("stdout", "w", os.O_RDONLY),
        ("stderr", "w", os.O_WRONLY),
    ):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, access), mode))


def run(arguments: list[str] | None = None) -> int:
    """Run one command line and return its exit code; says what went wrong on standard error."""
    try:
        typed = sys.argv[1:] if arguments is None else arguments
        try:
            left_with = app(arguments, prog_name="iojoule", standalone_mode=False, obj=typed)
        except OSError:
            console.emit("\n")  # raises what is meant where Typer could not write its help
            raise
        except SystemExit as left:  # Typer and rich leave so where nobody reads their help
            if isinstance(left.__context__, BrokenPipeError):
                return OUTPUT_CLOSED
            raise
        return left_with if isinstance(left_with, int) else 0
    except IojouleError as error:
        console.error(error.message)
        if error.request_id is not None:
            console.note(f"the service's logs name this request {error.request_id}")
        return error.exit_code
    except typer.TyperException as error:
        return _usage(error)
    except typer.Abort:
        return INTERRUPTED
    except console.OutputClosedError:
        return OUTPUT_CLOSED
    except ModuleNotFoundError as error:
        return _missing(error)
    except Exception as error:  # noqa: BLE001 - whatever it is, people get a line and a code
        return _unexpected(error)


EXTRAS = {
    **dict.fromkeys(("matplotlib", "pyarrow", "sklearn", "scipy", "yaml"), "fit"),
    **dict.fromkeys(("alembic", "fastapi", "httptools", "prometheus_client"), "service"),
    **dict.fromkeys(("sqlalchemy", "starlette", "uvicorn", "uvloop"), "service"),
    **dict.fromkeys(("dask", "distributed"), "dask"),
    "opentelemetry": "otel",
    "psycopg": "postgresql",
}
"""Package that may be missing -> the extra of this distribution that installs it."""


def _missing(error: ModuleNotFoundError) -> int:
    package = (error.name or "").split(".")[0]
    if package not in EXTRAS:
        return _unexpected(error)
    extra = EXTRAS[package]
    console.error(f"this needs {package}, which is not installed: pip install 'iojoule[{extra}]'")
    return InputError.exit_code


def _usage(error: typer.TyperException) -> int:
    message = getattr(error, "format_message", lambda: str(error))()
    context = getattr(error, "ctx", None)
    if message:  # nothing is said where the help has been shown already
        console.error(" ".join(message.split()))
        if context is not None:
            console.note(f"`{context.command_path} --help` lists what there is")
    return int(getattr(error, "exit_code", USAGE))


def _unexpected(error: Exception) -> int:
    last = traceback.extract_tb(error.__traceback__)[-1]
    console.error(
        f"unexpected {type(error).__name__}: {error} ({last.name}, {last.filename.split('/')[-1]} "
        f"line {last.lineno}); this is a fault of iojoule {__version__}, not of your input: please "
        "report this line and the command"
    )
    return UNEXPECTED
