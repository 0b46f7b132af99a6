"""A folder of reference runs, as `iojoule sim verify` reads it, of the simulator itself."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

from iojoule.sim.device import DeviceConfig
from iojoule.sim.engines.embedded import EmbeddedEngine
from iojoule.sim.formats.mqsim_inputs import write_device_xml, write_workload_xml
from iojoule.sim.verify import COLUMNS
from iojoule.sim.workload import FlowConfig, Scenario

DEVICE = DeviceConfig(preconditioning=False, gc_preemptible=False, mapping_ideal=True)
SCENARIO = Scenario(flows=(FlowConfig(stop_ns=1_000_000, queue_depth=4),))


def write_case(folder: Path, name: str) -> None:
    """Write the input files of a case."""
    inputs = folder / "cases"
    inputs.mkdir(exist_ok=True)
    (inputs / f"{name}.ssd.xml").write_text(write_device_xml(DEVICE), encoding="ascii")
    (inputs / f"{name}.wl.xml").write_text(write_workload_xml([SCENARIO], DEVICE), encoding="ascii")


def write_table(folder: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Write the table of expected results, one row a flow."""
    with (folder / "golden.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def write_reference(folder: Path, groups: Mapping[str, str]) -> None:
    """Write equal cases: name -> group."""
    result = EmbeddedEngine().run(DEVICE, SCENARIO)
    values = {name: reading(result, result.flows[0]) for name, reading in COLUMNS.items()}
    for name in groups:
        write_case(folder, name)
    write_table(
        folder,
        [
            {"case": name, "group": group, "mqsim_user_s": 1.0, **values}
            for name, group in groups.items()
        ],
    )


def change_first_row(folder: Path, **values: object) -> None:
    """Write the table again with its first row alone, changed."""
    with (folder / "golden.csv").open(encoding="utf-8", newline="") as file:
        row = next(csv.DictReader(file))
    write_table(folder, [{**row, **values}])
