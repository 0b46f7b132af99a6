"""Drives and workloads as TOML: the fields of the models by name, units included.

A drive has one table for each group of its fields (`[flash]`, `[data_cache]` ...) and may have a
`title` and a table `[sources]` that says where each number comes from. A workload has `[[flows]]`,
or `[[scenarios]]` with `[[scenarios.flows]]` where it describes more than one run.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from iojoule.datasets.errors import InputError, SchemaVersionError
from iojoule.sim.device import SECTIONS, DeviceConfig, section_fields
from iojoule.sim.findings import Finding, Severity, Tell
from iojoule.sim.formats.building import build, did_you_mean, refusal
from iojoule.sim.physical_options import HostOptions, PhysicalOptions
from iojoule.sim.workload import FlowConfig, FlowKind, Scenario

SCHEMA_VERSION = 1
MAX_CHARACTERS = 1 << 20

TRACE_FIELDS = ("trace_path", "trace_percent", "trace_replays")
_MODE, _PHYSICAL, _HOST = "mode", "physical", "host"
_DRIVE_KEYS = ["schema_version", "title", _MODE, *SECTIONS, _PHYSICAL, "sources"]
_WORKLOAD_KEYS = ["schema_version", "scenarios", "flows"]


@dataclass(frozen=True)
class Drive:
    """A drive with what only the TOML form says of it.

    Attributes:
        device: The drive.
        title: Its name, for people.
        sources: Field, section or dotted path below `physical` -> where the value comes from.
        places: Field -> file and key.
    """

    device: DeviceConfig
    title: str = ""
    sources: Mapping[str, str] = field(default_factory=dict)
    places: Mapping[str, str] = field(default_factory=dict)


def parse_toml(content: bytes, file: str) -> dict[str, Any]:
    """The tables of a TOML document of this version, without `schema_version`.

    Raises:
        InputError: It is not TOML.
        SchemaVersionError: It was written for a newer iojoule.
    """
    if len(content) > MAX_CHARACTERS:
        raise InputError(f"{file}: is larger than {MAX_CHARACTERS >> 20} MiB; split the file")
    try:
        tables = tomllib.loads(content.decode("utf-8"))
    except UnicodeDecodeError:
        raise InputError(f"{file}: is not UTF-8 text; save it as a UTF-8 TOML file") from None
    except (RecursionError, ValueError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)[:200]
        raise InputError(f"{file}: is not valid TOML ({reason}); correct that place") from None
    _check_numbers(tables, file, "")
    version = tables.pop("schema_version", None)
    if type(version) is not int or version < 1:
        raise refusal(
            "schema_version",
            f"{file}, schema_version",
            f"is missing or no number of a version; write schema_version = {SCHEMA_VERSION}",
            "schema_version",
        )
    if version > SCHEMA_VERSION:
        raise SchemaVersionError(
            f"{file}: schema_version {version} is newer than {SCHEMA_VERSION}, the newest this "
            "iojoule reads; update iojoule",
            field="schema_version",
        )
    return tables


def _check_numbers(value: object, file: str, key: str) -> None:
    """Refuse whole numbers beyond TOML's 64 bits, which Python would read."""
    if isinstance(value, dict):
        for name, inner in value.items():
            _check_numbers(inner, file, f"{key}.{name}" if key else name)
    elif isinstance(value, list):
        for inner in value:
            _check_numbers(inner, file, key)
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise refusal("out_of_range", f"{file}, {key}", "does not fit into 64 bits; correct it")


