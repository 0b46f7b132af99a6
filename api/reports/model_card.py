"""The model card of a profile: content, Markdown and HTML files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ValidationError

from iojoule.api.reports.document import (
    Block,
    Code,
    Document,
    Picture,
    Points,
    Section,
    Table,
    Text,
    percent,
    to_html,
)
from iojoule.api.reports.model_card_sections import (
    curves_section,
    data_section,
    errors_section,
    evidence_section,
    host_section,
    idle_section,
    points_section,
    power_section,
    residuals_section,
    states_section,
    validity_section,
    writes_section,
)
from iojoule.api.reports.quantities import size
from iojoule.datasets.atomic import output_file, write_text_atomically
from iojoule.datasets.errors import InputError
from iojoule.datasets.profile import DeviceProfile
from iojoule.datasets.schema import validation_error


@dataclass(frozen=True)
class FindingsSummary:
    """How many published findings the profile reproduces.

    Attributes:
        judged: Findings that the profile answers.
        direction_right: Of these, those whose direction is right.
        magnitude_inside: Of these, those whose published value lies inside the interval.
        unanswered: Findings of this drive that it does not answer.
        missed: Those that it gets wrong, in words.
        how: How they were judged, for instance the command.
    """

    judged: int
    direction_right: int
    magnitude_inside: int
    unanswered: int
    missed: tuple[str, ...]
    how: str


class _Verdict(BaseModel):
    """What is needed of one row of `iojoule validate findings -o json`."""

    fact_id: str
    device: str
    asked: bool
    answered: bool
    direction_right: bool
    magnitude_right: bool
    quantity: str
    published_text: str
    predicted_text: str


class _Verdicts(BaseModel):
    findings: list[_Verdict]


def read_findings(path: Path, device: str) -> FindingsSummary:
    """Sum up what `iojoule validate findings -o json` said of one drive.

    Raises:
        InputError: The file cannot be read, or holds something else.
    """
    try:
        rows = _Verdicts.model_validate_json(path.read_bytes()).findings
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except ValidationError as error:
        raise validation_error(error, f"{path} (`iojoule validate findings -o json`)") from None
    own = [row for row in rows if row.asked and row.device == device]
    known = [row for row in own if row.answered]
    missed = tuple(
        f"{row.fact_id} {row.quantity}: published {row.published_text}, "
        f"predicted {row.predicted_text}"
        for row in known
        if not (row.direction_right and row.magnitude_right)
    )
    return FindingsSummary(
        judged=len(known),
        direction_right=sum(row.direction_right for row in known),
        magnitude_inside=sum(row.magnitude_right for row in known),
        unanswered=len(own) - len(known),
        missed=missed,
        how="Each was judged by `iojoule validate findings` with the profile built without it.",
    )


def findings_section(summary: FindingsSummary) -> Section:
    """The section of the card."""
    said = Text(
        f"Of {summary.judged} published findings that this profile answers it has the direction of "
        f"{summary.direction_right} right, and the published value of {summary.magnitude_inside} "
        f"inside its 90 % interval; {summary.unanswered} it does not answer. {summary.how}"
    )
    blocks = (said, Text("Missed:"), Points(summary.missed)) if summary.missed else (said,)
    return Section("Published findings reproduced", blocks)


PERFORMANCE = (
    "Performance: a saturation curve by request size, robust least squares in log latency; what it "
    "misses is learned by a Gaussian process where there are rows enough; percentiles follow from "
    "the mean."
)
POWER = "Power: a linear law with non-negative parameters and stated priors."
REPEATABLE = (
    "This card holds nothing but what the profile says: `iojoule profile report` writes it again, "
    "the same to the byte."
)
NO_LIMIT_BYTES = 1 << 40
"""A limit of transfers that no request reaches stands for none."""


def build_card(profile: DeviceProfile, findings: FindingsSummary | None = None) -> Document:
    """The model card of a profile.

    Args:
        profile: Any profile; what it does not know is said so.
        findings: How it did on published findings; None leaves the section out.
    """
    sections = [
        _summary(profile),
        data_section(profile),
        validity_section(profile),
        _gaps(profile),
        evidence_section(profile),
        errors_section(profile),
        residuals_section(profile),
        *([findings_section(findings)] if findings else []),
        curves_section(profile),
        states_section(profile),
        power_section(profile),
        idle_section(profile),
        writes_section(profile),
        host_section(profile),
        _making(profile),
        points_section(profile),
    ]
    return Document(
        "Model card", profile.device, profile.model_name, _lead(profile), tuple(sections)
    )


def _lead(profile: DeviceProfile) -> tuple[tuple[str, str], ...]:
    used = sum(source.rows_used for source in profile.sources)
    sources = f"{len(profile.sources)} source{'s' * (len(profile.sources) != 1)}"
    return (
        ("Profile", f"{profile.device}, version {profile.profile_version}"),
        ("Made by", profile.generator),
        ("Measurements", f"{used:,} rows of {sources}"),
        ("Host measured on", profile.host.host_id),
        ("Performance", _surfaces(profile)),
        ("Power", _powers(profile)),
    )


def _surfaces(profile: DeviceProfile) -> str:
    told = [f"{one.pattern} {one.operation}s ({one.evidence})" for one in profile.surfaces]
    return ", ".join(told) or "not known"


def _powers(profile: DeviceProfile) -> str:
    parts = {
        "drive": profile.device_power,
        "CPU": profile.host_power,
        "whole system": profile.system_power,
    }
    return ", ".join(name for name, law in parts.items() if law is not None) or "not known"


def _summary(profile: DeviceProfile) -> Section:
    return Section(
        "What this is for",
        (
            Text(
                f"The profile predicts throughput, latency and watts of a {profile.model_name} for "
                "a configuration of the host, each with a 90 % interval and the evidence it rests "
                "on. It is meant for choosing settings that save energy within an SLA, and not for "
                "comparing vendors, for guarantees, or for drives of another model."
            ),
        ),
    )


def _gaps(profile: DeviceProfile) -> Section:
    if not profile.gaps:
        return Section("Known gaps", (Text("The recipe of this profile names none."),))
    return Section("Known gaps", (Points(tuple(profile.gaps)),))


def _making(profile: DeviceProfile) -> Section:
    between = profile.between_drives_relative_sd
    limit = profile.max_transfer_bytes
    made = (
        f"Fitted by {profile.generator} after the recipe {profile.recipe}; profile version "
        f"{profile.profile_version}, layout {profile.schema_version}."
    )
    intervals = (
        "Intervals: conformal, from whole depths and sizes left out; across drives of one model "
        f"{percent(between.value)} is added ({between.source})."
    )
    split = f"Requests above {size(limit)} are split into several commands."
    if limit >= NO_LIMIT_BYTES:
        split = "Requests are taken as one command each, whatever their size."
    told = (made, PERFORMANCE, POWER, intervals, split, REPEATABLE)
    return Section("How it was made", (Points(told), _defaults(profile)))


def _defaults(profile: DeviceProfile) -> Table:
    rows = [
        (name, str(value), profile.default_sources.get(name, "not stated"))
        for name, value in profile.defaults.items()
    ]
    return Table.of(("where left out", "is taken as", "because"), rows)


def to_markdown(card: Document) -> str:
    """The text of the card; a drawing is referred to as NAME.svg."""
    lines = [f"# {_text(card.title)}: model card", ""]
    lines += _table(Table.of(("", ""), card.lead))
    for section in card.sections:
        lines += [f"## {_text(section.heading)}", ""]
        for block in section.blocks:
            lines += _block(block)
    return "\n".join(lines).rstrip() + "\n"


def _block(block: Block) -> Iterator[str]:
    match block:
        case Text(words):
            yield _text(words)
        case Points(items):
            yield from (f"* {_text(item)}" for item in items)
        case Table():
            yield from _table(block)
            return
        case Code(says, text):
            yield from (_text(says), "", *(f"    {line}" for line in text.splitlines()))
        case Picture(name, _, caption):
            yield f"![{_text(caption)}]({name}.svg)"
    yield ""


def _table(table: Table) -> Iterator[str]:
    yield f"| {' | '.join(_cell(one) for one in table.headings)} |"
    rules = ("---:" if place in table.numbers else "---" for place in range(len(table.headings)))
    yield f"| {' | '.join(rules)} |"
    for row in table.rows:
        yield f"| {' | '.join(_cell(one) for one in row)} |"
    yield ""


def _cell(text: str) -> str:
    return _text(text).replace("|", "\\|")


def _text(words: str) -> str:
    """Words as they are: what could be read as mark-up is escaped, but for `code`."""
    pieces = " ".join(words.split()).split("`")
    plain = len(pieces) % 2 == 0  # a lone backtick quotes nothing
    for place, piece in enumerate(pieces):
        if plain or place % 2 == 0:
            for sign in ("\\", "*", "_", "[", "]", "<", ">", "#", "~"):
                piece = piece.replace(sign, f"\\{sign}")
            pieces[place] = piece
    return ("\\`" if plain else "`").join(pieces)


MARKDOWN, HTML = ".md", ".html"


def check_target(path: Path) -> None:
    """Refuse early what cannot be written.

    Raises:
        InputError: Neither a folder that exists, nor a file .md or .html in one.
    """
    if path.is_dir():
        return
    if path.suffix.lower() not in (MARKDOWN, HTML):
        raise InputError(
            f"{path}: no such folder; make it first, or name a file that ends in {MARKDOWN} or "
            f"{HTML}"
        )
    if not path.absolute().parent.is_dir():
        raise InputError(f"{path}: the folder {path.parent} does not exist; make it first")


def write_card(card: Document, path: Path) -> tuple[Path, ...]:
    """Write a card and return the files.

    Args:
        card: What to write.
        path: A folder, which gets both forms under the card's own name; or a file, whose ending
            says the form. Markdown's drawings lie beside it.

    Raises:
        InputError: The target cannot be written; nothing half written stays.
    """
    check_target(path)
    wanted: dict[Path, str] = {}
    if path.is_dir():
        wanted |= _markdown(card, path / f"{card.name}{MARKDOWN}")
        wanted[path / f"{card.name}{HTML}"] = to_html(card)
    elif path.suffix.lower() == HTML:
        wanted[path] = to_html(card)
    else:
        wanted |= _markdown(card, path)
    _write(wanted)
    return tuple(wanted)


def _markdown(card: Document, path: Path) -> dict[Path, str]:
    drawings = {path.with_name(f"{one.name}.svg"): one.svg for one in card.pictures}
    return {path: to_markdown(card), **drawings}


def _write(texts: Mapping[Path, str]) -> None:
    for path, text in texts.items():
        with output_file(path):
            write_text_atomically(path, text)
