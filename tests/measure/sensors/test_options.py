import pytest

from iojoule.measure.errors import SensorError
from iojoule.measure.sensors import KNOWN, open_sensor, parse


def test_name_address_and_options_are_told_apart() -> None:
    options = parse("redfish:https://bmc.example:8443,chassis=Self,verify=no")
    assert (options.name, options.address) == ("redfish", "https://bmc.example:8443")
    assert options.values == {"chassis": "Self", "verify": "no"}
    assert parse("rapl").address == ""
    assert parse("powersensor3:/dev/x,pairs=0+2").many("pairs", int) == [0, 2]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("powersensor", "did you mean powersensor3"),
        ("oscilloscope:/dev/x", "known: powersensor3"),
        ("powersensor3", "needs an address, such as powersensor3:/dev/ttyACM0"),
        ("rapl,fast", "key=value"),
        ("rapl,every=1,every=2", "at most once"),
        ("rapl,often=1", "no option 'often': it knows every"),
        ("rapl,every=often", "every=often is not what it must be"),
        ("rapl,every=-1", "above 0 s"),
        ("powersensor3:/dev/x,scope=drive", "scope is one of device, cpu, dram, system"),
        ("powersensor3:/dev/x,scope=host", "scope is one of device, cpu, dram, system"),
        ("powersensor3-host:/dev/x,scope=host", "scope is one of device, cpu, dram, system"),
        ("netio:http://a/b", "not a server's address"),
        ("netio:host:99999", "port"),
        ("redfish:https://bmc,verify=maybe", "yes or no"),
        ("netio:pdu,outlet=left", "outlet=left"),
    ],
)
def test_what_is_wrong_is_said(text: str, words: str) -> None:
    with pytest.raises(SensorError) as refused:
        open_sensor(text)
    assert words in refused.value.message


@pytest.mark.parametrize("name", KNOWN)
def test_every_known_sensor_opens_without_touching_anything(name: str) -> None:
    assert open_sensor(f"{name}:nowhere").name.startswith(name)
