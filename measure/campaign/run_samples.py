"""Quality of a campaign's raw series: instruments, noise, and steadiness of its runs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from iojoule.datasets.contribution import Channel, Instrument, RunSamples
from iojoule.datasets.steady_state import WINDOW_ROUNDS, Steadiness, steadiness
from iojoule.measure.campaign.folder import CampaignFolder, PowerRecord, RunRecord
from iojoule.measure.errors import SensorError
from iojoule.measure.recording import Recording, read_recording
from iojoule.measure.recording.statistics import Sampled, round_means, sample_quality
from iojoule.measure.sensors import parse
from iojoule.measure.sensors.diskstats import MOVED_BYTES
from iojoule.measure.sensors.protocol import Kind, Rail, Scope

_CHANNEL = re.compile(r"vref (\S+) V, sensitivity (\S+)")
_VERSION = re.compile(r"[A-Z]\d{3}-\d+\.\d+\.\d+")


def measured_records(records: Sequence[RunRecord]) -> list[RunRecord]:
    """The records of the runs that are done, in the order of the campaign's dataset."""
    return [record for record in records if record.measurement is not None]


def run_samples(folder: CampaignFolder, records: Sequence[RunRecord]) -> list[RunSamples]:
    """Quality of each run's raw samples, else from its record.

    Raises SensorError if one is unreadable.
    """
    if not records:
        return []
    first = min(record.started_utc for record in records)
    return [
        RunSamples(
            row=row,
            started_seconds=round((record.started_utc - first).total_seconds(), 3),
            wall_seconds=round(record.wall_seconds, 3),
            **_of_record(record),
            **_of_series(folder, record),
        )
        for row, record in enumerate(records, 1)
    ]


def _of_record(record: RunRecord) -> dict[str, float]:
    power = record.power.get(Scope.DEVICE.value)
    fields: dict[str, float | None] = {"measured_seconds": _seconds(record)}
    if power is not None:
        peak = power.over_1_ms
        fields |= {
            "mean_watts": power.mean_watts,
            "standard_error_watts": power.standard_error_watts,
            "calibration_uncertainty_watts": power.calibration_uncertainty_watts,
            "maximum_1_ms_watts": peak.maximum_watts if peak else None,
            "coverage": power.coverage,
            "lost_share": _lost(power),
        }
    return _rounded(fields)


def _seconds(record: RunRecord) -> float | None:
    if record.begin_monotonic_ns is None or record.end_monotonic_ns is None:
        return None
    return (record.end_monotonic_ns - record.begin_monotonic_ns) * 1e-9


def _lost(power: PowerRecord) -> float | None:
    total = power.samples + power.lost
    return power.lost / total if total else None


def _of_series(folder: CampaignFolder, record: RunRecord) -> dict[str, float]:
    begin, end = record.begin_monotonic_ns, record.end_monotonic_ns
    recording = _recording(folder, record)
    if recording is None or begin is None or end is None:
        return {}
    fields: dict[str, float | None] = dict(
        zip(
            ("throughput_excursion", "throughput_slope"),
            _bounds(_moved(recording, begin, end)),
            strict=True,
        )
    )
    sampled = recording.sampled(Scope.DEVICE, begin, end)
    if sampled is not None:
        samples, fields["clipped_seconds"] = sampled
        fields |= _of_samples(samples, begin, end)
        fields["second_meter_ratio"] = _second_meter(recording, begin, end)
    return _rounded(fields)


def _of_samples(samples: Sampled, begin: int, end: int) -> dict[str, float | None]:
    rounds = round_means(samples, begin, end, WINDOW_ROUNDS)
    excursion, slope = _bounds(steadiness(rounds) if rounds else None)
    quality = sample_quality(samples)
    return {
        "watts_excursion": excursion,
        "watts_slope": slope,
        "scatter_watts": quality.scatter_watts if quality else None,
        "longest_constant_seconds": quality.longest_constant_seconds if quality else None,
    }


def _bounds(window: Steadiness | None) -> tuple[float | None, float | None]:
    return (window.excursion, window.slope) if window else (None, None)