def read_drive_toml(tables: Mapping[str, Any], file: str, tell: Tell) -> Drive:
    """The drive that the tables describe; missing keys take MQSim's defaults, with a warning.

    Raises:
        RefusedError: A key or value is not what it must be.
    """
    _refuse_unknown(tables, _DRIVE_KEYS, file, "")
    values: dict[str, Any] = {}
    places = {"": file}
    for name in (_MODE, _PHYSICAL):
        if name in tables:
            values[name], places[name] = tables[name], f"{file}, {name}"
    for section in SECTIONS:
        known = section_fields(section)
        table = _table(tables, section, file)
        _refuse_unknown(table, list(known), file, f"{section}.")
        values |= table
        places |= {name: f"{file}, {section}.{name}" for name in known}
        missing = [name for name in known if name not in table]
        if missing:
            said = ", ".join(f"{name} = {_default(name)}" for name in missing)
            tell(
                Finding(
                    "key_missing",
                    Severity.WARNING,
                    "",
                    f"keys are missing and take MQSim's defaults: {said}; write them",
                    f"{file}, {section}",
                )
            )
    title = tables.get("title", "")
    if not isinstance(title, str):
        raise refusal("wrong_type", f"{file}, title", "must be text; put it in quotes", "title")
    device = build(DeviceConfig, values, places)
    return Drive(device, title, _sources(tables, file), places)


def _sources(tables: Mapping[str, Any], file: str) -> dict[str, str]:
    sources = _table(tables, "sources", file)
    known = [*section_names(), *paths(PhysicalOptions, _PHYSICAL)]
    _refuse_unknown(sources, known, file, "sources.")
    for name, said in sources.items():
        if not isinstance(said, str) or not said.strip():
            raise refusal(
                "wrong_type",
                f"{file}, sources.{name}",
                "must be text that says where the value comes from; put it in quotes",
            )
    return sources


def section_names() -> list[str]:
    """Every section and every field in one."""
    fields = (name for section in SECTIONS for name in section_fields(section))
    return [*SECTIONS, *fields]


def paths(model: type[BaseModel], prefix: str) -> Iterator[str]:
    """`prefix` and the dotted path of every field below it."""
    yield prefix
    for name, field_ in model.model_fields.items():
        kind = field_.annotation
        path = f"{prefix}.{name}"
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from paths(kind, path)
        else:
            yield path


def _default(name: str) -> str:
    value = DeviceConfig.model_fields[name].default
    return f"{value}"


def _table(tables: Mapping[str, Any], name: str, file: str) -> dict[str, Any]:
    table = tables.get(name, {})
    if not isinstance(table, dict):
        raise refusal("wrong_type", f"{file}, {name}", f"must be a table; write [{name}]", name)
    return table


def _refuse_unknown(table: Mapping[str, Any], known: list[str], file: str, prefix: str) -> None:
    for name in table:
        if name not in known:
            raise refusal(
                "unknown_key",
                f"{file}, {prefix}{name}",
                f"no such key; {did_you_mean(name, known)}",
                name,
            )


def read_workload_toml(
    tables: Mapping[str, Any], file: str, tell: Tell
) -> tuple[tuple[Scenario, ...], dict[str, str]]:
    """The scenarios that the tables describe; keys as in `read_workload_xml`.

    Raises:
        RefusedError: A key or value is not what it must be.
    """
    _refuse_unknown(tables, _WORKLOAD_KEYS, file, "")
    if ("scenarios" in tables) == ("flows" in tables):
        raise refusal(
            "empty", file, "must hold either [[flows]] or [[scenarios]] with [[scenarios.flows]]"
        )
    prefix = "" if "flows" in tables else "scenarios"
    listed = tables["scenarios"] if prefix else [{"flows": tables["flows"]}]
    if not isinstance(listed, list) or not listed:
        raise refusal("wrong_type", f"{file}, scenarios", "must be a list; write [[scenarios]]")
    scenarios: list[Scenario] = []
    places: dict[str, str] = {"": file}
    for number, table in enumerate(listed):
        key = f"{prefix}[{number}]" if prefix else ""
        if not isinstance(table, dict):
            raise refusal("wrong_type", f"{file}, {key}", "must be a table; write [[scenarios]]")
        _refuse_unknown(table, ["flows"], file, f"{key}.")
        flows = _flows(table, file, f"{key}." if key else "", tell)
        for index, (_, said) in enumerate(flows):
            path = f"scenarios[{number}].flows[{index}]"
            places |= {f"{path}.{name}" if name else path: place for name, place in said.items()}
        values = {"flows": [flow for flow, _ in flows]}
        scenarios.append(build(Scenario, values, {"": f"{file}, {key}flows".rstrip()}))
    return tuple(scenarios), places


