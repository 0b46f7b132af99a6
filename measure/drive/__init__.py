"""The drive under test: identity, state, I/O counters, and safety checks."""
