"""What a drive does at a configuration that nobody measured, and how sure that is.

`recipe` and measurements -> `fit` -> profile -> `evaluate` -> prediction; `prior` builds the
profile of a drive that nobody measured.
"""
