"""Sections of a model card: data, validity, errors, performance, power, host, fitted points."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
from scipy.stats import binomtest

from iojoule.api.power_laws import measured
from iojoule.api.reports.document import Block, Section, Table, Text, percent
from iojoule.api.reports.model_card_drawings import (
    power_picture,
    residual_picture,
    saturation_picture,
)
from iojoule.api.reports.quantities import digits, quantity, size
from iojoule.datasets.profile import (
    CEILING_COMMANDS,
    Assessment,
    DeviceProfile,
    HeldOut,
    HostPath,
    Parameter,
    PerformancePoints,
    Surface,
    WriteState,
    path_key,
)
from iojoule.datasets.vocabulary import Evidence
from iojoule.model.evaluate.predictor import Predictor

GRID_BYTES = tuple(2**octave for octave in range(12, 21))
GRID_DEPTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
"""Configurations over which evidence is counted: 4 KiB to 1 MiB, depth 1 to 256, one job."""


def data_section(profile: DeviceProfile) -> Section:
    """Sources, licences, rows used and excluded, with reasons."""
    if not profile.sources:
        return Section(
            "Data used",
            (Text("The profile names no source of measurements: it rests on published facts."),),
        )
    rows = [
        (
            source.name,
            source.citation,
            source.licence,
            f"{source.rows_used:,}",
            f"{source.rows_excluded:,}",
            "; ".join(source.notes) or ("other drives" if source.rows_excluded else ""),
            source.sha256[:12] if source.sha256 else "",
        )
        for source in profile.sources
    ]
    headings = ("source", "citation", "licence", "rows used", "excluded", "why", "SHA-256 begins")
    return Section("Data used", (Table.of(headings, rows, (3, 4)),))


def validity_section(profile: DeviceProfile) -> Section:
    """Conditions under which the answers hold."""
    valid, unknown = profile.valid_for, "not stated: unknown"
    temperature = valid.temperature_celsius
    protection = {True: "yes", False: "no", None: unknown}[valid.power_loss_protection]
    link = profile.link_bytes_per_second
    rows = [
        ("firmware", ", ".join(valid.firmware) or unknown),
        ("PCIe generation", ", ".join(map(str, valid.pcie_generation)) or unknown),
        (
            "link",
            f"{quantity('bytes_per_second', link.value)} ({link.source})" if link else unknown,
        ),
        ("link power management (ASPM)", valid.aspm_policy or unknown),
        (
            "temperature",
            f"{temperature[0]:g} to {temperature[1]:g} °C" if temperature else unknown,
        ),
        ("power-loss protection", protection),
        (
            "another specimen",
            f"{percent(profile.between_drives_relative_sd.value)} between drives (sd)",
        ),
    ]
    if profile.device_power is not None:
        rows.append(("power was taken under", profile.device_power.condition))
    rows += [("note", note) for note in valid.notes]
    return Section("Conditions and validity", (Table.of(("condition", "holds for"), rows),))


def evidence_section(profile: DeviceProfile) -> Section:
    """What each quantity rests on, and how much of a common grid by evidence."""
    blocks: list[Block] = [
        Table.of(("quantity", "evidence", "rests on"), list(_quantities(profile)))
    ]
    shares = _shares(profile)
    if shares is not None:
        blocks += [
            Text(
                "Share of a grid by the evidence of throughput and latency: 4 KiB to 1 MiB, "
                "depth 1 to 256, one job, everything else as by default."
            ),
            shares,
        ]
    return Section("Evidence by quantity", tuple(blocks))


def _quantities(profile: DeviceProfile) -> Iterator[tuple[str, str, str]]:
    for one in profile.surfaces:
        name = f"throughput and latency, {one.pattern} {one.operation}s"
        yield name, one.evidence.value, one.source
    for mixed in profile.mixed:
        yield _of(f"mixes, {mixed.pattern}: latency", mixed.latency_factor)
    for effect in profile.power_state_effects:
        name = f"{effect.operation}s at PS{effect.power_state}: ceiling"
        yield _of(name, effect.ceiling_bytes_per_second)
    if profile.device_power is not None:
        for parameter in profile.device_power.parameters:
            yield _of(f"drive's power: {parameter.name}", parameter)
    if profile.write_state is not None:
        yield _of("SLC cache: bytes until it is full", profile.write_state.cached_bytes)
    if profile.host_power is not None:
        yield _of("CPU power", profile.host_power.parameters[0])
    if profile.system_power is not None:
        yield _of("power at the wall", profile.system_power.slope)
    for name, law in (
        ("drive's power", profile.device_power),
        ("CPU power", profile.host_power),
        ("power at the wall", profile.system_power),
    ):
        if law is None:
            yield name, "none", "not known; no answer is given"


def _of(name: str, parameter: Parameter) -> tuple[str, str, str]:
    return name, parameter.evidence.value, parameter.source


def _shares(profile: DeviceProfile) -> Table | None:
    if not profile.surfaces:
        return None
    grid = list(product(GRID_BYTES, GRID_DEPTHS))
    predictor = Predictor(profile)
    rows = []
    for one in profile.surfaces:
        columns = {
            "operation": [one.operation.value] * len(grid),
            "pattern": [one.pattern.value] * len(grid),
            "request_bytes": [size for size, _ in grid],
            "queue_depth": [depth for _, depth in grid],
        }
        answer, _ = predictor.predict_columns(columns, len(grid))
        words = np.array(answer.evidence_words())
        shares = [percent(np.mean(words == evidence.value), 0) for evidence in Evidence]
        rows.append((f"{one.pattern} {one.operation}s", *shares))
    headings = ("workload", *(evidence.value for evidence in Evidence))
    return Table.of(headings, rows, range(1, len(headings)))


CONFIDENCE = 0.9
NOT_KEPT = (
    "Not known: the profile rests on a datasheet or too few measurements, or an older version "
    "fitted it. Fit it to measurements to see them."
)
_QUANTITY = {
    "throughput_bytes_per_second": "throughput",
    "latency_mean_ns": "mean latency",
    "latency_p99_ns": "p99 latency",
}
_AXIS = {"queue_depth": "depth", "request_bytes": "size"}


def errors_section(profile: DeviceProfile) -> Section:
    """Error, coverage and interval score by region, and by left-out depth and size."""
    heading = "Error, coverage and interval score"
    if profile.assessment is None or not profile.assessment.held_out:
        return Section(heading, (Text(NOT_KEPT),))
    held = profile.assessment.held_out
    by_region = [one for one in held if one.value is None]
    by_value = [one for one in held if one.value is not None]
    return Section(
        heading,
        (
            Text(
                "Whole depths and whole request sizes are left out of the fit in turn, never "
                "random rows, and predicted from the rest. Inside: between other values of the "
                "row's own series; below and beyond: one step under or past them. The baseline is "
                "interpolation in log-log, below and beyond extrapolation. Intervals are nominal "
                "90 %, their widths from the other values alone; p is that of a two-sided binomial "
                "test against 90 %, as if the rows were independent, which those of one series are "
                "not quite. The score is the mean interval score in log units: lower is better."
            ),
            Table.of(_HEADINGS, [_row(one) for one in by_region], _NUMBERS),
            Text("The same by the value that was left out:"),
            Table.of(_HEADINGS, [_row(one) for one in by_value], _NUMBERS),
        ),
    )


_HEADINGS = (
    "workload",
    "quantity",
    "left out",
    "region",
    "rows",
    "median error",
    "90th percentile",
    "baseline's median",
    "covered",
    "p",
    "score",
    "baseline's score",
)
_NUMBERS = tuple(range(4, len(_HEADINGS)))


def _row(one: HeldOut) -> tuple[str, ...]:
    covered, p = "-", "-"
    if one.interval_rows:
        covered = f"{one.covered} of {one.interval_rows}"
        p = f"{binomtest(one.covered, one.interval_rows, CONFIDENCE).pvalue:.2f}"
    return (
        f"{one.pattern} {one.operation}",
        _QUANTITY[one.quantity],
        _left_out(one),
        one.region or "any",
        str(one.rows),
        percent(one.median_error),
        percent(one.p90_error),
        percent(one.baseline_median_error),
        covered,
        p,
        "-" if one.interval_score is None else f"{one.interval_score:.2f}",
        "-" if one.baseline_interval_score is None else f"{one.baseline_interval_score:.2f}",
    )


def _left_out(one: HeldOut) -> str:
    if one.left_out is None:
        return "a depth or size"
    if one.value is None:
        return f"each {_AXIS[one.left_out]}"
    return size(one.value) if one.left_out == "request_bytes" else f"depth {one.value:g}"


def residuals_section(profile: DeviceProfile) -> Section:
    """Log ratios of what was observed to what the profile answers."""
    heading = "Residuals"
    if profile.assessment is None:
        return Section(heading, (Text(NOT_KEPT),))
    rows = _residual_rows(profile.assessment)
    if not rows:
        return Section(heading, (Text("Not known: no measured point was fitted."),))
    blocks: list[Block] = [
        Text(
            "Observed over answered at the fitted points themselves. The bias is the median, the "
            "spread half the distance between the 16th and the 84th percentile. Apart are "
            "sessions labelled as unsteady, and published points, which may differ freely: the "
            "profile answers for the steady ones."
        ),
        Table.of(("quantity", "points", "of", "bias", "spread", "largest"), rows, (1, 2, 3, 4, 5)),
    ]
    if any(one.latency for one in profile.assessment.performance):
        blocks.append(residual_picture(profile, profile.assessment))
    return Section(heading, tuple(blocks))


def _residual_rows(assessment: Assessment) -> list[tuple[str, ...]]:
    rows = []
    for one in assessment.performance:
        for apart in (False, True):
            label = f"{one.pattern} {one.operation}s" + (", apart" if apart else "")
            chosen = [index for index, other in enumerate(one.apart) if other is apart]
            for name, column in (("mean latency", one.latency), ("p99 latency", one.p99)):
                values = [value for i in chosen if (value := column[i]) is not None]
                if values:
                    rows.append(_spread(f"{name}, {label}", values, one.total))
    if assessment.power is not None and assessment.power.watts:
        rows.append(_spread("drive's power", assessment.power.watts, assessment.power.total))
    return rows


def _spread(name: str, values: list[float], total: int) -> tuple[str, ...]:
    logs = np.array(values)
    low, middle, high = np.quantile(logs, [0.16, 0.5, 0.84])
    largest = logs[np.abs(logs).argmax()]
    return (
        name,
        str(len(logs)),
        f"{total:,}",
        percent(np.expm1(middle), sign=True),
        percent(np.expm1((high - low) / 2)),
        percent(np.expm1(largest), sign=True),
    )


def host_section(profile: DeviceProfile) -> Section:
    """What the host adds in time, and what it draws."""
    host = profile.host
    blocks: list[Block] = [
        Text(
            f"Host {host.host_id}, {host.cpu_cores} cores. Added latency and core time of one "
            "request by engine and completion; a wake-up is shared by the requests of a deep queue."
        ),
        Table.of(
            ("path", "latency", "core time", "wake-up", "sd", "evidence", "source"),
            [_path(one) for one in host.paths],
            (1, 2, 3, 4),
        ),
    ]
    if host.schedulers:
        rows = [
            (
                one.scheduler.value,
                quantity("latency_ns", one.added_latency_ns),
                quantity("latency_ns", one.added_core_time_ns),
                quantity("latency_ns", one.serial_ns),
                percent(one.relative_sd, 0),
                one.evidence.value,
                one.source,
            )
            for one in host.schedulers
        ]
        headings = (
            "scheduler",
            "latency",
            "core time",
            "under one lock",
            "sd",
            "evidence",
            "source",
        )
        blocks.append(Table.of(headings, rows, (1, 2, 3, 4)))
    blocks += _cpu(profile)
    blocks += _wall(profile)
    return Section("The host", tuple(blocks))


def _path(one: HostPath) -> tuple[str, ...]:
    name = path_key(one.engine.value, one.completion.value, one.submission_polling, "")
    return (
        name.removesuffix("/"),
        quantity("latency_ns", one.added_latency_ns),
        quantity("latency_ns", one.core_time_ns),
        quantity("latency_ns", one.wakeup_ns),
        percent(one.relative_sd, 0),
        one.evidence.value,
        one.source,
    )


def _cpu(profile: DeviceProfile) -> list[Block]:
    law = profile.host_power
    if law is None:
        return [Text("Watts of the CPU are not known, so none are answered.")]
    return [
        Text(f"Watts of the CPU: {law.scope}; host {law.host_id}, {law.cpu_cores} cores."),
        _parameters(law.parameters),
    ]


def _wall(profile: DeviceProfile) -> list[Block]:
    law = profile.system_power
    if law is None:
        return [Text("Watts at the wall are not known, so none are answered.")]
    return [
        Text(
            "Watts at the wall: floor + slope x (CPU + drive), supply losses included; host "
            f"{law.host_id}, misses its points by {percent(law.relative_sd)} (sd)."
        ),
        _parameters([law.floor_watts, law.slope]),
    ]


def _parameters(parameters: Sequence[Parameter]) -> Table:
    rows = [
        (
            one.name,
            f"{digits(one.value)} {one.unit if one.unit != '1' else ''}".rstrip(),
            digits(one.sd),
            one.evidence.value,
            one.source,
        )
        for one in parameters
    ]
    return Table.of(("parameter", "value", "sd", "evidence", "source"), rows, (1, 2))


OCTAVE_TOLERANCE = 1e-6


def curves_section(profile: DeviceProfile) -> Section:
    """Saturation curves, with the measured points where the profile keeps them."""
    blocks: list[Block] = [
        Text(
            "R(N) = (R0^k + (N / Xmax)^k)^(1/k): mean latency over requests in flight, from the "
            "unloaded latency R0 to the capacity Xmax, with a bend as sharp as k. Figures are of "
            "the drive alone at PS0; the host adds its own, below. A split request counts as "
            "several commands."
        )
    ]
    for surface in profile.surfaces:
        blocks.append(saturation_picture(profile, surface))
        blocks.append(_knots(surface))
        for operation, pattern in _stand_ins(profile, surface):
            blocks.append(Text(f"It also stands in for {pattern} {operation}s, which are unknown."))
    return Section("Saturation curves", tuple(blocks))


def _stand_ins(profile: DeviceProfile, surface: Surface) -> list[tuple[str, str]]:
    """Kinds of work without a surface that this one answers for."""
    found = []
    for operation in ("read", "write"):
        for pattern, other in (("random", "sequential"), ("sequential", "random")):
            reverse = "write" if operation == "read" else "read"
            order = ((operation, pattern), (operation, other), (reverse, pattern), (reverse, other))
            if profile.surface(*order[0]) is not None:
                continue
            stands = next(one for key in order if (one := profile.surface(*key)) is not None)
            if stands is surface:
                found.append((operation, pattern))
    return found


def _knots(surface: Surface) -> Table:
    rows = []
    for place, octave in enumerate(surface.log2_request_bytes):
        capacity = surface.capacity_operations_per_second[place]
        rows.append(
            (
                f"{surface.pattern} {surface.operation}",
                _size(octave),
                quantity("latency_ns", surface.unloaded_latency_ns[place]),
                quantity("iops", capacity),
                quantity("bytes_per_second", capacity * 2**octave),
                digits(surface.sharpness[place]),
            )
        )
    headings = ("workload", "command", "R0", "Xmax", "Xmax in bytes", "k")
    return Table.of(headings, rows, (1, 2, 3, 4, 5))


def _size(octave: float) -> str:
    if abs(octave - round(octave)) < OCTAVE_TOLERANCE:
        return size(2 ** round(octave))
    return f"{digits(2**octave / 1024)} KiB"


def states_section(profile: DeviceProfile) -> Section:
    """What power states below PS0 and mixes do to throughput and latency."""
    blocks: list[Block] = []
    if profile.power_state_effects:
        rows = [
            (
                f"PS{effect.power_state}",
                f"{effect.operation}s",
                quantity("bytes_per_second", effect.ceiling_bytes_per_second.value),
                percent(effect.ceiling_bytes_per_second.sd, 0),
                *_factor(effect.latency_factor),
                *_factor(effect.tail_factor),
                effect.ceiling_bytes_per_second.evidence.value,
                effect.ceiling_bytes_per_second.source,
            )
            for effect in profile.power_state_effects
        ]
        headings = (
            "state",
            "of",
            "ceiling",
            "sd",
            "latency x",
            "sd",
            "tail x",
            "sd",
            "evidence",
            "source",
        )
        blocks.append(Table.of(headings, rows, range(2, 8)))
        blocks.extend(
            Text(
                f"The ceiling of {effect.operation}s at PS{effect.power_state} falls with the "
                f"commands in flight, over {CEILING_COMMANDS}, to the power "
                f"-{digits(deep.value)} +- {digits(deep.sd)} "
                f"({deep.evidence.value}: {deep.source})."
            )
            for effect in profile.power_state_effects
            if (deep := effect.ceiling_depth_exponent) is not None
        )
    else:
        blocks.append(Text("What lower power states do to throughput and latency is not known."))
    if profile.mixed:
        mixes = [
            (
                one.pattern.value,
                *_factor(one.latency_factor),
                *_factor(one.tail_factor),
                one.latency_factor.evidence.value,
                one.latency_factor.source,
            )
            for one in profile.mixed
        ]
        blocks.append(Text("Reads and writes at once, against taking turns:"))
        of_mixes = ("mixes", "latency x", "sd", "tail x", "sd", "evidence", "source")
        blocks.append(Table.of(of_mixes, mixes, range(1, 5)))
    else:
        blocks.append(Text("What mixing reads and writes does is not known."))
    return Section("Power states and mixes", tuple(blocks))


def _factor(parameter: Parameter) -> tuple[str, str]:
    return digits(parameter.value), percent(parameter.sd, 0)


UNKNOWN = (
    "Not known: nobody measured or published the power of this drive, so no answer in watts is "
    "given. Attach a power sensor, repeat the sweep, and fit again."
)

_SCALED = {"J/B": (1e9, "nJ/B"), "J": (1e6, "µJ"), "W": (1.0, "W")}
"""Unit -> factor and unit in which a law's parameter is easy to read."""


