"""Parts of the lab's background process: controller, CPU counters, power sensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from iojoule.measure.errors import LabError
from iojoule.measure.lab.controller import Controller, ControllerFault, ControllerSocket
from iojoule.measure.lab.disk_control import DiskControl, DiskPower
from iojoule.measure.lab.host_power import RaplTree
from iojoule.measure.lab.nvme_bytes import Identity
from iojoule.measure.lab.paths import LabPaths
from iojoule.measure.lab.powersensor3 import EmulatedPair, EmulatedPowerSensor3
from iojoule.sim.physical_options import PowerOptions

M2_PAIRS = (EmulatedPair("m2-3v3", 3.3, gain=0.3),)
"""An SSD in an M.2 slot draws from this rail alone."""

FAULTS: dict[str, tuple[str, ...]] = {
    "disk": ("none", "eio", "stall", "vanish"),
    "controller": tuple(ControllerFault),
    "powersensor3": (
        "none",
        "disconnect",
        "stall",
        "silent",
        "garbage",
        "only-garbage",
        "drop",
        "gap",
        "clip",
        "drift",
    ),
    "rapl": ("none", "unreadable", "missing"),
}
"""Which faults each part can play; `none` ends them. `disk` is the daemon's business."""


class Parts:
    """Everything beside the disk, started at once; `close` ends it."""

    def __init__(self, paths: LabPaths, power: PowerOptions, identity: Identity) -> None:
        control = DiskControl(paths.socket("disk"))
        self._control = control
        self.controller = Controller(power, control, identity)
        self._socket = ControllerSocket(paths.socket("controller"), self.controller)
        self.rapl = RaplTree(paths.rapl, DiskControl(paths.socket("disk")))
        self.rapl.start()
        self.sensor = EmulatedPowerSensor3(
            paths.folder,
            DiskPower(DiskControl(paths.socket("disk"))),
            pairs=M2_PAIRS,
            name=paths.power_sensor.name,
        )
        self.sensor.start()

    def close(self) -> None:
        """End all threads."""
        self.sensor.close()
        self._socket.close()
        self.rapl.close()
        self._control.close()

    def fault(self, part: str, kind: str, value: float | None) -> None:
        """Inject a fault of `FAULTS`. Raises LabError if the part has none of that name."""
        if kind not in FAULTS.get(part, ()):
            raise LabError(f"{part} has no fault {kind}")
        if part == "controller":
            self.controller.fault = ControllerFault(kind)
        elif part == "rapl":
            self._rapl_fault(kind)
        else:
            self._sensor_fault(kind, value)

    def _rapl_fault(self, kind: str) -> None:
        self.rapl.heal()
        if kind == "missing":
            self.rapl.missing()
        elif kind == "unreadable":
            self.rapl.unreadable()

    def _sensor_fault(self, kind: str, value: float | None) -> None:
        sensor = self.sensor
        exact = 1.0 if value is None else value
        amount = int(exact)
        plays: dict[str, Callable[[], Any]] = {
            "disconnect": sensor.disconnect,
            "stall": sensor.stall,
            "silent": sensor.never_answer,
            "garbage": lambda: sensor.garbage(amount),
            "only-garbage": sensor.only_garbage,
            "drop": lambda: sensor.drop_frames(amount, out_of=100),
            "gap": lambda: sensor.lose_frames(exact),
            "clip": lambda: sensor.clip(exact),
            "drift": lambda: sensor.drift(exact),
        }
        if kind == "none":
            sensor.heal()
            if self._cable_pulled:
                sensor.reconnect()
        else:
            plays[kind]()
        self._cable_pulled = kind == "disconnect"

    _cable_pulled = False
