"""Public measurements and MQSim's reference runs, which stand beside the checkout or not at all."""

from pathlib import Path

import pytest

_BESIDE = Path(__file__).resolve().parents[2] / "shared"
PUBLIC_DATA = _BESIDE / "data"
MQSIM_RUNS = _BESIDE / "mqsim"
TRACES = PUBLIC_DATA / "traces"
needs_public_data = pytest.mark.skipif(
    not PUBLIC_DATA.is_dir(), reason="the public measurements (../shared/data) are not here"
)
needs_mqsim_runs = pytest.mark.skipif(
    not MQSIM_RUNS.is_dir(), reason="MQSim's reference runs (../shared/mqsim) are not here"
)
needs_traces = pytest.mark.skipif(
    not TRACES.is_dir(), reason="the public traces (../shared/data/traces) are not here"
)
