"""However often somebody presses Ctrl-C, what stands in a `finally` runs to its end."""

import signal

import pytest

from iojoule.measure.host.guard import SIGNALS, Interrupted, signal_handler


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_interrupts_and_later_ones_do_not(number: signal.Signals) -> None:
    said: list[str] = []
    steps: list[str] = []

    def campaign() -> None:
        try:
            signal.raise_signal(number)
            steps.append("not reached")
        finally:
            for other in SIGNALS:
                signal.raise_signal(other)
            steps.append("restored")

    with pytest.raises(Interrupted) as caught, signal_handler(said.append):
        campaign()
    assert caught.value.number == number
    assert steps == ["restored"]
    assert len(said) == len(SIGNALS)


def test_a_closed_gate_lets_nothing_through() -> None:
    said: list[str] = []
    with signal_handler(said.append) as one:
        one.close()
        signal.raise_signal(signal.SIGINT)
    assert "restoring" in said[0]


def test_the_handlers_before_are_back_afterwards() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with signal_handler(lambda _: None):
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before
