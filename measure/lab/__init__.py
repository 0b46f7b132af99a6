"""The virtual testbed: a drive in slow motion behind the real interfaces, whose truth is known."""
