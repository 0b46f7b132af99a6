"""POST /what-if: what changes if something changes."""
