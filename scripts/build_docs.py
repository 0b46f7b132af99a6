"""Builds the documentation site into build/site, without network and with every link checked.

The hand-written pages are docs/*.md. A line `<!-- results: NAME -->` is replaced by the table
docs/results/NAME.csv; the pages of the section Reference are written from the code.

    python scripts/build_docs.py [--pages-only]
"""

from __future__ import annotations

import argparse
import csv
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typer
from pydantic import BaseModel

from iojoule.api.cli.app import app
from iojoule.api.cli.deferred import walk
from iojoule.api.exit_codes import exit_codes
from iojoule.api.http.app import create_app
from iojoule.datasets.importers.column_map import ColumnMap
from iojoule.datasets.importers.units import UNITS
from iojoule.datasets.schema import Measurement
from iojoule.measure.campaign.plan import KNOBS, Plan
from iojoule.recommender.fleet.document import Fleet
from iojoule.recommender.request import WorkloadProfile
from iojoule.recommender.validation.laws import LAWS
from iojoule.sim.device import DeviceConfig
from iojoule.sim.parameter import between, tagged_fields
from iojoule.sim.physical_options import HostOptions, PhysicalOptions
from iojoule.sim.workload import FlowConfig

ROOT = Path(__file__).resolve().parents[1]
SOURCE, BUILD = ROOT / "docs", ROOT / "build/docs"
RESULTS = re.compile(r"^<!-- results: ([a-z0-9-]+) -->$", re.MULTILINE)
IMAGE = re.compile(r"!\[[^\]]*\]\(([^)]+)\)")


