"""Runs the embedded engine and the user's MQSim on the same inputs and says where they differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from iojoule.sim.device import DeviceConfig
from iojoule.sim.engines import Engine, RunOptions
from iojoule.sim.engines.embedded import EmbeddedEngine
from iojoule.sim.engines.mqsim import MqsimEngine
from iojoule.sim.result import DeviceResult, FlowResult, LatencySummary, Result, ScenarioResult
from iojoule.sim.workload import Scenario

SHARE_RESOLUTION = 1e-6
"""MQSim prints how long chips were busy as shares with six decimals."""

FLOW_COUNTS = (
    "generated",
    "generated_read",
    "generated_write",
    "serviced",
    "serviced_read",
    "serviced_write",
    "bytes_read",
    "bytes_written",
)
LATENCIES = (
    "mean_ns",
    "min_ns",
    "max_ns",
    "p50_ns",
    "p90_ns",
    "p99_ns",
    "p999_ns",
    "p9999_ns",
)
DEVICE_COUNTS = (
    "pages_read",
    "pages_programmed",
    "blocks_erased",
    "cmd_read",
    "cmd_mp_read",
    "cmd_prog",
    "cmd_mp_prog",
    "cmd_erase",
    "cmd_mp_erase",
    "map_reads",
    "map_writes",
    "cmt_queries",
    "cmt_hits",
    "gc_exec",
    "gc_page_moves",
    "wl_exec",
)


class Quantity(Result):
    """One quantity as both engines have it.

    `resolution` is the step in which MQSim prints it, cut off: values closer than that are equal
    as far as anybody can see.
    """

    derived = ("difference", "relative_difference", "equal")

    name: str
    embedded: float
    mqsim: float
    resolution: float = 0.0

    @property
    def difference(self) -> float:
        """Embedded minus MQSim."""
        return self.embedded - self.mqsim

    @property
    def relative_difference(self) -> float | None:
        """The difference as a share of MQSim's value; None where that is 0."""
        return self.difference / self.mqsim if self.mqsim else None

    @property
    def equal(self) -> bool:
        """Whether the difference is within MQSim's resolution."""
        if not self.resolution:
            return self.difference == 0
        return abs(self.difference) <= self.resolution


class FlowComparison(Result):
    """One flow, quantity by quantity."""

    name: str
    quantities: tuple[Quantity, ...]


class Comparison(Result):
    """One scenario, run by both engines.

    `speed_ratio` is the user time of MQSim, without its response log, over that of the embedded
    engine; `memory_ratio` the same for the most memory held.
    """

    derived = ("equal", "speed_ratio", "memory_ratio")

    device: tuple[Quantity, ...]
    flows: tuple[FlowComparison, ...]
    embedded_user_seconds: float
    mqsim_user_seconds: float
    embedded_peak_bytes: int
    mqsim_peak_bytes: int
    warnings: tuple[str, ...] = ()

    def quantities(self) -> Iterator[Quantity]:
        """All of them, the drive's first."""
        yield from self.device
        for flow in self.flows:
            yield from flow.quantities

    @property
    def equal(self) -> bool:
        """Whether nothing differs by more than MQSim's resolution."""
        return all(quantity.equal for quantity in self.quantities())

    @property
    def speed_ratio(self) -> float | None:
        """How many times faster the embedded engine is; None where it took no time at all."""
        spent = self.embedded_user_seconds
        return self.mqsim_user_seconds / spent if spent > 0 else None

    @property
    def memory_ratio(self) -> float | None:
        """How many times less memory the embedded engine held."""
        held = self.embedded_peak_bytes
        return self.mqsim_peak_bytes / held if held > 0 else None


def compare(
    device: DeviceConfig,
    scenario: Scenario,
    options: RunOptions | None = None,
    *,
    embedded: Engine | None = None,
    mqsim: MqsimEngine | None = None,
) -> Comparison:
    """Run both engines, one after the other, MQSim twice: for its result and for its time.

    Args:
        device: The drive, in compat mode.
        scenario: The flows.
        options: Limits hold for each run.
        embedded: By default the engine that ships.
        mqsim: By default the user's; requests that it loses are a warning here, because the
            embedded engine loses the same.

    Raises:
        IojouleError: Either engine's.
    """
    options = options or RunOptions()
    mqsim = mqsim or MqsimEngine(tolerate_lost=True)
    ours = (embedded or EmbeddedEngine()).run(device, scenario, options)
    theirs = mqsim.run(device, scenario, options)
    return compare_results(ours, theirs, mqsim.user_seconds(device, scenario, options))


