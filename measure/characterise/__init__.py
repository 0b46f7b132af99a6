"""Characterisation experiments on a drive; see docs/characterise.md."""