def _moved(recording: Recording, begin: int, end: int) -> Steadiness | None:
    """Steadiness of the bytes that the block layer counted, over equal parts of the run."""
    rounds = []
    for part in range(WINDOW_ROUNDS):
        edges = [begin + (end - begin) * place // WINDOW_ROUNDS for place in (part, part + 1)]
        rate = recording.rate(MOVED_BYTES, *edges)
        if rate is None:
            return None
        rounds.append(rate)
    # what bypasses the block layer is not counted there, and nothing says how steady it was
    return steadiness(rounds) if any(rounds) else None


def _second_meter(recording: Recording, begin: int, end: int) -> float | None:
    """Mean watts of a second meter of the drive over those of the one that counts."""
    meters = recording.power_sensors(Scope.DEVICE)[:2]
    if len(meters) < 2:
        return None
    means = [recording.power(Scope.DEVICE, begin, end, sensor=name) for name in meters]
    watts = [mean.mean_watts for mean in means if mean is not None and mean.mean_watts]
    return watts[1] / watts[0] if len(watts) == len(meters) else None


def _rounded(fields: dict[str, float | None]) -> dict[str, float]:
    """Six digits: no meter knows more, and a folder stays small."""
    return {name: float(f"{value:.6g}") for name, value in fields.items() if value is not None}


def instruments(folder: CampaignFolder, records: Sequence[RunRecord]) -> list[Instrument]:
    """Instruments with calibration, without addresses.

    Raises SensorError if a series is unreadable.
    """
    by_key: dict[tuple[str, str], Instrument] = {}
    for record in records:
        recording: Recording | None = None
        for scope, power in sorted(record.power.items()):
            key = (scope, power.sensor)
            if key in by_key:
                continue
            if recording is None:
                recording = _recording(folder, record)
            by_key[key] = _instrument(scope, power, recording)
    return list(dict.fromkeys(by_key[key] for key in sorted(by_key)))


def _recording(folder: CampaignFolder, record: RunRecord) -> Recording | None:
    path = folder.path / "runs" / record.name
    return read_recording(path) if any(path.glob("*.parquet")) else None


def _instrument(scope: str, power: PowerRecord, recording: Recording | None) -> Instrument:
    about = {"kind": parse(power.sensor).name, "scope": scope, "rails": len(power.rails)}
    if recording is None or power.sensor not in recording.sensors:
        return Instrument.model_validate(about)
    rails = [rail for rail in recording.rails(power.sensor) if rail.name in power.rails]
    sampled = [rail for rail in rails if rail.kind is Kind.POWER]
    identity = recording.identity(power.sensor)
    version = identity.get("version", "")
    return Instrument.model_validate(
        about
        | {
            "nominal_hertz": recording.nominal_hertz(power.sensor),
            "version": version if _VERSION.fullmatch(version) else None,
            "resolution_watts": _worst(rail.resolution for rail in sampled),
            "full_scale_watts": min(
                (rail.full_scale for rail in sampled if rail.full_scale is not None), default=None
            ),
            "offset_uncertainty_watts": _sum_of(sampled),
            "gain_uncertainty": _worst(rail.gain_uncertainty for rail in sampled),
            "channels": _channels(identity),
        }
    )


def _worst(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return max(known, default=None)


def _sum_of(rails: Sequence[Rail]) -> float | None:
    """The rails of one instrument may err alike, so their offsets add up."""
    offsets = [rail.offset_uncertainty for rail in rails]
    known = [value for value in offsets if value is not None]
    return sum(known) if known and len(known) == len(offsets) else None


def _channels(identity: dict[str, str]) -> tuple[Channel, ...]:
    """Calibration by channel: its numbers alone, for names in an instrument are free text."""
    channels = []
    for key, text in sorted(identity.items()):
        quantity = next((word for word in ("current", "voltage") if key.endswith(word)), None)
        match = _CHANNEL.search(text)
        if quantity is None or match is None:
            continue
        try:
            vref, sensitivity = float(match[1]), float(match[2])
        except ValueError:
            raise SensorError(f"calibration of {key} is not numeric") from None
        channels.append(
            Channel.model_validate(
                {"quantity": quantity, "vref_volts": vref, "sensitivity": sensitivity}
            )
        )
    return tuple(channels)
