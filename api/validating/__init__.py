"""Are recommendations kept? Random questions about simulated drives whose truth is known."""