def power_section(profile: DeviceProfile) -> Section:
    """The linear law, with its points."""
    heading = "The drive's power while it serves"
    law = profile.device_power
    if law is None:
        return Section(heading, (Text(UNKNOWN),))
    rows = [_parameter(one) for one in law.parameters]
    points = profile.assessment.power if profile.assessment else None
    blocks: list[Block] = [
        Text(
            "P = base + energy per byte x bytes/s + energy per command x commands/s, by direction, "
            "+ background while the drive collects; never above the peak of "
            f"{quantity('watts', law.peak_watts.value)} ({law.peak_watts.source}) or the state's "
            f"cap. Known up to {quantity('iops', law.measured_read_operations_per_second_max)} of "
            f"reads and {quantity('bytes_per_second', law.measured_bytes_per_second_max)}; above "
            "that it is extrapolated. The law misses its points by "
            f"{percent(law.relative_sd)} (sd). Condition: {law.condition}."
        ),
        power_picture(profile.device, law, points),
        Table.of(("parameter", "value", "sd", "evidence", "source"), rows, (1, 2)),
    ]
    return Section(heading, tuple(blocks))


def _parameter(one: Parameter) -> tuple[str, ...]:
    factor, unit = _SCALED.get(one.unit, (1.0, one.unit))
    return (
        one.name,
        f"{digits(one.value * factor)} {unit}",
        f"{digits(one.sd * factor)} {unit}",
        one.evidence.value,
        one.source,
    )


