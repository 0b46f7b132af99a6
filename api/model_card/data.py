"""The card's sections on where a profile comes from and where it holds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from iojoule.api.documents.content import Block, Section, Table, Text, percent
from iojoule.api.words.quantities import quantity
from iojoule.datasets.profile import DeviceProfile, Parameter
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
