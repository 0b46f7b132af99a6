"""A configuration in the settings of an application: text to paste, and what has no setting there.

Which setting exists in which version, and what carries which knob, stands in one TOML file for each
application in `applications/`, every row with its source. A row sets one value; `missing` says why
a knob has no setting; `published` names what has been published without a value, and `refused` what
would save energy and weaken durability. Another application is one more file.
"""

from __future__ import annotations

import re
import textwrap
from functools import cache
from importlib.resources import files
from typing import Literal

from pydantic import Field

from iojoule.datasets.errors import InputError
from iojoule.datasets.input_file import toml_of
from iojoule.datasets.schema import Configuration, Section
from iojoule.datasets.vocabulary import Completion, Engine, depth_at_drive

Knob = Literal["request_bytes", "queue_depth", "jobs", "engine", "completion", "submission_polling"]
KNOBS: tuple[Knob, ...] = (
    "engine",
    "completion",
    "submission_polling",
    "request_bytes",
    "queue_depth",
    "jobs",
)
"""Knobs of a configuration that an application sets; the others are those of drive and host."""

Version = tuple[int, ...]

COMMENT = 76
"""Columns of a comment in the text, so that it fits a terminal."""


class _Row(Section):
    """What holds for some versions and engines.

    Attributes:
        carries: Knob that it is about; `writes`: only a workload that writes needs it.
        since: First version; `before`: first version without it.
        engines: Only with these engines; empty: with all.
    """

    carries: Knob | Literal["writes"]
    since: str = "0"
    before: str | None = None
    engines: tuple[Engine, ...] = ()

    def holds(self, version: Version, engine: Engine | None) -> bool:
        """Whether it holds for a version and an engine."""
        if self.engines and engine not in self.engines:
            return False
        return _version(self.since) <= version and (
            self.before is None or version < _version(self.before)
        )


class Setting(_Row):
    """A setting of an application and how its value follows from a configuration.

    Attributes:
        name: As the application calls it.
        part: Part of the layout that it belongs to.
        value: A value that is always the same.
        values: Value by that of the knob; `values_since`: first version with such a value.
        from_: The number that it follows from; less `subtract`, divided by `divide`, with `suffix`.
        multiple: Rounded up to a multiple of this.
        least: Smallest value; `most` the largest; `most_since`: the largest from a version on.
        only: The only numbers that exist.
        power_of_two: Whether it is rounded up to a power of two.
        restart: Whether the application must be restarted.
        initialise: Whether it is read only when the data are laid out.
        why: What it does.
        source: Where that and the version are documented.
    """

    name: str
    part: str = "lines"
    value: str | None = None
    values: dict[str, str] = Field(default_factory=dict)
    values_since: dict[str, str] = Field(default_factory=dict)
    from_: Literal["request_bytes", "queue_depth", "jobs", "concurrency", None] = None
    subtract: int = 0
    divide: int = 1
    suffix: str = ""
    multiple: int = 1
    least: int = 0
    most: int | None = None
    most_since: dict[str, int] = Field(default_factory=dict)
    only: tuple[int, ...] = ()
    power_of_two: bool = False
    restart: bool = False
    initialise: bool = False
    why: str
    source: str

    def value_for(self, configuration: Configuration, version: Version) -> str | None:
        """Its value; None where it has none for this configuration."""
        if self.value is not None:
            return self.value
        if self.from_ is None:
            key = str(getattr(configuration, self.carries))
            since = _version(self.values_since.get(key, "0"))
            return self.values.get(key) if version >= since else None
        wanted = (_number(configuration, self.from_) - self.subtract) // self.divide
        if self.only and wanted not in self.only:
            return None
        if self.power_of_two:
            wanted = 1 << max(wanted - 1, 0).bit_length()
        wanted += -wanted % self.multiple
        most = self.most
        for since_text, limit in self.most_since.items():
            most = limit if version >= _version(since_text) else most
        return f"{max(self.least, wanted if most is None else min(wanted, most))}{self.suffix}"