def idle_section(profile: DeviceProfile) -> Section:
    """Idle power and declared cap by power state."""
    heading = "Idle power and caps"
    law = profile.device_power
    if law is None or not law.idle_watts:
        return Section(heading, (Text(UNKNOWN),))
    rows = []
    for state in range(max(len(law.idle_watts), len(law.cap_watts))):
        idle = law.idle_watts[state] if state < len(law.idle_watts) else None
        cap = law.cap_watts[state] if state < len(law.cap_watts) else None
        rows.append(
            (
                f"PS{state}",
                quantity("watts", idle.value) if idle else "not known",
                quantity("watts", idle.sd) if idle else "-",
                quantity("watts", cap) if cap is not None else "not known",
                idle.evidence.value if idle else "-",
                idle.source if idle else "-",
            )
        )
    headings = ("state", "idle", "sd", "declared cap", "evidence of idle", "source of idle")
    note = Text("A declared cap is not a measured power.")
    return Section(heading, (Table.of(headings, rows, (1, 2, 3)), note))


def writes_section(profile: DeviceProfile) -> Section:
    """How what was written changes the drive's state."""
    heading = "What written bytes do"
    state = profile.write_state
    if state is None:
        return Section(
            heading,
            (
                Text(
                    "Not known: when the cache is full and how the drive collects. Answers for "
                    "writes hold for the state in which the drive was measured."
                ),
            ),
        )
    named = (
        state.cached_bytes,
        state.transition_bytes,
        state.collecting_bytes_per_second,
        state.recovery_bytes_per_second_per_byte,
        state.background_joules_per_byte,
        *filter(None, (state.overwriting_seconds,)),
        *_of_long_writes(state),
    )
    rows = [
        (one.name, f"{one.value:.4g}", f"{one.sd:.2g}", one.unit, one.evidence.value, one.source)
        for one in named
    ]
    rows += [
        (
            f"background work after writes, PS{index}",
            f"{one.value:.4g}",
            f"{one.sd:.2g}",
            one.unit,
            one.evidence.value,
            one.source,
        )
        for index, one in sorted(state.background_seconds_after_write.items())
    ]
    headings = ("quantity", "value", "sd", "unit", "evidence", "source")
    return Section(heading, (Table.of(headings, rows, (1, 2)),))


