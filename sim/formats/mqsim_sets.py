"""Reads one parameter set of MQSim's XML: which tags stand there, which are missing or unknown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from iojoule.sim.findings import Finding, Severity, Tell
from iojoule.sim.formats.building import did_you_mean, refusal
from iojoule.sim.formats.mqsim_tags import ALIASES, QUIET_TAGS, AnyTag, FixedTag, Tag
from iojoule.sim.formats.mqsim_values import Value, check_fixed, read_value
from iojoule.sim.formats.xml_tree import Element


@dataclass
class ParameterSet:
    """What a set says: field -> value and place (an item of an array: `field[item]`)."""

    values: dict[str, Value] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    missing: list[AnyTag] = field(default_factory=list)


def key_of(tag: Tag) -> str:
    """The field, or `field[item]` of a field that holds several values."""
    return tag.field if tag.item is None else f"{tag.field}[{tag.item}]"


def stock_name(tag: str) -> str:
    """The spelling of MQSim's own files."""
    return ALIASES.get(tag, tag)


def place_of(file: str, element: Element) -> str:
    """File, line and tag, as errors name them."""
    return f"{file}, line {element.line}, {element.tag}"


def only_set(parent: Element, name: str, file: str, tell: Tell) -> Element | None:
    """The one child set of that (stock) name; the last where there are several, as in MQSim."""
    found = [child for child in parent.children if stock_name(child.tag) == name]
    for child in found:
        tell_alias(child, file, tell)
    for child in found[:-1]:
        tell(_twice(file, child))
    return found[-1] if found else None


def tell_alias(element: Element, file: str, tell: Tell) -> None:
    """Say that a tag is not spelled as in MQSim's own files, if so."""
    stock = stock_name(element.tag)
    if stock != element.tag:
        tell(
            Finding(
                "tag_renamed", Severity.WARNING, "",
                f"is read as {stock}, its name in MQSim, which ignores this one; rename it",
                place_of(file, element),
            )
        )  # fmt: skip


def read_set(
    element: Element, tags: Sequence[AnyTag], file: str, tell: Tell, sets: Sequence[str] = ()
) -> ParameterSet:
    """Read every tag of a set; `sets` are the sets that may stand inside it.

    Raises:
        RefusedError: A value cannot be read.
    """
    found = _elements(element, tags, file, tell, sets)
    read = ParameterSet()
    for tag in tags:
        child = found.get(tag.name)
        if child is None:
            read.missing.append(tag)
            continue
        place = place_of(file, child)
        if child.children:
            raise refusal("not_a_value", place, "holds other tags; write its value alone")
        if isinstance(tag, FixedTag):
            check_fixed(tag, child.text, place, tell)
            continue
        read.places[key_of(tag)] = place
        read.values[key_of(tag)] = read_value(tag, child.text, place, tell)
    return read


def _elements(
    element: Element, tags: Sequence[AnyTag], file: str, tell: Tell, sets: Sequence[str]
) -> dict[str, Element]:
    """Stock name -> the element that counts: the stock spelling, and of several the last."""
    known = {tag.name for tag in tags}
    found: dict[str, Element] = {}
    if element.text.strip() or element.has_attributes:
        tell(Finding("text_ignored", Severity.WARNING, "",
                     "has text or attributes of its own, which are ignored; write values as tags",
                     place_of(file, element)))  # fmt: skip
    # stable: aliases first, so that the stock spelling has the last word
    for child in sorted(element.children, key=lambda child: child.tag in known):
        name = stock_name(child.tag)
        if name in sets:
            continue
        if name not in known:
            _tell_unknown(child, known, file, tell)
            continue
        tell_alias(child, file, tell)
        if name in found:
            tell(_twice(file, found[name]))
        found[name] = child
    return found


def _twice(file: str, element: Element) -> Finding:
    return Finding(
        "tag_twice", Severity.WARNING, "",
        "stands more than once; the last one holds, as in MQSim; keep one", place_of(file, element),
    )  # fmt: skip


def _tell_unknown(element: Element, known: set[str], file: str, tell: Tell) -> None:
    place = place_of(file, element)
    if element.tag in QUIET_TAGS:
        tell(Finding("tag_without_effect", Severity.NOTE, "",
                     "has no effect, neither here nor in MQSim", place))  # fmt: skip
        return
    meant = did_you_mean(element.tag, sorted(known))
    meant = meant if meant.startswith("did you mean") else "remove it"
    tell(Finding("tag_unknown", Severity.WARNING, "",
                 f"is not a tag of MQSim and is ignored; {meant}", place))  # fmt: skip
