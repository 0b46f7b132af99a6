"""Messages name what is wrong and the remedy, however long what they quote is."""

from __future__ import annotations

from iojoule.datasets.errors import MESSAGE_MAX, InputError


def test_a_message_that_quotes_a_long_input_keeps_its_beginning_and_its_end() -> None:
    said = InputError(f"file.csv, line 3: {'x' * 200_000!r} is no number; correct it").message
    assert len(said) < MESSAGE_MAX + 10
    assert said.startswith("file.csv, line 3: 'xxx")
    assert said.endswith("xxx' is no number; correct it")


def test_other_messages_stay() -> None:
    assert InputError("x" * MESSAGE_MAX).message == "x" * MESSAGE_MAX
