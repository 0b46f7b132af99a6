"""Plugs with the Tasmota firmware and a meter.

Source: Tasmota documentation, Commands: `Status 8`, `StatusSNS.ENERGY` with `Power` in W, `Total`
in kWh. Its web server is asked by `/cm?cmnd=Status%208`, which switches nothing.
"""

from __future__ import annotations

from typing import Any

from iojoule.measure.sensors import Options
from iojoule.measure.sensors.http_plug import INTERVAL_SECONDS, HttpPlug

JOULES_PER_KILOWATT_HOUR = 3.6e6
_PATH = "/cm?cmnd=Status%208"


def from_options(options: Options) -> Tasmota:
    """`tasmota:HOST[:PORT][,channel=1][,every=1]`; `channel` where it meters several."""
    options.known("channel", "every")
    return Tasmota(
        options.needed_address("tasmota:plug.example"),
        channel=options.get("channel", int),
        interval_seconds=options.get("every", float) or INTERVAL_SECONDS,
    )


class Tasmota(HttpPlug):
    """One channel, counted from 1; None where the plug has only one."""

    def __init__(
        self,
        address: str,
        *,
        channel: int | None = None,
        interval_seconds: float = INTERVAL_SECONDS,
    ) -> None:
        super().__init__(
            f"tasmota:{address}" + ("" if channel is None else f",channel={channel}"),
            address,
            variables=("IOJOULE_TASMOTA_USER", "IOJOULE_TASMOTA_PASSWORD"),
            watts_step=1.0,
            joules_step=0.001 * JOULES_PER_KILOWATT_HOUR,
            interval_seconds=interval_seconds,
        )
        self._channel = channel

    def reading(self) -> tuple[Any, Any]:
        """See `HttpPlug.reading`."""
        energy = self.server.get(_PATH)["StatusSNS"]["ENERGY"]
        watts, total = energy["Power"], energy.get("Total")
        if isinstance(watts, list):
            if self._channel is None or not 1 <= self._channel <= len(watts):
                raise ValueError(f"it meters {len(watts)} channels; state channel=1 to that")
            # the total is of all channels
            return watts[self._channel - 1], None
        return watts, None if total is None else float(total) * JOULES_PER_KILOWATT_HOUR