def _flows(
    table: Mapping[str, Any], file: str, prefix: str, tell: Tell
) -> list[tuple[FlowConfig, dict[str, str]]]:
    listed = table.get("flows")
    if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
        raise refusal(
            "wrong_type",
            f"{file}, {prefix}flows",
            f"must be a list of tables; write "
            f"[[{prefix.split('[')[0]}{'.' if prefix else ''}flows]]",
        )
    return [_flow(each, file, f"{prefix}flows[{n}]", tell) for n, each in enumerate(listed)]


def _flow(
    table: Mapping[str, Any], file: str, key: str, tell: Tell
) -> tuple[FlowConfig, dict[str, str]]:
    known = flow_fields(str(table.get("kind", FlowKind.SYNTHETIC.value)))
    _refuse_unknown(table, known, file, f"{key}.")
    places = {"": f"{file}, {key}"} | {name: f"{file}, {key}.{name}" for name in known}
    missing = [name for name in known if name not in table and name != _HOST]
    flow = build(FlowConfig, table, places)
    if missing:
        said = ", ".join(f"{name} = {_shown(getattr(flow, name))}" for name in missing)
        tell(Finding("key_missing", Severity.NOTE, "", f"takes the defaults {said}", places[""]))
    return flow, places


def flow_fields(kind: str) -> list[str]:
    """The fields that mean something in a flow of that kind; of an unknown kind, all."""
    names = list(FlowConfig.model_fields)
    own = names[names.index("working_set_percent") : names.index(TRACE_FIELDS[0])]
    match kind:
        case FlowKind.SYNTHETIC:
            return [name for name in names if name not in TRACE_FIELDS]
        case FlowKind.TRACE:
            return [name for name in names if name not in own]
        case _:
            return names


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "all" if value == () else str(value)


def write_drive_toml(drive: Drive) -> str:
    """The drive as TOML, every key written."""
    values = drive.device.model_dump(mode="json")
    tables: dict[str, Any] = {"schema_version": SCHEMA_VERSION}
    if drive.title:
        tables["title"] = drive.title
    tables[_MODE] = values[_MODE]
    for section in SECTIONS:
        tables[section] = {name: values[name] for name in section_fields(section)}
    if drive.device.physical != PhysicalOptions():
        tables[_PHYSICAL] = _given(values[_PHYSICAL])
    if drive.sources:
        tables["sources"] = dict(drive.sources)
    return _text(tables)


def _text(tables: Mapping[str, Any]) -> str:
    import tomlkit

    return tomlkit.dumps(tables)


def _given(values: dict[str, Any]) -> dict[str, Any]:
    """Without what is unknown, for which TOML has no word."""
    return {
        name: _given(value) if isinstance(value, dict) else value
        for name, value in values.items()
        if value is not None
    }


def write_workload_toml(scenarios: Sequence[Scenario]) -> str:
    """The scenarios as TOML, every key written that means something in its flow."""
    tables: dict[str, Any] = {"schema_version": SCHEMA_VERSION}
    written = [{"flows": [_written(flow) for flow in scenario.flows]} for scenario in scenarios]
    if len(written) == 1:
        tables |= written[0]
    else:
        tables["scenarios"] = written
    return _text(tables)


def _written(flow: FlowConfig) -> dict[str, Any]:
    values = flow.model_dump(mode="json")
    if flow.host == HostOptions():
        del values[_HOST]
    return {name: values[name] for name in flow_fields(flow.kind) if name in values}
