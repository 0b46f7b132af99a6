"""`iojoule profile`: device profiles, from a drive's facts up to what they rest on."""

from __future__ import annotations

import typer

from iojoule.api.cli import profile_build, profile_explain, profile_report

app = typer.Typer(no_args_is_help=True, help="Build device profiles and look into them.")
app.command("build")(profile_build.build)
app.command("explain")(profile_explain.explain)
app.command("report")(profile_report.report)
