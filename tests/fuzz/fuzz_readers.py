"""Coverage-guided fuzzing of the readers of drives and workloads, XML and TOML.

    pip install atheris
    python tests/fuzz/fuzz_readers.py -max_total_time=600 build/fuzz/readers

The first byte of an input chooses the form. Whatever the rest is, a reader takes it or raises an
IojouleError; libFuzzer counts the inputs and keeps the interesting ones in the folder.
"""

import contextlib
import sys
from collections.abc import Callable
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["iojoule.sim", "tomllib"]):
    from iojoule.sim.formats.mqsim_inputs import (
        read_device_xml,
        read_workload_xml,
        write_device_xml,
        write_workload_xml,
    )
    from iojoule.sim.formats.toml import (
        Drive,
        parse_toml,
        read_drive_toml,
        read_workload_toml,
        write_drive_toml,
        write_workload_toml,
    )
    from iojoule.sim.formats.xml_tree import parse

from iojoule.datasets.errors import IojouleError
from iojoule.sim.device import DeviceConfig
from iojoule.sim.findings import Finding
from iojoule.sim.workload import FlowConfig, FlowKind, Scenario


def _tell(finding: Finding) -> None:
    assert str(finding)


FORMS: list[Callable[[bytes], object]] = [
    lambda content: read_device_xml(parse(content, "f"), "f", _tell),
    lambda content: read_workload_xml(parse(content, "f"), "f", _tell),
    lambda content: read_drive_toml(parse_toml(content, "f"), "f", _tell),
    lambda content: read_workload_toml(parse_toml(content, "f"), "f", _tell),
]


def read(content: bytes) -> None:
    """Read an input in the form that its first byte chooses."""
    if not content:
        return
    with contextlib.suppress(IojouleError):
        FORMS[content[0] % len(FORMS)](content[1:])


def plant_seeds(folder: Path) -> None:
    """Put one good file of each form into an empty corpus."""
    folder.mkdir(parents=True, exist_ok=True)
    flows = (FlowConfig(stop_ns=1), FlowConfig(kind=FlowKind.TRACE, trace_path="t"))
    good = [
        write_device_xml(DeviceConfig()),
        write_workload_xml([Scenario(flows=flows)], DeviceConfig()),
        write_drive_toml(Drive(DeviceConfig())),
        write_workload_toml([Scenario(flows=flows)]),
    ]
    for number, text in enumerate(good):
        (folder / f"seed{number}").write_bytes(bytes([number]) + text.encode())


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        if not argument.startswith("-"):
            plant_seeds(Path(argument))
    atheris.Setup(sys.argv, read)
    atheris.Fuzz()