def _of_long_writes(state: WriteState) -> list[Parameter]:
    """What is known of random writes past a full cache."""
    known = state.long_writes
    if known is None:
        return []
    every = (getattr(known, name) for name in type(known).model_fields)
    return [one for one in every if isinstance(one, Parameter)]


HEADING = "Every fitted point"


def points_section(profile: DeviceProfile) -> Section:
    """Performance, the drive's watts and the CPU's, a table each."""
    blocks = [*_performance(profile), *_drive(profile), *_cpu_points(profile)]
    if not blocks:
        return Section(HEADING, (Text("No measured point was fitted, or none is kept."),))
    return Section(HEADING, tuple(blocks))


def _performance(profile: DeviceProfile) -> Iterator[Block]:
    assessment = profile.assessment
    points = assessment.performance if assessment is not None else []
    rows = [row for one in points for row in _rows(one)]
    if rows:
        yield Text(
            "Latency, observed over answered; throughput is off by the inverse of the mean latency."
            + _kept(sum(one.total for one in points), rows)
        )
        yield Table.of(
            ("workload", "request", "depth", "jobs", "host path", "session", "mean latency", "p99"),
            rows,
            (1, 2, 3, 6, 7),
        )


def _rows(points: PerformancePoints) -> Iterator[tuple[str, ...]]:
    for place, path in enumerate(points.path):
        p99 = points.p99[place]
        yield (
            f"{points.pattern} {points.operation}s",
            size(points.request_bytes[place]),
            str(points.queue_depth[place]),
            str(points.jobs[place]),
            path,
            "apart" if points.apart[place] else "steady",
            percent(np.expm1(points.latency[place]), sign=True),
            "-" if p99 is None else percent(np.expm1(p99), sign=True),
        )


