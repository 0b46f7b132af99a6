"""What a run needs set, on a host below a folder."""

from pathlib import Path

import pytest

from iojoule.datasets.schema import Configuration
from iojoule.measure.campaign.settings import of_run
from iojoule.measure.errors import HostStateError
from tests.api.acting.hosts import host


def test_a_limit_of_sleep_allows_and_forbids(tmp_path: Path) -> None:
    device = host(tmp_path, cpus=1).device
    wanted = Configuration(request_bytes=4096, cstate_limit=1)
    found = {change.command(value) for change, value in of_run(wanted, device, None)}
    folder = tmp_path / "devices/system/cpu/cpu0/cpuidle"
    assert found == {
        f"echo {off} > {folder}/state{state}/disable" for state, off in enumerate((0, 0, 1))
    }
    with pytest.raises(HostStateError, match="no cpuidle"):
        list(of_run(wanted, host(tmp_path / "virtual", cpus=0).device, None))
