"""Results of the simulator as tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from iojoule.api.cli import console
from iojoule.api.simulations import Plan
from iojoule.api.words.quantities import quantity
from iojoule.sim.result import FlowResult, ScenarioResult

FLOW_TITLES = (
    "flow", "serviced", "reads", "writes", "IOPS", "bandwidth", "mean", "p50", "p99", "p99.9",
    "max",
)  # fmt: skip
DEVICE_TITLES = (
    "simulated", "pages read", "programmed", "blocks erased", "write ampl.", "mapping hits",
    "collections",
)  # fmt: skip
ENERGY_TITLES = ("mean power", "energy")
RUN_TITLES = ("user time", "events/s")


def emit_results(plan: Plan, results: Sequence[ScenarioResult]) -> None:
    """Write what the flows got and what the drives did."""
    labels = _labels(plan)
    powered = any(result.device.energy_joules is not None for result in results)
    energy = ENERGY_TITLES if powered else ()
    flows = console.new_table([*labels.values(), *FLOW_TITLES], title="Flows")
    titles = [*labels.values(), *DEVICE_TITLES, *energy, *RUN_TITLES]
    drives = console.new_table(titles, title="Drive")
    for job, result in zip(plan.jobs, results, strict=True):
        own = [_label(job.labels.get(name)) for name in labels]
        for flow in result.flows:
            flows.add_row(*own, *_flow(flow))
        drives.add_row(*own, *_drive(result), *(_energy(result) if powered else ()), *_run(result))
    console.emit_table(
        flows,
        "",
        drives,
        "",
        "Latencies are device response times. Rates are over the time to the last completion.",
    )


def _labels(plan: Plan) -> dict[str, str]:
    """Which labels tell the runs apart, and the headings of their columns."""
    headings = {"ssd": "drive", "workload": "workload", "varied": "varied", "scenario": "scenario"}
    return {
        name: heading
        for name, heading in headings.items()
        if len({_label(job.labels.get(name)) for job in plan.jobs}) > 1
    }


def _label(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} = {_label(each)}" for name, each in value.items())
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def _flow(flow: FlowResult) -> Iterator[str]:
    yield flow.name.removeprefix("Host.IO_Flow.")
    yield from (_count(flow.serviced), _count(flow.serviced_read), _count(flow.serviced_write))
    yield quantity("iops", flow.iops).removesuffix("IOPS").strip()
    yield quantity("bytes_per_second", flow.bandwidth_bytes_per_second)
    for latency in (flow.drt_ns, flow.p50_ns, flow.p99_ns, flow.p999_ns, flow.max_drt_ns):
        yield quantity("_ns", latency)


def _drive(result: ScenarioResult) -> Iterator[str]:
    device = result.device
    yield quantity("_ns", result.flows[0].sim_end_ns)
    for count in (device.pages_read, device.pages_programmed, device.blocks_erased):
        yield _count(count)
    amplification = device.write_amplification
    yield "-" if amplification is None else f"{amplification:.2f}"
    queries = device.cmt_queries
    yield f"{100 * device.cmt_hits / queries:.1f} %" if queries else "-"
    yield _count(device.gc_exec)


def _energy(result: ScenarioResult) -> Iterator[str]:
    yield quantity("watts", result.device.power_watts_mean)
    yield quantity("joules", result.device.energy_joules_total)


def _run(result: ScenarioResult) -> Iterator[str]:
    yield quantity("seconds", result.run_user_seconds)
    spent = result.run_user_seconds
    rate = result.events / spent if result.events and spent else None
    yield quantity("iops", rate).removesuffix("IOPS")


def _count(count: int | None) -> str:
    return "-" if count is None else str(count)