def _drive(profile: DeviceProfile) -> Iterator[Block]:
    points = profile.assessment.power if profile.assessment is not None else None
    if points is None or profile.device_power is None:
        return
    _, watts = measured(profile.device_power, points)
    rows = [
        (
            f"PS{points.power_state[place]}",
            size(points.request_bytes[place]),
            quantity("bytes_per_second", points.read_bytes_per_second[place]),
            quantity("bytes_per_second", points.write_bytes_per_second[place]),
            percent(points.collecting[place], 0),
            quantity("watts", watts[place]),
            quantity("watts", watts[place] / np.exp(points.watts[place])),
            percent(np.expm1(points.watts[place]), sign=True),
        )
        for place in range(len(points.watts))
    ]
    yield Text("Watts of the drive." + _kept(points.total, rows))
    yield Table.of(
        ("state", "request", "reads", "writes", "background work", "observed", "answered", "off"),
        rows,
        range(1, 8),
    )


def _cpu_points(profile: DeviceProfile) -> Iterator[Block]:
    known = profile.host_power.points if profile.host_power is not None else []
    rows = [
        (
            f"{one.busy_cores:.3g}",
            f"{one.serving_cores:.3g}",
            f"{one.wakeups_per_second:,.0f}",
            quantity("watts", one.watts),
            quantity("watts", one.answered_watts),
            percent(one.watts / one.answered_watts - 1.0, sign=True),
            one.source,
        )
        for one in known
    ]
    if rows:
        yield Text("Watts of the CPU.")
        yield Table.of(
            ("cores busy", "serving", "wake-ups/s", "observed", "answered", "off", "source"),
            rows,
            range(6),
        )


def _kept(total: int, rows: Sequence[object]) -> str:
    return "" if len(rows) == total else f" {len(rows):,} of {total:,} are kept, evenly spread."
