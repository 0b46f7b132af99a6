"""Words for what an answer holds: configurations, knobs and scopes, for tables and pictures."""

from __future__ import annotations

from iojoule.api.words.quantities import quantity, size
from iojoule.datasets.schema import Configuration
from iojoule.recommender.answer import Row
from iojoule.recommender.workload import Free, Scope

SCOPE_POWER = {
    Scope.DEVICE: ("device_power_watts", "drive"),
    Scope.DEVICE_CPU: ("device_cpu_power_watts", "drive + CPU"),
    Scope.SYSTEM: ("system_power_watts", "whole system"),
}
"""Scope -> field of a row that holds its power, and its name."""

KNOBS = tuple(Free.model_fields)
"""Fields of a configuration that a recommendation may change."""

OF_HOST = {
    "cpu_governor": "governor",
    "cpu_frequency_max_hertz": "clock at most",
    "cstate_limit": "C-state limit",
}
"""Those of the whole host, in words."""

OF_REST = {
    "link_power_policy": "link power",
    "standby_timer_seconds": "standby after",
}
"""How a SATA drive may rest, in words."""


_ENDS = {"min": "at least", "max": "at most"}


def bound(name: str, limit: float) -> str:
    """A bound of the SLA in words."""
    field, _, end = name.rpartition("_")
    return f"{plain_name(field)} {_ENDS[end]} {quantity(field, limit)}"


def plain_name(field: str) -> str:
    """A field's name without its unit, as people say it: `latency_p99_ns` is p99 latency."""
    words = field
    for unit in ("_bytes_per_second", "_ns", "_watts", "_years"):
        words = words.removesuffix(unit)
    kind, _, level = words.partition("_")
    return f"{level} latency" if kind == "latency" else words.replace("_", " ")


def same_setting(one: Row, other: Row) -> bool:
    """Whether two rows ask the host for the same."""
    return all(
        getattr(one.configuration, name) == getattr(other.configuration, name) for name in KNOBS
    )


def knob(configuration: Configuration, name: str) -> str:
    """One knob of a configuration in a word."""
    value = getattr(configuration, name)
    if name == "request_bytes":
        return size(value)
    if name == "power_state":
        return f"PS{value or 0}"
    if name == "submission_polling":
        return "yes" if value else "no"
    if value is None:
        return "as it is"
    if name == "standby_timer_seconds":
        return f"{value:g} s" if value else "never"
    if name == "cpu_frequency_max_hertz":
        return f"{value / 1e9:.3g} GHz"
    return str(value)


def setting(configuration: Configuration) -> str:
    """A configuration in one line."""
    said = (
        f"{size(configuration.request_bytes)} requests, depth {configuration.queue_depth}, "
        f"{configuration.jobs} job{'' if configuration.jobs == 1 else 's'}, {configuration.engine} "
        f"{configuration.completion}, scheduler {configuration.scheduler}, "
        f"PS{configuration.power_state or 0}"
    )
    of_host = [
        f"{words} {knob(configuration, name)}"
        for name, words in (OF_HOST | OF_REST).items()
        if getattr(configuration, name) is not None
    ]
    polling = ["SQ polling"] if configuration.submission_polling else []
    return ", ".join([said, *polling, *of_host])


def setting_in_short(configuration: Configuration) -> str:
    """A configuration in two short lines, for a label in a picture."""
    polled = " polled" if configuration.completion == "polled" else ""
    scheduler = "" if configuration.scheduler in (None, "none") else f", {configuration.scheduler}"
    polled += ", SQ polling" if configuration.submission_polling else ""
    times = "\N{MULTIPLICATION SIGN}"
    return (
        f"{size(configuration.request_bytes)} {times} depth {configuration.queue_depth} {times} "
        f"{configuration.jobs} job{'' if configuration.jobs == 1 else 's'}\n"
        f"{configuration.engine}{polled}{scheduler}, PS{configuration.power_state or 0}"
    )
