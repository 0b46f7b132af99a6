"""Puts the commands together and turns errors into exit codes and one line each."""

from __future__ import annotations

import sys
import traceback
from typing import Annotated

import typer

from iojoule import __version__
from iojoule.api.cli import (
    act,
    audit,
    backup,
    calibrate,
    console,
    datasets,
    devices,
    fit,
    fleet,
    imports,
    jobs,
    keys,
    lab,
    measure,
    predict,
    profile,
    recommend,
    serve,
    sim,
    simulate,
    timeline,
    validate,
    verify,
    what_if,
    workload,
)
from iojoule.api.exit_codes import (
    INTERRUPTED,
    OUTPUT_CLOSED,
    UNEXPECTED,
    USAGE,
    exit_codes,
)
from iojoule.datasets.errors import IojouleError

app = typer.Typer(
    name="iojoule",
    help="Recommends the NVMe SSD and host I/O settings that meet an SLA for the least energy.",
    epilog="Exit codes: " + "; ".join(f"{code} {said}" for code, said in exit_codes().items()),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(devices.app, name="devices")
app.add_typer(imports.app, name="import")
app.add_typer(measure.app, name="measure")
app.command()(fit.fit)
app.command()(calibrate.calibrate)
app.command()(predict.predict)
app.command()(timeline.timeline)
app.add_typer(profile.app, name="profile")
app.command()(recommend.recommend)
app.command()(act.apply)
app.command()(act.undo)
app.command()(verify.verify)
app.command()(serve.serve)
app.command()(serve.worker)
app.command()(backup.backup)
app.command()(backup.restore)
app.add_typer(keys.app, name="key")
app.command()(audit.audit)
app.add_typer(jobs.app, name="jobs")
app.add_typer(datasets.app, name="datasets")
app.add_typer(what_if.app, name="what-if")
app.add_typer(fleet.app, name="fleet")
app.add_typer(lab.app, name="lab")
app.add_typer(sim.app, name="sim")
app.command()(simulate.simulate)
app.add_typer(validate.app, name="validate")
app.add_typer(workload.app, name="workload")


@app.command("exit-codes")
def list_exit_codes(output: console.FormatOption = console.Format.TABLE) -> None:
    """List what the exit codes mean."""
    records = [{"exit_code": code, "meaning": said} for code, said in exit_codes().items()]
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
    sys.exit(run())


def run(arguments: list[str] | None = None) -> int:
    """Run one command line and return its exit code; says what went wrong on standard error."""
    try:
        typed = sys.argv[1:] if arguments is None else arguments
        left_with = app(arguments, prog_name="iojoule", standalone_mode=False, obj=typed)
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
    except Exception as error:  # noqa: BLE001 - whatever it is, people get a line and a code
        return _unexpected(error)


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
