"""Shelly and Tasmota plugs: their documents from a server on the loopback, with their faults."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from iojoule.measure.errors import SensorError
from iojoule.measure.sensors import open_sensor
from iojoule.measure.sensors.protocol import Flag, Kind, Scope
from tests.measure.sensors.test_http_sensors import Web

SECOND, FIRST, TASMOTA = "/rpc/Switch.GetStatus?id=0", "/status", "/cm?cmnd=Status%208"


@pytest.fixture
def web() -> Iterator[Web]:
    server = Web()
    yield server
    server.close()


def second(watts: Any, watt_hours: float) -> dict[str, Any]:
    return {"id": 0, "output": True, "apower": watts, "aenergy": {"total": watt_hours}}


def first(watts: Any, watt_minutes: float, *, valid: bool = True) -> dict[str, Any]:
    return {"meters": [{"power": watts, "is_valid": valid, "total": watt_minutes}]}


def tasmota(watts: Any, kilowatt_hours: float) -> dict[str, Any]:
    return {"StatusSNS": {"Time": "x", "ENERGY": {"Power": watts, "Total": kilowatt_hours}}}


CASES = {
    "shelly 2": ("shelly", SECOND, second(42.5, 2.0), second(42.5, 1.0), 42.5, 7200.0),
    "shelly 1": ("shelly", FIRST, first(42.5, 120), first(42.5, 3), 42.5, 7200.0),
    "tasmota": ("tasmota", TASMOTA, tasmota(42, 0.002), tasmota(42, 0.001), 42.0, 7200.0),
}


@pytest.mark.parametrize("case", CASES)
def test_watts_and_joules_of_a_plug(web: Web, case: str) -> None:
    make, path, document, reset, watts, joules = CASES[case]
    web.documents["/shelly"] = {"gen": 2} if case == "shelly 2" else {"type": "SHPLG-S"}
    web.documents[path] = document
    sensor = open_sensor(f"{make}:{web.address},every=0.001")
    rails = sensor.probe().rails
    assert [rail.kind for rail in rails] == [Kind.POWER, Kind.ENERGY]
    assert {rail.scope for rail in rails} == {Scope.SYSTEM}
    assert [rail.counts for rail in rails] == [True, False]
    sensor.start()
    chunk = sensor.read(1.0)
    assert chunk.values[0].tolist() == pytest.approx([watts, joules])
    assert sensor.read(1.0).flags[0] & Flag.STALE
    # a plug that restarted counts from another value: named, then used again
    web.documents[path] = reset
    assert len(sensor.read(1.0)) == 0
    chunk = sensor.read(1.0)
    assert chunk.flags[0] & Flag.GAP
    assert len(sensor.stop().errors) == 1
    assert {method for method, _, _ in web.asked} == {"GET"}


@pytest.mark.parametrize(
    ("make", "path", "document"),
    [
        ("shelly", SECOND, {"output": True}),
        ("shelly", SECOND, second(None, 1)),
        ("shelly", SECOND, second("much", 1)),
        ("shelly", SECOND, second(float("nan"), 1)),
        ("shelly", SECOND, [1]),
        ("shelly", SECOND, b"<html>"),
        ("tasmota", TASMOTA, {"StatusSNS": {"Time": "x"}}),
        ("tasmota", TASMOTA, tasmota([1, 2], 1)),
        ("tasmota", TASMOTA, {"WARNING": "Need user=<username>&password=<password>"}),
        ("tasmota", "/other", {}),
    ],
)
def test_a_plug_that_measures_nothing(web: Web, make: str, path: str, document: Any) -> None:
    web.documents["/shelly"] = {"gen": 3}
    web.documents[path] = document
    with pytest.raises(SensorError):
        open_sensor(f"{make}:{web.address}").probe()


def test_an_invalid_reading_of_the_first_generation(web: Web) -> None:
    web.documents["/shelly"] = {"type": "SHPLG-S"}
    web.documents[FIRST] = first(1.0, 1, valid=False)
    with pytest.raises(SensorError):
        open_sensor(f"shelly:{web.address}").probe()


def test_one_channel_of_several(web: Web) -> None:
    web.documents[TASMOTA] = tasmota([3, 4], 1)
    sensor = open_sensor(f"tasmota:{web.address},channel=2,every=0.001")
    sensor.start()
    assert sensor.read(1.0).values[0, 0] == 4.0
    sensor.stop()


def test_three_questions_without_an_answer_fail(web: Web) -> None:
    web.documents[TASMOTA] = tasmota(3, 1)
    sensor = open_sensor(f"tasmota:{web.address},every=0.001")
    sensor.start()
    assert len(sensor.read(1.0)) == 1
    del web.documents[TASMOTA]
    assert [len(sensor.read(1.0)) for _ in range(2)] == [0, 0]
    with pytest.raises(SensorError):
        sensor.read(1.0)
    assert sensor.stop().lost == 3
