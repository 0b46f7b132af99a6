"""Where the embedded engine is not MQSim's equal in compat mode, and says so.

Each is a known difference that the reference runs show; everything else is equal to the
nanosecond.
"""

from __future__ import annotations

from collections.abc import Iterator

from iojoule.sim.device import DeviceConfig, HostInterface, Scheduler
from iojoule.sim.errors import ConfigError
from iojoule.sim.result import Mode, ScenarioResult
from iojoule.sim.workload import CachingMode, Priority, Scenario

_READ_CACHING = (CachingMode.READ_CACHE, CachingMode.WRITE_READ_CACHE)
_WEIGHTED = (Priority.MEDIUM, Priority.LOW)


def refuse_what_is_missing(device: DeviceConfig) -> None:
    """Refuse a drive that compat mode has no model of.

    Raises:
        ConfigError: The drive has a SATA interface.
    """
    if device.mode is Mode.COMPAT and device.host_interface is HostInterface.SATA:
        raise ConfigError(
            "the embedded engine has no SATA interface in compat mode; use nvme or physical "
            "mode, or run your own MQSim with --engine mqsim",
            field="host_interface",
        )


def near_but_not_equal(
    device: DeviceConfig, scenario: Scenario, result: ScenarioResult
) -> Iterator[str]:
    """What to know before a compat result is taken for MQSim's to the nanosecond."""
    if result.mode is not Mode.COMPAT:
        return
    if any(flow.caching in _READ_CACHING for flow in scenario.flows):
        yield "read caching is near MQSim's, not equal to it [read_cache_near]"
    if result.device.map_writes:
        yield (
            "the mapping table cache evicted changed entries; from then on the run is near "
            "MQSim's, not equal to it [mapping_eviction_near]"
        )
    if device.preconditioning and not device.mapping_ideal:
        yield (
            "the mapping table cache holds other entries after preconditioning than MQSim's "
            "does, so the run is near, not equal [mapping_warm_up_near]"
        )
    if device.scheduler is Scheduler.PRIORITY_OUT_OF_ORDER and any(
        flow.priority in _WEIGHTED for flow in scenario.flows
    ):
        yield (
            "classes MEDIUM and LOW wait for higher ones here, where MQSim serves them by weight "
            "[priority_weights_near]"
        )
