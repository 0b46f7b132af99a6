"""The drive under test: what it is, what state it is in, and whether it may be touched."""