class Missing(_Row):
    """Why a knob has no setting."""

    reason: str


class Note(Section):
    """Something that is said and not set.

    Attributes:
        name: Setting, or several.
        value: What was published, or what to do.
        source: Where it was published, or why.
    """

    name: str
    value: str
    source: str


class Application(Section):
    """The settings of one application, as its file states them.

    Attributes:
        title: Its name.
        file: Where the text belongs.
        newest: Version that is meant where none is stated.
        line: Form of one setting; `join` stands between two.
        layout: Form of the whole, with the parts by name.
        comment: Form of a comment.
        setting: What can be set.
        missing: What cannot.
        published: What has been published without a value.
        refused: What weakens durability.
    """

    title: str
    file: str
    newest: str
    line: str = "{name} = {value}"
    join: str = "\n"
    layout: str = "{lines}"
    comment: str = "# {}"
    setting: tuple[Setting, ...]
    missing: tuple[Missing, ...]
    published: tuple[Note, ...] = ()
    refused: tuple[Note, ...] = ()


class SettingLine(Section):
    """One setting with its value.

    Attributes:
        name: As the application calls it.
        value: What to set.
        carries: Knob of the configuration that it carries.
        since: First version that has it.
        restart: Whether the application must be restarted.
        initialise: Whether it is read only when the data are laid out.
        why: What it does.
        source: Where it is documented.
    """

    name: str
    value: str
    carries: str
    since: str
    restart: bool
    initialise: bool
    why: str
    source: str


class NotAvailable(Section):
    """A knob of the configuration that has no setting there, and why."""

    knob: str
    value: str
    reason: str


class ApplicationSettings(Section):
    """A configuration in the settings of an application.

    Attributes:
        application: Its identifier; `title` its name.
        version: Version that it is for.
        file: Where the text belongs.
        text: The text to paste; what cannot be set is a comment.
        settings: The same, one by one.
        not_available: Knobs that have no setting there.
    """

    application: str
    title: str
    version: str
    file: str
    text: str
    settings: list[SettingLine]
    not_available: list[NotAvailable]


def names() -> list[str]:
    """Identifiers of the applications."""
    folder = files(__name__) / "applications"
    return sorted(
        one.name.removesuffix(".toml") for one in folder.iterdir() if one.name.endswith(".toml")
    )


@cache
def load(name: str) -> Application:
    """The settings of an application.

    Raises:
        InputError: There is none of that name.
    """
    if name not in names():
        raise InputError(
            f"settings: {name!r} is not known; known are {', '.join(names())}", field="settings"
        )
    document = toml_of((files(__name__) / "applications" / f"{name}.toml").read_text("utf-8"))
    for row in document["setting"]:
        row["from_"] = row.pop("from", None)
    return Application.model_validate(document)


def check_request(request: str) -> tuple[str, Application, str]:
    """The identifier, the table and the version that a request such as `postgresql=17` names.

    Raises:
        InputError: No such application, or no version number.
    """
    name, _, stated = request.partition("=")
    name = name.strip().lower()
    application = load(name)
    version = stated.strip() or application.newest
    _version(version)
    return name, application, version


def settings_of(request: str, configuration: Configuration, *, writes: bool) -> ApplicationSettings:
    """A configuration in the settings of an application.

    Args:
        request: `postgresql=17`, or `postgresql` for the newest version of the table.
        configuration: What is to be set.
        writes: Whether the workload writes.

    Raises:
        InputError: No such application, or no version number.
    """
    name, application, stated = check_request(request)
    version = _version(stated)
    lines = _lines(application, version, configuration, writes=writes)
    missing = list(
        _missing(application, version, configuration, {line.carries for line, _ in lines})
    )
    return ApplicationSettings(
        application=name,
        title=application.title,
        version=stated,
        file=application.file,
        text=_text(application, stated, lines, missing),
        settings=[line for line, _ in lines],
        not_available=missing,
    )


