import re
from collections.abc import Callable
from xml.etree import ElementTree

import pytest

from iojoule.sim.device import DeviceConfig, HostInterface, Sharing
from iojoule.sim.findings import RefusedError, Severity
from iojoule.sim.formats.files import DriveFile
from iojoule.sim.formats.mqsim_inputs import write_device_xml

Read = Callable[..., DriveFile]


def test_a_drive_comes_back_as_it_was_written(drive_with: Read) -> None:
    drive = drive_with()
    assert drive.device == DeviceConfig()
    assert drive.findings == ()


def test_the_stock_spelling_is_written() -> None:
    text = write_device_xml(DeviceConfig())
    tags = {element.tag for element in ElementTree.fromstring(text).iter()}
    assert {"Data_Cache_DRAM_Data_Busrt_Size", "Page_Metadat_Capacity"} <= tags
    assert {"Preferred_suspend_erase_time_for_read", "Memory_Type", "Flash_Comm_Protocol"} <= tags
    assert text.isascii()


def test_the_log_that_tells_percentiles_can_be_asked_for() -> None:
    text = write_device_xml(DeviceConfig(), response_log_period_ns=0)
    assert "<Enable_ResponseTime_Logging>true<" in text
    assert "<ResponseTime_Logging_Period_Length>0<" in text


def test_words_are_read_in_any_case_with_a_note(drive_with: Read) -> None:
    drive = drive_with((">NVME<", ">Sata<"))
    assert drive.device.host_interface is HostInterface.SATA
    assert [(said.name, said.severity) for said in drive.findings] == [("word_case", Severity.NOTE)]


def test_a_word_that_mqsim_writes_but_does_not_read_is_understood(drive_with: Read) -> None:
    shared = "<CMT_Sharing_Mode>{}</CMT_Sharing_Mode>"
    drive = drive_with((shared.format("SHARED"), shared.format("EQUAL_SIZE_PARTITIONING")))
    assert drive.device.cmt_sharing is Sharing.EQUAL_PARTITIONING
    assert [said.name for said in drive.findings] == ["word_renamed"]


@pytest.mark.parametrize(
    ("old", "new", "name", "said"),
    [
        (">333<", ">333MT<", "not_a_number", "MQSim would read 333 and drop the rest"),
        (">333<", ">fast<", "not_a_number", "write the number without unit"),
        (">333<", "><", "not_a_number", "must be a whole number"),
        (">333<", ">3e2<", "not_a_number", "would read 3 and"),
        (">333<", ">-333<", "not_a_number", "would wrap it around"),
        (">333<", ">&#1635;<", "not_a_number", "whole number"),
        (">333<", ">333<x/><", "not_a_value", "holds other tags"),
        (">333<", ">99999999999999999999<", "out_of_range", "1 to 100000"),
        (">0.4<", ">nan<", "not_a_number", "must be a number"),
        (">0.4<", ">1e999<", "wrong_type", "finite"),
        (">0.4<", ">0x10<", "not_a_number", "would read 0 and"),
        (">NVME<", ">NVMe2<", "unknown_word", "did you mean NVME?"),
        (">NVME<", "> NVME<", "unknown_word", "without blanks"),
        (">CWDP<", ">CWDD<", "unknown_word", "order the letters"),
        (">FLASH<", ">PCM<", "unknown_word", "knows only FLASH"),
        ("Ideal_Mapping_Table>false<", "Ideal_Mapping_Table>0<", "not_a_boolean", "for true"),
        ("Ideal_Mapping_Table>false<", "Ideal_Mapping_Table> false<", "not_a_boolean", "blanks"),
        ("LSB>75000<", "LSB>2000000000000<", "out_of_range", "1000 s"),
        ("Execution_Parameter_Set", "Parameters", "wrong_root", "its ssdconfig.xml"),
    ],
)
def test_what_mqsim_would_misread_is_refused_with_the_place(
    drive_with: Read, old: str, new: str, name: str, said: str
) -> None:
    with pytest.raises(RefusedError, match=re.escape(said)) as caught:
        drive_with((old, new))
    assert caught.value.name == name
    assert re.search(r"ssd\.xml, line \d+, \w+: ", caught.value.message)


def test_the_message_names_the_line_and_the_tag(drive_with: Read) -> None:
    with pytest.raises(RefusedError, match=r"line 46, Channel_Transfer_Rate: is 'x'"):
        drive_with((">333<", ">x<"))


def test_missing_tags_take_mqsims_defaults_and_are_named(drive_with: Read) -> None:
    drive = drive_with(("<Seed>123</Seed>", ""), ("<Page_Capacity>8192</Page_Capacity>", ""))
    assert drive.device == DeviceConfig()
    assert [said.name for said in drive.findings] == ["tag_missing", "tag_missing"]
    assert "Seed = 123" in drive.findings[0].message
    assert "Page_Capacity = 8192" in drive.findings[1].message


def test_an_unknown_tag_is_ignored_and_the_closest_one_named(drive_with: Read) -> None:
    drive = drive_with(("<Seed>123<", "<Sead>1</Sead><Seed>123<"))
    assert [said.name for said in drive.findings] == ["tag_unknown"]
    assert "did you mean Seed?" in drive.findings[0].message


def test_the_last_of_two_tags_holds_as_in_mqsim(drive_with: Read) -> None:
    drive = drive_with(("<Seed>123<", "<Seed>1</Seed><Seed>7<"))
    assert drive.device.seed == 7
    assert [said.name for said in drive.findings] == ["tag_twice"]


@pytest.mark.parametrize(
    ("stock", "other"),
    [
        ("Page_Metadat_Capacity", "Page_Metadata_Capacity"),
        ("Data_Cache_DRAM_Data_Busrt_Size", "Data_Cache_DRAM_Data_Burst_Size"),
        ("Preferred_suspend_erase_time_for_read", "Prefered_suspend_erase_time_for_read"),
        ("Execution_Parameter_Set", "ExecParameterSet"),
        ("Host_Parameter_Set", "HostParameterSet"),
        ("Device_Parameter_Set", "DeviceParameterSet"),
        ("Flash_Parameter_Set", "FlashParameterSet"),
    ],
)
def test_names_of_forks_are_read_with_a_warning(drive_with: Read, stock: str, other: str) -> None:
    drive = drive_with((f"{stock}>", f"{other}>"))
    assert drive.device == DeviceConfig()
    assert [said.name for said in drive.findings] == ["tag_renamed"]
    assert f"{other}: is read as {stock}" in str(drive.findings[0])


def test_the_stock_spelling_has_the_last_word(drive_with: Read) -> None:
    end = "</Page_Metadat_Capacity>"
    drive = drive_with((end, f"{end}<Page_Metadata_Capacity>1</Page_Metadata_Capacity>"))
    assert drive.device.page_metadata_bytes == 448
    assert {said.name for said in drive.findings} == {"tag_renamed", "tag_twice"}


def test_a_response_log_that_is_not_written_is_said(drive_with: Read) -> None:
    drive = drive_with(("Logging>false<", "Logging>true<"))
    assert [said.name for said in drive.findings] == ["enable_responsetime_logging_ignored"]
