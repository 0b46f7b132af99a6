"""`iojoule profile`: device profiles, what they rest on, and their versions at a service."""

from __future__ import annotations

import typer

from iojoule.api.cli import (
    profile_build,
    profile_contribute,
    profile_explain,
    profile_report,
    profile_versions,
)

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Build, look into, contribute to and choose device profiles.",
)
app.command("build")(profile_build.build)
app.command("contribute")(profile_contribute.contribute)
app.command("explain")(profile_explain.explain)
app.command("report")(profile_report.report)
app.command("versions")(profile_versions.versions)
app.command("use")(profile_versions.use)
app.command("fetch")(profile_versions.fetch)