def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    lines = [list(header), *map(list, rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def _cell(text: str) -> str:
    return re.sub(r"(?<!\\)\|", r"\\|", " ".join(text.split())).replace("<", "&lt;")


def results(name: str) -> str:
    """A table of measured results: lines that begin with # are its caption."""
    lines = (SOURCE / "results" / f"{name}.csv").read_text("utf-8").splitlines()
    caption = " ".join(line[1:].strip() for line in lines if line.startswith("#"))
    header, *rows = csv.reader(line for line in lines if not line.startswith("#"))
    return f"{caption}\n\n{table(header, rows)}"


def page(text: str) -> str:
    """A hand-written page with its tables of results."""
    return RESULTS.sub(lambda match: results(match[1]), text)


def commands() -> Iterator[tuple[str, Any]]:
    """Every command with its full name, groups included."""
    yield from walk("iojoule", typer.main.get_command(app))


def command_line() -> str:
    """Every command with its options."""
    parts = ["# Command line", "Every command has `--help`, which says the same."]
    for name, command in commands():
        if getattr(command, "hidden", False):
            continue
        parts += [f"## {name}", _prose(command.help or "")]
        rows = [_parameter(one) for one in command.params if not getattr(one, "hidden", False)]
        if rows:
            parts.append(table(("option", "meaning", "default"), rows))
    return "\n\n".join(parts)


def _prose(text: str) -> str:
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def _parameter(parameter: Any) -> tuple[str, str, str]:
    names = [*parameter.opts, *parameter.secondary_opts]
    if parameter.opts[0].startswith("-"):
        value = "" if parameter.is_flag else parameter.metavar or parameter.name.upper()
        shown = ", ".join(f"`{name} {value}".rstrip() + "`" for name in names)
    else:
        shown = f"`{parameter.metavar or parameter.name.upper()}`"
    notes = " (required)" if parameter.required else ""
    notes += " (may be repeated)" if getattr(parameter, "multiple", False) else ""
    return shown, (getattr(parameter, "help", None) or "") + notes, _default(parameter.default)


def _default(value: Any) -> str:
    if value is None or value is ... or callable(value) or value in ((), [], "", False):
        return ""
    return f"`{value.value if isinstance(value, Enum) else value}`"


def _type(annotation: Any) -> str:
    origin = get_origin(annotation)
    if origin is Annotated:
        return _type(get_args(annotation)[0])
    if origin in (Union, UnionType):
        return " or ".join(_type(one) for one in get_args(annotation) if one is not NoneType)
    if origin is Literal:
        return ", ".join(f"`{one}`" for one in get_args(annotation))
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return ", ".join(f"`{one.value}`" for one in annotation)
    names = {"bool": "true or false", "int": "whole number", "float": "number", "str": "text"}
    return names.get(getattr(annotation, "__name__", str(annotation)), _plain(annotation))


def _plain(annotation: Any) -> str:
    origin = get_origin(annotation)
    if origin in (list, tuple):
        return "list of " + _type(get_args(annotation)[0])
    return "table" if origin is dict else getattr(annotation, "__name__", str(annotation))


def attributes(model: type) -> dict[str, str]:
    """What the docstring of a model says of each field."""
    said: dict[str, str] = {}
    name = ""
    for line in (model.__doc__ or "").splitlines():
        if start := re.match(r"^ {8}(\w+): (.*)", line):
            name = start[1]
            said[name] = start[2]
        elif name and line.startswith(" " * 12):
            said[name] += " " + line.strip()
        else:
            name = ""
    return said


def fields(model: type[BaseModel]) -> str:
    """The fields of a section: type, default, meaning."""
    said = attributes(model)
    rows = []
    for name, field in model.model_fields.items():
        default = "required" if field.is_required() else _default(field.get_default())
        if isinstance(field.get_default(), BaseModel):
            default = "its defaults"
        rows.append((f"`{name}`", _type(field.annotation), default, said.get(name, "")))
    return table(("field", "type", "default", "meaning"), rows)


def _first(text: str | None) -> str:
    return _prose((text or "").split("\n\n    Attributes:")[0].replace("\n    ", "\n"))


def sections(model: type[BaseModel]) -> Iterator[tuple[str, type[BaseModel]]]:
    """The fields of a model that are models themselves."""
    for name, field in model.model_fields.items():
        for kind in _inside(field.annotation):
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield name, kind


def _inside(annotation: Any) -> Iterator[Any]:
    yield annotation
    for one in get_args(annotation):
        yield from _inside(one)


def schema() -> str:
    """Every field of a measurement."""
    parts = ["# Schema of a measurement", _first(sys.modules[Measurement.__module__].__doc__)]
    for name, kind in sections(Measurement):
        parts += [f"## {name}", _first(kind.__doc__), fields(kind)]
    units = sorted(UNITS)
    parts += ["## Units of column maps", ", ".join(f"`{one}`" for one in units) + "."]
    return "\n\n".join(parts)


def plan_files() -> str:
    """Every field of a measurement plan, and every knob of a sweep."""
    parts = ["# Plan files", "See [Measuring](../measuring.md).", fields(Plan)]
    for name, kind in sections(Plan):
        parts += [f"## {name}", _first(kind.__doc__), fields(kind)]
    rows = [(f"`{name}`", kind) for name, kind in KNOBS.items()]
    parts += ["## Knobs of a sweep", table(("knob", "kind"), rows)]
    return "\n\n".join(parts)


def workload_files() -> str:
    """Every field of a workload file, a fleet file and a column map."""
    parts = ["# Workload files", "See [Workloads](../workloads.md)."]
    parts += _file(WorkloadProfile)
    parts += ["## Fleet file", "See [Fleets](../fleet.md).", *_file(Fleet)]
    parts += ["## Column map", "See [Datasets](../measurements.md#column-maps).", *_file(ColumnMap)]
    return "\n\n".join(parts)


def _file(model: type[BaseModel]) -> Iterator[str]:
    yield fields(model)
    for name, kind in sections(model):
        yield f"### `{name}`"
        yield _first(kind.__doc__)
        yield fields(kind)


def http() -> str:
    """Every operation of the service."""
    rows = []
    for path, operations in sorted(create_app().openapi()["paths"].items()):
        for method, operation in operations.items():
            needs = [key for need in operation.get("security", []) for key in need.values()]
            scopes = "".join(f"`{scope}`" for (scope,) in needs)
            status = ", ".join(sorted(operation["responses"]))
            rows.append(
                (f"`{method.upper()} {path}`", operation.get("summary", ""), scopes, status)
            )
    head = "# HTTP\n\nThe same as `/openapi.json`; see [Service](../service.md).\n\n"
    return head + table(("operation", "answers with", "scope", "status"), rows)


def simulator_parameters() -> str:
    """Every parameter of a simulated drive and of a flow."""
    parts = ["# Parameters of the simulator", "See [Simulator](../simulator.md)."]
    for title, model in (("Drive", DeviceConfig), ("Flow", FlowConfig)):
        parts += [f"## {title}", _first(model.__doc__), parameters(model)]
    for name, kind in (*sections(PhysicalOptions), ("host", HostOptions)):
        parts += [f"## Physical mode: {name}", _first(kind.__doc__), parameters(kind)]
    return "\n\n".join(parts)


def parameters(model: type[BaseModel]) -> str:
    """The declarations of a section: type, range with its reason, default, tag of MQSim."""
    tags = {name: mark.name for name, _, mark in tagged_fields(model)}
    rows = []
    for name, field in model.model_fields.items():
        ranges = [mark for mark in field.metadata if isinstance(mark, between)]
        limits = [f"{mark.low:g} to {mark.high:g}: {mark.reason}" for mark in ranges]
        default = field.get_default()
        if not isinstance(default, BaseModel):
            tag = f"`{tags[name]}`" if name in tags else ""
            rows.append(
                (f"`{name}`", _type(field.annotation), "; ".join(limits), _default(default), tag)
            )
    return table(("parameter", "type", "range", "default", "tag of MQSim"), rows)


def exit_code_table() -> str:
    """What each exit code means."""
    rows = [(str(code), meaning) for code, meaning in exit_codes().items()]
    return "# Exit codes\n\n" + table(("code", "meaning"), rows)


def law_table() -> str:
    """Every law that `iojoule validate laws` checks."""
    rows = [(str(law.number), law.title, law.text, law.checked) for law in LAWS]
    head = "# Laws\n\n`iojoule validate laws` checks them; see [Validation](../validation.md).\n\n"
    return head + table(("", "law", "what it demands", "what is probed"), rows)


REFERENCE = {
    "cli": command_line,
    "schema": schema,
    "workload-files": workload_files,
    "plan-files": plan_files,
    "simulator-parameters": simulator_parameters,
    "http": http,
    "exit-codes": exit_code_table,
    "laws": law_table,
}


def write_pages(target: Path) -> None:
    """Write all pages, hand-written and generated, below a folder."""
    shutil.rmtree(target, ignore_errors=True)
    (target / "reference").mkdir(parents=True)
    for source in SOURCE.glob("*.md"):
        text = page(source.read_text("utf-8"))
        (target / source.name).write_text(text, "utf-8")
        for image in IMAGE.findall(text):
            (target / image).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(SOURCE / image, target / image)
    for name, make in REFERENCE.items():
        (target / "reference" / f"{name}.md").write_text(make() + "\n", "utf-8")


def build() -> int:
    """Write the pages and make the site of them; the status of the generator."""
    write_pages(BUILD / "pages")
    config = SOURCE / "zensical.toml"
    listed = re.findall(r'"([^"]+\.md)"', config.read_text("utf-8"))
    there = {str(one.relative_to(BUILD / "pages")) for one in (BUILD / "pages").rglob("*.md")}
    if set(listed) != there or not tomllib.loads(config.read_text("utf-8")):
        print(f"in the navigation or there, not both: {set(listed) ^ there}", file=sys.stderr)
        return 1
    shutil.copyfile(config, BUILD / "zensical.toml")
    tool = Path(sys.executable).parent / "zensical"
    command = [tool, "build", "--strict", "--clean", "--config-file", BUILD / "zensical.toml"]
    done = subprocess.run(command, check=False)
    return done.returncode


def main() -> int:
    """Build what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages-only", action="store_true", help="Write build/docs/pages only.")
    if parser.parse_args().pages_only:
        write_pages(BUILD / "pages")
        return 0
    return build()


if __name__ == "__main__":
    sys.exit(main())
