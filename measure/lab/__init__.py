"""The virtual testbed: a slowed-down drive behind the real interfaces, with known truth."""
