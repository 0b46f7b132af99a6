"""Questions asked of a drive whose answers no data sheet gives: see docs/characterise.md."""
