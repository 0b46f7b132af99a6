"""Reads and writes MQSim's input files: ssdconfig.xml (the drive), workload.xml (its flows)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from iojoule.datasets.errors import InputError
from iojoule.sim.device import DeviceConfig
from iojoule.sim.findings import Finding, Severity, Tell
from iojoule.sim.formats.building import build, refusal
from iojoule.sim.formats.mqsim_tags import (
    DEVICE_ROOT,
    DEVICE_TAGS,
    FLASH_TAGS,
    HOST_TAGS,
    RESPONSE_LOG,
    RESPONSE_LOG_PERIOD,
    SCENARIO,
    SYNTHETIC_TAGS,
    TRACE_TAGS,
    WORKLOAD_ROOT,
    AnyTag,
    FixedTag,
    ReadSet,
    Tag,
    only_set,
    place_of,
    read_set,
    stock_name,
    tell_alias,
    write_value,
)
from iojoule.sim.formats.xml_tree import Element
from iojoule.sim.parameter import ParameterSet
from iojoule.sim.workload import ID_FIELDS, FlowConfig, FlowKind, Scenario

_DEFAULTS = DeviceConfig()


def read_device_xml(root: Element, file: str, tell: Tell) -> tuple[DeviceConfig, dict[str, str]]:
    """The drive that an ssdconfig.xml describes, and where each field stands.

    Tags that are missing take MQSim's defaults, with a warning that names them.

    Raises:
        RefusedError: It is another file, or a value is not what it must be.
    """
    if stock_name(root.tag) != DEVICE_ROOT:
        raise refusal(
            "wrong_root",
            place_of(file, root),
            f"is not {DEVICE_ROOT}, so this is no drive of MQSim, which would run its defaults; "
            "give its ssdconfig.xml",
        )
    tell_alias(root, file, tell)
    host = only_set(root, ParameterSet.HOST, file, tell)
    device = only_set(root, ParameterSet.DEVICE, file, tell)
    flash = only_set(device, ParameterSet.FLASH, file, tell) if device else None
    _tell_strays(root, file, tell)
    read = [
        _read(host, ParameterSet.HOST, HOST_TAGS, file, tell),
        _read(device, ParameterSet.DEVICE, DEVICE_TAGS, file, tell, ParameterSet.FLASH),
        _read(flash, ParameterSet.FLASH, FLASH_TAGS, file, tell),
    ]
    values = _DEFAULTS.model_dump()
    places = {"": file}
    for parameters in read:
        places |= parameters.places
        for key, value in parameters.values.items():
            _put(values, key, value)
    return build(DeviceConfig, values, places), places


def _tell_strays(root: Element, file: str, tell: Tell) -> None:
    for child in root.children:
        if stock_name(child.tag) not in (ParameterSet.HOST, ParameterSet.DEVICE):
            tell(
                Finding(
                    "tag_unknown",
                    Severity.WARNING,
                    "",
                    f"is ignored, as MQSim does: it reads {ParameterSet.HOST} and "
                    f"{ParameterSet.DEVICE} here; move or remove it",
                    place_of(file, child),
                )
            )


def _read(
    element: Element | None, name: str, tags: tuple[AnyTag, ...], file: str, tell: Tell, *sets: str
) -> ReadSet:
    if element is None:
        read, place = ReadSet(missing=list(tags)), f"{file}, {name}"
    else:
        read, place = read_set(element, tags, file, tell, sets), place_of(file, element)
    if read.missing:
        said = ", ".join(f"{tag.name} = {_default(tag)}" for tag in read.missing)
        tell(
            Finding(
                "tag_missing",
                Severity.WARNING,
                "",
                f"tags are missing and take MQSim's defaults: {said}; write them",
                place,
            )
        )
    return read


def _default(tag: AnyTag) -> str:
    return tag.value if isinstance(tag, FixedTag) else write_value(_value(tag, _DEFAULTS))


def _value(tag: AnyTag, device: DeviceConfig) -> Any:
    assert not isinstance(tag, FixedTag)
    value = getattr(device, tag.field)
    return value if tag.item is None else value[tag.item]


def _put(values: dict[str, Any], key: str, value: Any) -> None:
    """Set `field` or one item of `field[item]`."""
    field, bracket, item = key.partition("[")
    if not bracket:
        values[field] = value
        return
    items = list(values[field])
    items[int(item[:-1])] = value
    values[field] = tuple(items)


def write_device_xml(device: DeviceConfig, response_log_period_ns: int | None = None) -> str:
    """The ssdconfig.xml of a drive, every tag written in MQSim's own spelling.

    Args:
        device: What MQSim has no tag for (`physical`) is left out.
        response_log_period_ns: Have MQSim write a log of response times with this period; 0 logs
            every completion, None nothing.
    """
    log = {RESPONSE_LOG: "false"}
    if response_log_period_ns is not None:
        log = {RESPONSE_LOG: "true", RESPONSE_LOG_PERIOD: str(response_log_period_ns)}
    lines = ['<?xml version="1.0" encoding="us-ascii"?>', f"<{DEVICE_ROOT}>"]
    lines += [
        f"\t<{ParameterSet.HOST}>",
        *_device_text(HOST_TAGS, device, 2, log),
        f"\t</{ParameterSet.HOST}>",
    ]
    lines += [f"\t<{ParameterSet.DEVICE}>", *_device_text(DEVICE_TAGS, device, 2, {})]
    lines += [
        f"\t\t<{ParameterSet.FLASH}>",
        *_device_text(FLASH_TAGS, device, 3, {}),
        f"\t\t</{ParameterSet.FLASH}>",
    ]
    lines += [f"\t</{ParameterSet.DEVICE}>", f"</{DEVICE_ROOT}>"]
    return "\n".join(lines) + "\n"


def _device_text(
    tags: tuple[AnyTag, ...], device: DeviceConfig, depth: int, fixed: dict[str, str]
) -> list[str]:
    def text(tag: AnyTag) -> str:
        if isinstance(tag, FixedTag):
            return fixed.get(tag.name, tag.value)
        return write_value(_value(tag, device))

    return [write_tag(tag.name, text(tag), depth) for tag in tags]


def write_tag(name: str, text: str, depth: int) -> str:
    """One line of XML in ASCII."""
    said = escape(text, quote=False).encode("ascii", "xmlcharrefreplace").decode("ascii")
    return "\t" * depth + f"<{name}>{said}</{name}>"


MAX_SCENARIOS = 1000
TAGS: dict[str, tuple[AnyTag, ...]] = {
    ParameterSet.SYNTHETIC: SYNTHETIC_TAGS,
    ParameterSet.TRACE: TRACE_TAGS,
}


@dataclass(frozen=True)
class _Flow:
    config: FlowConfig
    places: dict[str, str]


def read_workload_xml(
    root: Element, file: str, tell: Tell
) -> tuple[tuple[Scenario, ...], dict[str, str]]:
    """Every scenario of a workload.xml, and where each field stands.

    Places are keyed `scenarios[0].flows[1].seed`. A tag that is missing is an error where it
    matters to the flow, because MQSim would use whatever its memory holds.

    Raises:
        RefusedError: It is another file, or a value is not what it must be.
    """
    if stock_name(root.tag) != WORKLOAD_ROOT:
        raise refusal(
            "wrong_root",
            place_of(file, root),
            f"is not {WORKLOAD_ROOT}, so this is no workload of MQSim, which would run its "
            "defaults; give its workload.xml",
        )
    scenarios: list[Scenario] = []
    places: dict[str, str] = {}
    for element in root.children:
        if element.tag != SCENARIO:
            tell(_stray(element, SCENARIO, file))
            continue
        if len(scenarios) == MAX_SCENARIOS:
            raise refusal(
                "too_many",
                place_of(file, element),
                f"is more than {MAX_SCENARIOS} scenarios; split the file",
            )
        flows = list(_flows(element, file, tell))
        for number, flow in enumerate(flows):
            prefix = f"scenarios[{len(scenarios)}].flows[{number}]"
            places |= {f"{prefix}.{name}".rstrip("."): said for name, said in flow.places.items()}
        values = {"flows": [flow.config for flow in flows]}
        scenarios.append(build(Scenario, values, {"": place_of(file, element)}))
    if not scenarios:
        raise refusal(
            "empty", place_of(file, root), f"holds no {SCENARIO}; write one with at least one flow"
        )
    return tuple(scenarios), places


def _stray(element: Element, expected: str, file: str) -> Finding:
    return Finding(
        "tag_unknown",
        Severity.WARNING,
        "",
        f"is ignored, as MQSim does: it reads {expected} here; move or remove it",
        place_of(file, element),
    )


def _flows(scenario: Element, file: str, tell: Tell) -> list[_Flow]:
    flows = []
    for element in scenario.children:
        kind = stock_name(element.tag)
        if kind not in TAGS:
            tell(_stray(element, f"{ParameterSet.SYNTHETIC} and {ParameterSet.TRACE}", file))
            continue
        tell_alias(element, file, tell)
        flows.append(_flow(element, kind, file, tell))
    if not flows:
        raise refusal(
            "empty",
            place_of(file, scenario),
            f"holds no flow; write an {ParameterSet.SYNTHETIC} or {ParameterSet.TRACE}",
        )
    return flows


def _flow(element: Element, kind: str, file: str, tell: Tell) -> _Flow:
    place = place_of(file, element)
    read = read_set(element, TAGS[kind], file, tell)
    values: dict[str, Any] = dict(read.values)
    values["kind"] = FlowKind.SYNTHETIC if kind == ParameterSet.SYNTHETIC else FlowKind.TRACE
    _tell_missing(read, place, tell)
    working_set = values.get("working_set_percent", 100)
    if not 1 <= working_set <= 100:
        values["working_set_percent"] = 100
        tell(
            Finding(
                "working_set_whole",
                Severity.WARNING,
                "working_set_percent",
                f"is {working_set}, which MQSim takes for 100; write 100",
                read.places["working_set_percent"],
            )
        )
    places = {"": place, **read.places}
    config = build(FlowConfig, values, places)
    return _Flow(config, places)


def _tell_missing(read: ReadSet, place: str, tell: Tell) -> None:
    """Refuse a flow without a tag that matters to it; say which others are missing."""
    missing = [tag for tag in read.missing if isinstance(tag, Tag)]
    idle = _without_effect(read.values)
    needed = [tag.name for tag in missing if tag.field not in idle]
    if needed:
        raise refusal(
            "tag_missing",
            place,
            f"has no {', '.join(needed)}, and MQSim would use whatever its memory holds; write "
            f"{'it' if len(needed) == 1 else 'them'}",
        )
    if missing:
        names = ", ".join(tag.name for tag in missing)
        tell(
            Finding(
                "tag_missing",
                Severity.NOTE,
                "",
                f"has no {names}, which has no effect in this flow; write every tag, because MQSim "
                "reads uninitialised memory for those that are missing",
                place,
            )
        )


def _without_effect(values: dict[str, Any]) -> set[str]:
    """Fields that cannot change anything in a flow with these values."""
    rules = {
        "hot_region_percent": values.get("address_distribution", "random_hotcold")
        != "random_hotcold",
        "alignment_sectors": not values.get("aligned", True),
        "size_sd_sectors": values.get("size_distribution", "normal") != "normal",
        "queue_depth": values.get("generator", "queue_depth") != "queue_depth",
        "bandwidth_bytes_per_second": values.get("generator", "bandwidth") != "bandwidth",
        "total_requests": values.get("stop_ns", 0) > 0,
        "trace_percent": values.get("trace_replays", 1) != 1,
    }
    return {field for field, idle in rules.items() if idle}


def write_workload_xml(scenarios: Sequence[Scenario], device: DeviceConfig | None = None) -> str:
    """The workload.xml of these scenarios, every tag written in MQSim's own spelling.

    Args:
        scenarios: Those whose flows name no ids mean all that the drive has, so they need it.
        device: The drive.

    Raises:
        InputError: A flow names no ids, and no drive says how many there are.
    """
    lines = ['<?xml version="1.0" encoding="us-ascii"?>', f"<{WORKLOAD_ROOT}>"]
    for number, scenario in enumerate(scenarios):
        said = scenario.on(device) if device else scenario
        lines.append(f"\t<{SCENARIO}>")
        for index, flow in enumerate(said.flows):
            lines += _flow_lines(flow, f"scenarios[{number}].flows[{index}]")
        lines.append(f"\t</{SCENARIO}>")
    return "\n".join([*lines, f"</{WORKLOAD_ROOT}>"]) + "\n"


def _flow_lines(flow: FlowConfig, where: str) -> list[str]:
    empty = [name for name in ID_FIELDS if not getattr(flow, name)]
    if empty:
        raise InputError(
            f"{where}.{empty[0]} is empty, which means all that the drive has, and MQSim's XML "
            "must list them; name the drive too",
            field=f"{where}.{empty[0]}",
        )
    kind = ParameterSet.SYNTHETIC if flow.kind is FlowKind.SYNTHETIC else ParameterSet.TRACE
    lines = [f"\t\t<{kind}>"]
    for tag in TAGS[kind]:
        text = tag.value if isinstance(tag, FixedTag) else write_value(getattr(flow, tag.field))
        lines.append(write_tag(tag.name, text, 3))
    return [*lines, f"\t\t</{kind}>"]
