"""Files that are nearly right: what a reader must take or refuse, but never fall over."""

from __future__ import annotations

import tomlkit
from hypothesis import strategies as st

from iojoule.sim.device import SECTIONS, DeviceConfig, section_fields
from iojoule.sim.formats.mqsim_inputs import write_device_xml, write_workload_xml
from iojoule.sim.formats.mqsim_tags import (
    DEVICE_TAGS,
    FLASH_TAGS,
    HOST_TAGS,
    SYNTHETIC_TAGS,
    TRACE_TAGS,
)
from iojoule.sim.workload import FlowConfig, FlowKind, Scenario

TAGS = [tag.name for tag in (*HOST_TAGS, *DEVICE_TAGS, *FLASH_TAGS, *SYNTHETIC_TAGS, *TRACE_TAGS)]
SETS = [
    "Execution_Parameter_Set",
    "Host_Parameter_Set",
    "Device_Parameter_Set",
    "Flash_Parameter_Set",
    "MQSim_IO_Scenarios",
    "IO_Scenario",
    "IO_Flow_Parameter_Set_Synthetic",
    "IO_Flow_Parameter_Set_Trace_Based",
    "SyntheticFlowParamSet",
]
DRIVE = write_device_xml(DeviceConfig())
WORKLOAD = write_workload_xml(
    [Scenario(flows=(FlowConfig(stop_ns=1), FlowConfig(kind=FlowKind.TRACE, trace_path="t")))],
    DeviceConfig(),
)

values = st.one_of(
    st.integers().map(str),
    st.integers(0, 10).map(str),
    st.floats().map(str),
    st.sampled_from(
        ["true", "FALSE", "NVME", "SLC", "0,1", "", " 4", "4MT", "-1", "1e9", "NORMAL"]
    ),
    st.text(max_size=20),
)


@st.composite
def edited(draw: st.DrawFn, text: str) -> bytes:
    """The text with some values, tags or pieces replaced."""
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 40)))
        piece = draw(st.one_of(values, st.sampled_from(TAGS + SETS), st.just("</"), st.just("<!")))
        if draw(st.booleans()):  # a whole value
            start = text.find(">", start) + 1
            end = max(start, text.find("<", start))
        text = text[:start] + piece + text[end:]
    return text.encode("utf-8", "surrogatepass")


@st.composite
def trees(draw: st.DrawFn) -> bytes:
    """Elements of known names in any nesting."""
    names = st.sampled_from(TAGS + SETS)
    leaf = st.builds(lambda tag, value: (tag, value), names, values)
    tree = st.recursive(leaf, lambda inner: st.tuples(names, st.lists(inner, max_size=6)))
    root = (draw(st.sampled_from(SETS)), draw(st.lists(tree, max_size=8)))
    return _xml(root).encode("utf-8", "surrogatepass")


def _xml(node: tuple[str, object]) -> str:
    tag, inner = node
    if isinstance(inner, list):
        return f"<{tag}>{''.join(_xml(each) for each in inner)}</{tag}>"
    text = str(inner).replace("&", "&amp;").replace("<", "&lt;")
    return f"<{tag}>{text}</{tag}>"


_scalars = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.integers(0, 100),
    st.floats(),
    st.booleans(),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=10),
    st.dates(),
    st.sampled_from(["nvme", "slc", "trace", "synthetic", "physical", "io_uring", "bandwidth"]),
)
_fields = sorted(
    {
        *(name for section in SECTIONS for name in section_fields(section)),
        *FlowConfig.model_fields,
        *SECTIONS,
        "flows",
        "scenarios",
        "mode",
        "physical",
        "sources",
        "title",
        "nand",
        "power",
        "states",
        "energy",
        "page_read_joules",
        "initial_state",
        "commands",
        "engine",
        "completion",
        "max_power_watts",
    }
)
_tables = st.recursive(
    _scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.sampled_from(_fields), inner, max_size=6)
    ),
)


@st.composite
def toml_tables(draw: st.DrawFn) -> bytes:
    """TOML whose keys are those of drives and workloads."""
    tables = draw(st.dictionaries(st.sampled_from(_fields), _tables, max_size=8))
    return tomlkit.dumps({"schema_version": 1, **tables}).encode("utf-8")
