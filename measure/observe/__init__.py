"""A live drive, watched without touching it."""
