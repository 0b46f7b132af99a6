"""A real Prometheus scrapes a real exporter, and the dashboard's queries find what they ask for."""

import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.meter.test_cpu import HostWithRapl

IOJOULE = str(Path(sys.executable).parent / "iojoule")
CONFIGURATION = """\
global: {{scrape_interval: 1s, scrape_timeout: 1s}}
scrape_configs:
  - job_name: iojoule
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""

pytestmark = pytest.mark.slow


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class Monitored:
    """A host of a test's own, the exporter that looks at it, and Prometheus that scrapes it."""

    def __init__(self, bench: HostWithRapl, prometheus: str) -> None:
        self.bench, self.prometheus = bench, prometheus

    def work(self, seconds: float) -> None:
        """Let two groups read and write for a while."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.bench.group("a", reads=400)
            self.bench.group("b", writes=100, size=65536)
            self.bench.spend(0.02, 0.02, seconds=0.2)
            time.sleep(0.2)

    def ask(self, query: str) -> list[dict[str, object]]:
        answer = httpx.get(f"{self.prometheus}/api/v1/query", params={"query": query}).json()
        assert answer["status"] == "success", answer
        return list(answer["data"]["result"])

    def number(self, query: str) -> float:
        """The answer, once there is one: a missed scrape ends every series until the next."""
        for _ in range(30):
            if found := self.ask(query):
                return float(found[0]["value"][1])  # type: ignore[index]
            self.work(1)
        raise AssertionError(query)


@pytest.fixture(scope="module")
def monitored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Monitored]:
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("prometheus is not installed: apt-get install prometheus")
    root = tmp_path_factory.mktemp("monitored")
    bench = HostWithRapl(root / "host")
    port, own = free_port(), free_port()
    (root / "prometheus.yml").write_text(CONFIGURATION.format(port=port))
    exporter = subprocess.Popen(
        [IOJOULE, "exporter", "--port", str(port), "--proc", bench.host.proc,
         "--sysfs", bench.host.sysfs, "--cgroups", bench.groups]
    )  # fmt: skip
    prometheus = subprocess.Popen(
        [program, f"--config.file={root / 'prometheus.yml'}", f"--storage.tsdb.path={root / 'db'}",
         f"--web.listen-address=127.0.0.1:{own}", "--log.level=error"]
    )  # fmt: skip
    try:
        made = Monitored(bench, f"http://127.0.0.1:{own}")
        until = time.monotonic() + 60
        while True:
            try:
                ready = httpx.get(f"{made.prometheus}/-/ready").is_success
                if ready and made.ask('up{job="iojoule"} == 1'):
                    break
            except httpx.TransportError:
                pass
            assert time.monotonic() < until, "Prometheus does not scrape"
            time.sleep(0.5)
        made.work(15)
        yield made
    finally:
        for process in (exporter, prometheus):
            process.terminate()
            process.wait()


def test_every_query_of_the_dashboard_is_answered(monitored: Monitored, root: Path) -> None:
    board = json.loads((root / "deploy" / "grafana-drives.json").read_text())
    queries = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    # no node_exporter runs here, and nothing makes this drive's intervals less certain
    without = (
        "sum by (device) (rate(iojoule_device_energy_joules_total{", "iojoule_device_reason{"
    )  # fmt: skip
    empty = [query for query in queries if not monitored.ask(filled(query))]
    for _ in range(6):  # scrapes are missed where the machine is busy
        empty = [query for query in empty if not query.startswith(without)]
        if not empty:
            break
        monitored.work(5)
        empty = [query for query in empty if not monitored.ask(filled(query))]
    assert empty == []


def filled(query: str) -> str:
    """What the dashboard asks, with its variables."""
    for name, value in (("__rate_interval", "10s"), ("instance", ".+"), ("device", ".+")):
        query = query.replace(f"${name}", value)
    return query


def test_the_rate_of_joules_is_watts(monitored: Monitored) -> None:
    monitored.work(5)
    ratio = monitored.number(
        "rate(iojoule_device_energy_joules_total[10s]) / ignoring (serial) "
        "avg_over_time(iojoule_device_power_watts[10s])"
    )
    assert ratio == pytest.approx(1.0, abs=0.25)
    # of one scrape: a rate leaves out what a group took before its first sample
    groups = monitored.number(
        "sum(iojoule_cgroup_energy_joules_total) / sum(iojoule_device_energy_joules_total)"
    )
    assert groups == pytest.approx(1.0, abs=1e-6)
