"""From observations to numbers with intervals; pure functions, known answers in the tests."""
