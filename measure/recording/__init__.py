"""Records sensors side by side, keeps every sample, and says what a window of time holds."""

from iojoule.measure.recording.background import Background, IdlePower
from iojoule.measure.recording.power import PowerStatistics
from iojoule.measure.recording.recent import RecentPower
from iojoule.measure.recording.recorder import Recorder
from iojoule.measure.recording.recording import (
    CounterDelta,
    GaugeStatistics,
    Recording,
    read_recording,
)
from iojoule.measure.recording.statistics import WindowPower

__all__ = [
    "Background",
    "CounterDelta",
    "GaugeStatistics",
    "IdlePower",
    "PowerStatistics",
    "RecentPower",
    "Recorder",
    "Recording",
    "WindowPower",
    "read_recording",
]
