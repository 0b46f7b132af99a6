"""Host profiles from loads of known shape and power counters, without a drive."""
