"""Classes of requests take turns as they do in MQSim; what it did was recorded."""

import pytest

from iojoule.sim.device import Scheduler
from iojoule.sim.engines import RunOptions
from iojoule.sim.engines.embedded import EmbeddedEngine
from iojoule.sim.workload import CachingMode, Priority, Scenario
from tests.sim.recordings import ONE_CHIP, READS

ONE_PLANE = ONE_CHIP.model_copy(
    update={
        "planes_per_die": 1,
        "pages_per_block": 64,
        "scheduler": Scheduler.PRIORITY_OUT_OF_ORDER,
    }
)
CLASSES = {each.value[0].upper(): each for each in Priority}

SERVED = {
    "L": "LLLLLLLLLLLLLLLLLLLLLLLLLLLLLL",
    "HM": "MHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHMMMMMMMMMMMMMMMMMMMMMMMMMMMMM",
    "HL": "LLHHHHLHHHHLHHHHLHHHHLHHHHLHHHHLHHHHLHH",
    "ML": "LMMLMMLMMLMMLMMLMMLMMLMMLMMLMMLMMLMMLMMLMMLMM",
    "UL": "LUUUUUUUUUUUUUUUUUUUUUUUUUUUUUU",
    "HML": "LLHMMHHHLHMMHHHLHMMHHHLHMMHHHLHMMHHHLHMMHHHLHMMHHHLHMMHMMLMMLMMLMMLMMLMMLMM",
    "UML": "LUUUUUUUUUUUUUUUUUUUUUUUUUUUUUULMMLMMLMMLMMLMMLMMLMMLMMLMMLMMLMMLMMLMMLMMLMM",
}
"""Classes of the flows, each with 30 reads at once -> those of the completions in MQSim. Its flows
start from the last to the first; a request of class LOW that is not here was never served."""


@pytest.mark.parametrize("classes", SERVED)
def test_classes_take_turns_by_weight_and_low_ones_strand(classes: str) -> None:
    flows = tuple(
        READS.model_copy(
            update={
                "queue_depth": 30,
                "total_requests": 30,
                "seed": 5 + number,
                "caching": CachingMode.TURNED_OFF,
                "priority": CLASSES[each],
            }
        )
        for number, each in enumerate(classes)
    )
    result = EmbeddedEngine().run(ONE_PLANE, Scenario(flows=flows), RunOptions(series_step_ns=1000))
    served = sorted(
        (microsecond, each)
        for each, flow in zip(classes, result.flows, strict=True)
        if flow.series is not None
        for microsecond, count in enumerate(flow.series.serviced_read)
        for _ in range(count)
    )
    assert "".join(each for _, each in served) == SERVED[classes]
    stranded = 30 * len(classes) - len(served)
    assert any("requests_lost" in warning for warning in result.warnings) == (stranded > 0)


@pytest.mark.parametrize(
    ("priority", "served", "last_us"), [("low", 10, 5909), ("high", 100, 47518)]
)
def test_what_is_read_for_a_partial_write_is_of_class_high(
    priority: str, served: int, last_us: int
) -> None:
    # what MQSim was seen to serve, and until when
    flow = READS.model_copy(
        update={
            "priority": Priority(priority),
            "read_percent": 50,
            "size_mean_sectors": 3,
            "aligned": False,
            "working_set_percent": 1,
            "queue_depth": 8,
            "total_requests": 100,
            "caching": CachingMode.TURNED_OFF,
        }
    )
    (found,) = EmbeddedEngine().run(ONE_PLANE, Scenario(flows=(flow,))).flows
    assert (found.serviced, found.flow_last_completion_ns // 1000) == (served, last_us)
