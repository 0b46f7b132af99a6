"""Where the embedded engine is not MQSim's equal in compat mode, and says so.

The reference runs show none of these differences; runs beside the program do. docs/simulator.md
lists them, with those that cannot be told from the inputs.
"""

from __future__ import annotations

from collections.abc import Iterator

from iojoule.sim import _core
from iojoule.sim.device import DeviceConfig, Scheduler
from iojoule.sim.result import Mode
from iojoule.sim.workload import AddressDistribution, CachingMode, Priority, Scenario

_READ_CACHING = (CachingMode.READ_CACHE, CachingMode.WRITE_READ_CACHE)
_WEIGHTED = (Priority.MEDIUM, Priority.LOW)
_NEARLY_ALL = 0.9
"""Seen: 0.83 of the working set is filled by replaying requests, 0.92 in another way."""


def near_but_not_equal(
    device: DeviceConfig, scenario: Scenario, told: _core.RunResult
) -> Iterator[str]:
    """What to know before a compat result is taken for MQSim's to the nanosecond."""
    if device.mode is not Mode.COMPAT:
        return
    if fatal := told.device.evictions_fatal_to_mqsim:
        yield (
            f"{fatal} changed pages left the data cache that MQSim cannot program: they were only "
            "ever read, or their flow does not cache writes; MQSim crashes at the first "
            "[read_cache_crashes]"
        )
    if len(scenario.flows) > 1 and any(flow.caching in _READ_CACHING for flow in scenario.flows):
        yield (
            "with several flows of which any caches reads, a run can differ from MQSim's by a few "
            "reads [read_cache_near]"
        )
    if device.plane_allocation == "DWCP" and any(
        len(flow.die_ids) < len(flow.plane_ids) for flow in scenario.on(device).flows
    ):
        yield (
            "with DWCP MQSim looks a flow's planes up among its dies, and past their end takes "
            "what its memory happens to hold; here that is plane 0 [planes_past_the_dies]"
        )
    hot_cold = AddressDistribution.RANDOM_HOTCOLD
    if (
        device.preconditioning
        and not device.mapping_ideal
        and (
            len(scenario.flows) > 1
            or any(flow.address_distribution is hot_cold for flow in scenario.flows)
        )
    ):
        yield (
            "with hot and cold regions, or flows that do not begin at a page, the mapping table "
            "cache holds other entries after preconditioning than MQSim's, so the run is near, not "
            "equal [mapping_warm_up_near]"
        )
    if device.preconditioning and any(
        flow.initial_occupancy_percent > _NEARLY_ALL * flow.working_set_percent
        for flow in scenario.flows
    ):
        yield (
            "with an Initial_Occupancy_Percentage of more than nine tenths of the working set "
            "MQSim preconditions in another way, which is not modelled [occupancy_near]"
        )
    if (
        device.scheduler is Scheduler.PRIORITY_OUT_OF_ORDER
        and device.gc_preemptible
        and any(flow.priority in _WEIGHTED and flow.writes for flow in scenario.flows)
    ):
        yield (
            "with Preemptible_GC_Enabled MQSim asks for programs of the classes MEDIUM and LOW in "
            "another rhythm; turn it off for a run that is equal [priority_preemptible_near]"
        )
