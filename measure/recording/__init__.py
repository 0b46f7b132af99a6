"""Records sensors side by side, keeps every sample, and says what a window of time holds."""

from iojoule.measure.recording.recorder import RecentPower, Recorder
from iojoule.measure.recording.recording import (
    CounterDelta,
    GaugeStatistics,
    Recording,
    read_recording,
)
from iojoule.measure.recording.statistics import Background, IdlePower, PowerStatistics, WindowPower

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
