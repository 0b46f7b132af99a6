"""MQSim's ssdconfig.xml: the drive, in and out."""

from __future__ import annotations

from typing import Any
from xml.sax.saxutils import escape

from iojoule.sim.device import DeviceConfig
from iojoule.sim.findings import Finding, Severity, Tell
from iojoule.sim.formats.building import build, refusal
from iojoule.sim.formats.mqsim_sets import (
    ParameterSet,
    only_set,
    place_of,
    read_set,
    stock_name,
    tell_alias,
)
from iojoule.sim.formats.mqsim_tags import (
    DEVICE_ROOT,
    DEVICE_SET,
    DEVICE_TAGS,
    FLASH_SET,
    FLASH_TAGS,
    HOST_SET,
    HOST_TAGS,
    RESPONSE_LOG,
    RESPONSE_LOG_PERIOD,
    AnyTag,
    FixedTag,
)
from iojoule.sim.formats.mqsim_values import write_value
from iojoule.sim.formats.xml_tree import Element

_DEFAULTS = DeviceConfig()


def read_device_xml(root: Element, file: str, tell: Tell) -> tuple[DeviceConfig, dict[str, str]]:
    """The drive that an ssdconfig.xml describes, and where each field stands.

    Tags that are missing take MQSim's defaults, with a warning that names them.

    Raises:
        RefusedError: It is another file, or a value is not what it must be.
    """
    if stock_name(root.tag) != DEVICE_ROOT:
        raise refusal(
            "wrong_root", place_of(file, root),
            f"is not {DEVICE_ROOT}, so this is no drive of MQSim, which would run its defaults; "
            "give its ssdconfig.xml",
        )  # fmt: skip
    tell_alias(root, file, tell)
    host = only_set(root, HOST_SET, file, tell)
    device = only_set(root, DEVICE_SET, file, tell)
    flash = only_set(device, FLASH_SET, file, tell) if device else None
    _tell_strays(root, file, tell)
    read = [
        _read(host, HOST_SET, HOST_TAGS, file, tell),
        _read(device, DEVICE_SET, DEVICE_TAGS, file, tell, FLASH_SET),
        _read(flash, FLASH_SET, FLASH_TAGS, file, tell),
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
        if stock_name(child.tag) not in (HOST_SET, DEVICE_SET):
            tell(
                Finding(
                    "tag_unknown", Severity.WARNING, "",
                    f"is ignored, as MQSim does: it reads {HOST_SET} and {DEVICE_SET} here; move "
                    "or remove it", place_of(file, child),
                )
            )  # fmt: skip


def _read(
    element: Element | None, name: str, tags: tuple[AnyTag, ...], file: str, tell: Tell, *sets: str
) -> ParameterSet:
    if element is None:
        read, place = ParameterSet(missing=list(tags)), f"{file}, {name}"
    else:
        read, place = read_set(element, tags, file, tell, sets), place_of(file, element)
    if read.missing:
        said = ", ".join(f"{tag.name} = {_default(tag)}" for tag in read.missing)
        tell(
            Finding(
                "tag_missing", Severity.WARNING, "",
                f"tags are missing and take MQSim's defaults: {said}; write them", place,
            )
        )  # fmt: skip
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
    lines += [f"\t<{HOST_SET}>", *_written(HOST_TAGS, device, 2, log), f"\t</{HOST_SET}>"]
    lines += [f"\t<{DEVICE_SET}>", *_written(DEVICE_TAGS, device, 2, {})]
    lines += [f"\t\t<{FLASH_SET}>", *_written(FLASH_TAGS, device, 3, {}), f"\t\t</{FLASH_SET}>"]
    lines += [f"\t</{DEVICE_SET}>", f"</{DEVICE_ROOT}>"]
    return "\n".join(lines) + "\n"


def _written(
    tags: tuple[AnyTag, ...], device: DeviceConfig, depth: int, fixed: dict[str, str]
) -> list[str]:
    def text(tag: AnyTag) -> str:
        if isinstance(tag, FixedTag):
            return fixed.get(tag.name, tag.value)
        return write_value(_value(tag, device))

    return [write_tag(tag.name, text(tag), depth) for tag in tags]


def write_tag(name: str, text: str, depth: int) -> str:
    """One line of XML in ASCII."""
    said = escape(text).encode("ascii", "xmlcharrefreplace").decode("ascii")
    return "\t" * depth + f"<{name}>{said}</{name}>"
