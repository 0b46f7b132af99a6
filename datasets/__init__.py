"""What a measurement is, where facts about a drive live, and what they say."""
