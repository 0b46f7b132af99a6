"""What the simulator's tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

REFERENCE = Path(__file__).resolve().parents[3] / "shared" / "mqsim"


@pytest.fixture(scope="session")
def reference() -> Path:
    """The folder of MQSim's reference runs, which stands beside the checkout or not at all."""
    if not REFERENCE.is_dir():
        pytest.skip("MQSim's reference runs are not beside this checkout: no ../shared/mqsim")
    return REFERENCE
