"""Netio and Redfish against servers on the loopback."""

import base64
import json
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from iojoule.measure.errors import SensorError
from iojoule.measure.sensors import http_json, open_sensor
from iojoule.measure.sensors.protocol import Flag, Kind, Scope


class Web:
    """Documents by path; what was asked, and how."""

    def __init__(self) -> None:
        self.documents: dict[str, Any] = {}
        self.asked: list[tuple[str, str, str | None]] = []
        self.user: str | None = None
        self.seconds_between_bytes = 0.0
        web = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                said = self.headers.get("Authorization")
                web.asked.append((self.command, self.path, said))
                wanted = web.user and "Basic " + base64.b64encode(web.user.encode()).decode()
                document = web.documents.get(self.path)
                status = 401 if wanted and said != wanted else 200 if document is not None else 404
                raw = document if isinstance(document, bytes) else json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                if not web.seconds_between_bytes:
                    self.wfile.write(raw)
                    return
                with suppress(OSError):
                    for byte in raw:
                        self.wfile.write(bytes([byte]))
                        time.sleep(web.seconds_between_bytes)

            do_GET = do_POST = do_PUT = answer  # noqa: N815 - the names that the library calls

            def log_message(self, *_: object) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.address = f"127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def web() -> Iterator[Web]:
    server = Web()
    yield server
    server.close()


def netio(load: int, energy: int = 1000) -> dict[str, Any]:
    return {
        "Agent": {"Model": "PowerPDU 4C", "Version": "3.4.0"},
        "GlobalMeasure": {"TotalLoad": load + 7, "TotalCurrent": 500, "TotalEnergy": energy + 1},
        "Outputs": [
            {"ID": 1, "Name": "server", "Load": load, "Current": 470, "Energy": energy},
            {"ID": 2, "Name": "switch", "Load": 7, "Current": 30, "Energy": 1},
        ],
    }


def test_netio_reads_one_outlet_or_all_and_only_ever_reads(web: Web) -> None:
    web.documents["/netio.json"] = netio(105)
    total = open_sensor(f"netio:{web.address}")
    outlet = open_sensor(f"netio:{web.address},outlet=1,every=0.001")
    for sensor, watts, joules in ((total, 112, 3_603_600), (outlet, 105, 3_600_000)):
        sensor.start()
        chunk = sensor.read(1.0)
        assert chunk.values[0] == pytest.approx([watts, 0.5 if sensor is total else 0.47, joules])
        sensor.stop()
    rails = {rail.name: rail for rail in outlet.probe().rails}
    assert (rails["wall-load"].scope, rails["wall-load"].kind) == (Scope.SYSTEM, Kind.POWER)
    assert not rails["wall-energy"].counts  # the same watts once more
    assert outlet.probe().identity["Model"] == "PowerPDU 4C"
    assert {method for method, _, _ in web.asked} == {"GET"}


def test_netio_repeating_itself_is_stale(web: Web) -> None:
    web.documents["/netio.json"] = netio(105)
    sensor = open_sensor(f"netio:{web.address},outlet=1,every=0.001")
    sensor.start()
    flags = [int(sensor.read(1.0).flags[0]) for _ in range(2)]
    web.documents["/netio.json"] = netio(106)
    flags.append(int(sensor.read(1.0).flags[0]))
    sensor.stop()
    assert [bool(each & Flag.STALE) for each in flags] == [False, True, False]


def test_netio_takes_the_user_from_the_environment(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    web.documents["/netio.json"], web.user = netio(105), "netio:secret"
    with pytest.raises(SensorError, match="IOJOULE_NETIO_USER and IOJOULE_NETIO_PASSWORD"):
        open_sensor(f"netio:{web.address}").probe()
    monkeypatch.setenv("IOJOULE_NETIO_USER", "netio")
    monkeypatch.setenv("IOJOULE_NETIO_PASSWORD", "secret")
    open_sensor(f"netio:{web.address}").probe()


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (None, "status 404"),
        (b"<html>", "something else than JSON"),
        ([1, 2], "not what a metered Netio says"),
        ({"GlobalMeasure": {}}, "does not measure power"),
    ],
)
def test_what_is_no_netio_is_named(web: Web, document: Any, words: str) -> None:
    if document is not None:
        web.documents["/netio.json"] = document
    with pytest.raises(SensorError, match=words):
        open_sensor(f"netio:{web.address}").probe()


def test_an_outlet_that_is_not_there(web: Web) -> None:
    web.documents["/netio.json"] = netio(105)
    with pytest.raises(SensorError, match="has no outlet 9, only 1, 2"):
        open_sensor(f"netio:{web.address},outlet=9").probe()


def test_a_device_that_goes_away_is_an_error(web: Web) -> None:
    web.documents["/netio.json"] = netio(105)
    sensor = open_sensor(f"netio:{web.address},every=0.001")
    sensor.start()
    assert len(sensor.read(1.0)) == 1
    del web.documents["/netio.json"]
    assert [len(sensor.read(1.0)) for _ in range(2)] == [0, 0]
    with pytest.raises(SensorError, match="404"):
        sensor.read(1.0)
    delivery = sensor.stop()
    assert delivery.samples == 1
    assert delivery.lost >= 3


def test_nobody_there() -> None:
    with pytest.raises(SensorError, match="does not answer"):
        open_sensor("netio:127.0.0.1:1").probe()


CHASSIS = {"Members": [{"@odata.id": "/redfish/v1/Chassis/Self"}]}


@pytest.mark.parametrize(
    ("path", "document"),
    [
        ("/redfish/v1/Chassis/Self/Power", {"PowerControl": [{"PowerConsumedWatts": 344}]}),
        ("/redfish/v1/Chassis/Self/EnvironmentMetrics", {"PowerWatts": {"Reading": 344.0}}),
    ],
)
def test_redfish_finds_either_document(web: Web, path: str, document: Any) -> None:
    web.documents = {"/redfish/v1/Chassis": CHASSIS, path: document}
    for text in (f"redfish:http://{web.address}", f"redfish:http://{web.address},chassis=Self"):
        sensor = open_sensor(text)
        assert sensor.probe().identity == {"document": path}
        sensor.start()
        assert sensor.read(1.0).values.tolist() == [[344.0]]
        sensor.stop()
    assert {method for method, _, _ in web.asked} == {"GET"}


@pytest.mark.parametrize(
    "document", [{"PowerControl": []}, {"PowerControl": [{"PowerConsumedWatts": None}]}, [], "x"]
)
def test_redfish_without_power_is_named(web: Web, document: Any) -> None:
    web.documents = {"/redfish/v1/Chassis": CHASSIS, "/redfish/v1/Chassis/Self/Power": document}
    with pytest.raises(SensorError, match="reports no system power"):
        open_sensor(f"redfish:http://{web.address}").probe()


def test_an_answer_that_comes_byte_by_byte_is_none(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_json, "TIMEOUT_SECONDS", 0.3)
    web.documents["/netio.json"] = netio(40)
    web.seconds_between_bytes = 0.01
    with pytest.raises(SensorError, match="its answer takes longer"):
        open_sensor(f"netio:{web.address}").probe()
