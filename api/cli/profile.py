"""`iojoule profile`: device profiles, what they hold and what they rest on."""

from __future__ import annotations

import typer

from iojoule.api.cli.profile_report import report

app = typer.Typer(help="Device profiles: what they hold and rest on.", no_args_is_help=True)
app.command()(report)
