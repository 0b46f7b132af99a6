import pytest

from iojoule.datasets.errors import InputError
from iojoule.sim.formats import xml_tree
from iojoule.sim.formats.xml_tree import parse


def test_tags_text_and_lines() -> None:
    root = parse(b"<?xml version='1.0'?>\n<a>\n <b>1<!-- one -->2</b>\n <b/>\n</a>", "f")
    assert (root.tag, root.line) == ("a", 2)
    assert [(child.tag, child.line, child.text) for child in root.children] == [
        ("b", 3, "12"),
        ("b", 4, ""),
    ]


@pytest.mark.parametrize(
    "declaration",
    [
        '<!DOCTYPE a [<!ENTITY x "y">]>',
        '<!DOCTYPE a SYSTEM "file:///etc/passwd">',
        "<!DOCTYPE a>",
    ],
)
def test_document_types_and_entities_are_refused(declaration: str) -> None:
    with pytest.raises(InputError, match=r"f, line 1: declares a document type or entities"):
        parse(f"{declaration}<a/>".encode(), "f")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "no element found"),
        (b"<a>", "no element found"),
        (b"<a></b>", "mismatched tag"),
        (b"<a/><b/>", "junk after document element"),
        (b"\x00\x01", "not well-formed"),
        (b"<a>&x;</a>", "undefined entity"),
        (b"<?xml version='1.0' encoding='klingon'?><a/>", "encoding"),
        (b"<a>" + b"<b>" * 20, "deep"),
        (b"<a>" + b"<b/>" * 200_000 + b"</a>", "elements"),
        (b"<a>" + b"x" * 100_000 + b"</a>", "characters"),
    ],
)
def test_what_is_no_small_well_formed_xml_is_refused(content: bytes, said: str) -> None:
    with pytest.raises(InputError, match=f"f, line .*{said}"):
        parse(content, "f")


def test_a_file_of_blanks_between_tags_is_read() -> None:
    root = parse(b"<a>" + b"<b/>\n" * 50_000 + b"</a>", "f")
    assert len(root.children) == 50_000
    assert len(root.text) < xml_tree.MAX_TEXT_CHARACTERS


def test_utf_16_is_read() -> None:
    assert (
        parse('<?xml version="1.0" encoding="utf-16"?><a>é</a>'.encode("utf-16"), "f").text == "é"
    )


def test_files_are_checked_before_they_are_read(tmp_path, monkeypatch) -> None:
    with pytest.raises(InputError, match="is not a file"):
        xml_tree.read_bytes(tmp_path)
    with pytest.raises(InputError, match="is not a file"):
        xml_tree.read_bytes(tmp_path / "none")
    monkeypatch.setattr(xml_tree, "MAX_FILE_BYTES", 10)
    (tmp_path / "f").write_bytes(b"x" * 11)
    with pytest.raises(InputError, match="is larger than"):
        xml_tree.read_bytes(tmp_path / "f")
