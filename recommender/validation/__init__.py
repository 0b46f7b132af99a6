"""Checks of answers against what must hold whatever the model says."""