def compare_results(
    ours: ScenarioResult, theirs: ScenarioResult, mqsim_user_seconds: float | None = None
) -> Comparison:
    """Hold two results of the same inputs side by side; what MQSim cannot know is left out.

    Args:
        ours: Of the embedded engine.
        theirs: Of MQSim.
        mqsim_user_seconds: Of a run without the response log; by default that of `theirs`.
    """
    return Comparison(
        device=tuple(_device(ours, theirs)),
        flows=tuple(
            FlowComparison(name=our.name, quantities=tuple(_flow(our, their)))
            for our, their in zip(ours.flows, theirs.flows, strict=True)
        ),
        embedded_user_seconds=ours.run_user_seconds,
        mqsim_user_seconds=theirs.run_user_seconds
        if mqsim_user_seconds is None
        else mqsim_user_seconds,
        embedded_peak_bytes=ours.peak_bytes,
        mqsim_peak_bytes=theirs.peak_bytes,
        warnings=tuple(dict.fromkeys((*ours.warnings, *theirs.warnings))),
    )


def _device(ours: ScenarioResult, theirs: ScenarioResult) -> Iterator[Quantity]:
    for name in DEVICE_COUNTS:
        yield Quantity(
            name=name, embedded=getattr(ours.device, name), mqsim=getattr(theirs.device, name)
        )
    # As shares of each engine's own time, because MQSim does not say how long that was. The share
    # that it prints was made whole ns of the last completion when it was read.
    whole_ns = 1 / max(1, *(flow.sim_end_ns for flow in theirs.flows))
    for name, busy in _BUSY.items():
        yield Quantity(
            name=name,
            embedded=_mean_share(ours, busy),
            mqsim=_mean_share(theirs, busy),
            resolution=SHARE_RESOLUTION + whole_ns,
        )


_BUSY: dict[str, Callable[[DeviceResult], tuple[int, ...]]] = {
    "chip_exec_share": lambda device: device.chip_exec_ns,
    "chip_transfer_share": lambda device: device.chip_transfer_ns,
}


def _mean_share(result: ScenarioResult, busy: Callable[[DeviceResult], tuple[int, ...]]) -> float:
    times = busy(result.device)
    end_ns = max((flow.sim_end_ns for flow in result.flows), default=0)
    return sum(times) / (len(times) * end_ns) if times and end_ns else 0.0


def _flow(our: FlowResult, their: FlowResult) -> Iterator[Quantity]:
    for name in FLOW_COUNTS:
        if getattr(their, name) is not None:
            yield Quantity(name=name, embedded=getattr(our, name), mqsim=getattr(their, name))
    step_ns = their.device_latency.all.resolution_ns
    last_ns = their.flow_last_completion_ns
    yield Quantity(
        name="flow_last_completion_ns",
        embedded=our.flow_last_completion_ns,
        mqsim=last_ns,
        resolution=step_ns,
    )
    for name in ("iops", "bandwidth_bytes_per_second"):
        rate = getattr(their, name)
        yield Quantity(
            name=name,
            embedded=getattr(our, name),
            mqsim=rate,
            resolution=rate * step_ns / last_ns if last_ns else 0.0,
        )
    for prefix, our_kind, their_kind in (
        ("drt", our.device_latency, their.device_latency),
        ("e2e", our.end_to_end_latency, their.end_to_end_latency),
    ):
        for suffix in ("all", "read", "write"):
            ours, theirs = getattr(our_kind, suffix), getattr(their_kind, suffix)
            if ours is not None and theirs is not None and (suffix == "all" or theirs.count):
                name = prefix if suffix == "all" else f"{prefix}_{suffix}"
                yield from _latency(name, ours, theirs)


def _latency(name: str, ours: LatencySummary, theirs: LatencySummary) -> Iterator[Quantity]:
    for part in LATENCIES:
        value = getattr(theirs, part)
        percentile = part.startswith("p")
        yield Quantity(
            name=f"{name}_{part}",
            embedded=getattr(ours, part),
            mqsim=value,
            resolution=theirs.resolution_ns
            + (ours.percentile_relative_error * value if percentile else 0.0),
        )
