"""The host of the drive: facts, changes to it, and how they are restored."""
