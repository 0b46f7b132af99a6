"""The report and plots of a characterisation: a table of estimates and an SVG per experiment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from iojoule.datasets.atomic import write_atomically
from iojoule.datasets.characteristics import Characteristics, Estimate, ExperimentResult, Status
from iojoule.measure.characterise.experiment import Experiment
from iojoule.measure.errors import CampaignError

_PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "u"), (1e-9, "n"))
_BINARY = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def shown(value: float, unit: str) -> str:
    """A number with its unit, as people write it."""
    if unit == "bytes":
        for size, name in _BINARY:
            if abs(value) >= size:
                return f"{value / size:.4g} {name}"
        return f"{value:.0f} bytes"
    if unit == "1":
        return f"{value:.3g}"
    for scale, prefix in _PREFIXES:
        if abs(value) >= scale:
            return f"{value / scale:.4g} {prefix}{unit}"
    return f"{value:.3g} {unit}"


def interval(estimate: Estimate) -> str:
    """The estimate in words: value and interval, a bound, or that there is none."""
    if estimate.value is not None and estimate.low is not None and estimate.high is not None:
        low, high = shown(estimate.low, estimate.unit), shown(estimate.high, estimate.unit)
        return f"{shown(estimate.value, estimate.unit)} ({low} to {high})"
    if estimate.low is not None:
        return f"not found; at least {shown(estimate.low, estimate.unit)}"
    if estimate.high is not None:
        return f"not found; at most {shown(estimate.high, estimate.unit)}"
    return "not found"


def report(characteristics: Characteristics) -> str:
    """The report as Markdown."""
    drive = characteristics.drive
    lines = [
        f"# {drive.model}",
        "",
        f"Firmware {drive.firmware or 'unknown'}, {drive.capacity_bytes / 1e9:,.1f} GB, asked on",
        f"{characteristics.began_utc[:10]} at scale {characteristics.scale}. Intervals hold with",
        f"{characteristics.confidence:.0%}; where nothing was found the reason is stated.",
        "",
    ]
    for name, result in characteristics.answers.items():
        lines += [f"## {result.title}", "", f"`{name}`: {result.purpose}.", ""]
        if result.status is not Status.ANSWERED:
            lines += [f"{result.status.value}: {result.reason}.", ""]
            continue
        lines += ["| what | estimate | how |", "|---|---|---|"]
        for label, estimate in result.estimates.items():
            how = (
                estimate.method
                if estimate.reason is None
                else f"{estimate.reason}; {estimate.method}"
            )
            lines.append(f"| `{label}` | {interval(estimate)} | {how} |")
        lines += [
            "",
            f"{result.bytes_written / 1e6:,.1f} MB written, {result.seconds:.0f} s.",
            f"After: {', '.join(result.sources)}.",
            "",
        ]
        if result.plot is not None:
            lines += [f"![{result.title}]({result.plot})", ""]
    return "\n".join(lines)


def draw(experiment: Experiment, result: ExperimentResult, path: Path) -> None:
    """Draw a result. Raises CampaignError if the file cannot be written; no partial file stays."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    style: Any = {
        "svg.hashsalt": "iojoule",
        "svg.fonttype": "path",
        "font.size": 10,
        "axes.spines.top": False,
    }
    with mpl.rc_context(style):
        figure = Figure(figsize=(7.0, 4.2), layout="constrained")
        axes = figure.add_subplot()
        experiment.draw(axes, result.evidence, result.estimates)
        axes.set_title(experiment.title, loc="left")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # dates and versions would make two pictures of the same result differ
            metadata = {"Date": None, "Creator": "iojoule"}
            write_atomically(path, lambda at: figure.savefig(at, format="svg", metadata=metadata))
        except OSError as error:
            raise CampaignError(f"{path}: cannot be written ({error.strerror})") from None