def _lines(
    application: Application, version: Version, configuration: Configuration, *, writes: bool
) -> list[tuple[SettingLine, str]]:
    """Settings with their values, each with the part of the layout it belongs to."""
    lines = []
    for row in application.setting:
        needed = writes if row.carries == "writes" else _asks(configuration, row.carries)
        value = row.value_for(configuration, version) if needed else None
        if value is None or not row.holds(version, configuration.engine):
            continue
        fields = {name: getattr(row, name) for name in SettingLine.model_fields if name != "value"}
        since = row.values_since.get(str(getattr(configuration, row.carries, None)), row.since)
        lines.append((SettingLine(**{**fields, "since": since}, value=value), row.part))
    return lines


def _missing(
    application: Application, version: Version, configuration: Configuration, carried: set[str]
) -> list[NotAvailable]:
    """Knobs that no setting carries, and why."""
    found = []
    for knob in KNOBS:
        # what is constant belongs to an engine without choosing it
        chosen = knob in carried and not (
            knob == "engine" and not _chooses(application, version, configuration)
        )
        if chosen or not _asks(configuration, knob):
            continue
        rows = [row for row in application.missing if row.carries == knob]
        reason = next(
            (row.reason for row in rows if row.holds(version, configuration.engine)), None
        )
        if reason is None:
            later = [row.since for row in application.setting if row.carries == knob]
            first = min(later, key=_version, default=None)
            reason = f"needs {application.title} {first}" if first else "no such setting is known"
        found.append(
            NotAvailable(knob=knob, value=str(getattr(configuration, knob)), reason=reason)
        )
    return found


def _chooses(application: Application, version: Version, configuration: Configuration) -> bool:
    """Whether a setting chooses the engine, rather than belonging to all of them."""
    rows = [row for row in application.setting if row.carries == "engine" and row.values]
    return any(
        row.holds(version, configuration.engine)
        and row.value_for(configuration, version) is not None
        for row in rows
    )


def _asks(configuration: Configuration, knob: str) -> bool:
    """Whether a configuration says anything of a knob beyond what every application does."""
    value = getattr(configuration, knob)
    return value not in (None, False) and value != Completion.INTERRUPT


def _text(
    application: Application,
    version: str,
    lines: list[tuple[SettingLine, str]],
    missing: list[NotAvailable],
) -> str:
    """The text to paste."""
    comments = [f"{application.title} {version}, {application.file}"]
    for line, _ in lines:
        notes = f"{line.name}: {line.why}; since {application.title} {line.since}"
        notes += "; needs a restart" if line.restart else ""
        comments.append(notes + ("; only for new data" if line.initialise else ""))
    comments += [f"n/a {one.knob} {one.value}: {one.reason}" for one in missing]
    parts = dict.fromkeys(re.findall(r"{(\w+)}", application.layout), "")
    for part in parts:
        parts[part] = application.join.join(
            application.line.format(name=line.name, value=line.value)
            for line, belongs in lines
            if belongs == part
        )
    body = application.layout.format(**parts)
    wrapped = [
        line for one in comments for line in textwrap.wrap(one, COMMENT, subsequent_indent="  ")
    ]
    return "\n".join([*(application.comment.format(line) for line in wrapped), body]) + "\n"


def _number(configuration: Configuration, name: str) -> int:
    depth = depth_at_drive(configuration.engine, configuration.queue_depth or 1)
    jobs = configuration.jobs or 1
    numbers = {
        "request_bytes": configuration.request_bytes,
        "queue_depth": depth,
        "jobs": jobs,
        "concurrency": depth * jobs,
    }
    return int(numbers[name] or 0)


def _version(text: str) -> Version:
    """A version as numbers, so that 10.2 comes after 9.6.

    Raises:
        InputError: It is none.
    """
    if not re.fullmatch(r"\d{1,4}(\.\d{1,4}){0,3}", text):
        raise InputError(f"settings: {text!r} is no version such as 17 or 10.11", field="settings")
    return tuple(int(part) for part in text.split("."))
