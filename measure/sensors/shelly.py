"""Shelly plugs and relays with a meter, generation 1 and later.

Source: Shelly API reference. Generation 1: `/status`, `meters[i].power` in W and `total` in watt
minutes. Later: RPC `Switch.GetStatus`, `apower` in W and `aenergy.total` in Wh. `/shelly` needs no
password and tells the generation.
"""

from __future__ import annotations

from typing import Any

from iojoule.measure.sensors import Options
from iojoule.measure.sensors.http_plug import INTERVAL_SECONDS, HttpPlug

JOULES_PER_WATT_HOUR = 3600.0
JOULES_PER_WATT_MINUTE = 60.0


def from_options(options: Options) -> Shelly:
    """`shelly:HOST[:PORT][,channel=0][,every=1]`."""
    options.known("channel", "every")
    return Shelly(
        options.needed_address("shelly:plug.example"),
        channel=options.get("channel", int) or 0,
        interval_seconds=options.get("every", float) or INTERVAL_SECONDS,
    )


class Shelly(HttpPlug):
    """One channel, counted from 0."""

    def __init__(
        self, address: str, *, channel: int = 0, interval_seconds: float = INTERVAL_SECONDS
    ) -> None:
        super().__init__(
            f"shelly:{address},channel={channel}",
            address,
            variables=("IOJOULE_SHELLY_USER", "IOJOULE_SHELLY_PASSWORD"),
            watts_step=0.1,
            joules_step=JOULES_PER_WATT_MINUTE,
            interval_seconds=interval_seconds,
        )
        self._channel = channel
        self._generation: int | None = None

    def reading(self) -> tuple[Any, Any]:
        """See `HttpPlug.reading`."""
        if self._generation is None:
            # only generation 2 and later name theirs
            self._generation = int(self.server.get("/shelly").get("gen", 1))
        if self._generation == 1:
            meter = self.server.get("/status")["meters"][self._channel]
            if not meter.get("is_valid", True):
                raise ValueError("the meter says that its reading is not valid")
            total, unit = meter.get("total"), JOULES_PER_WATT_MINUTE
        else:
            meter = self.server.get(f"/rpc/Switch.GetStatus?id={self._channel}")
            total, unit = meter.get("aenergy", {}).get("total"), JOULES_PER_WATT_HOUR
        watts = meter["power" if self._generation == 1 else "apower"]
        return watts, None if total is None else float(total) * unit
