"""The questions: one module each, listed in `registry.py` of the package above."""
