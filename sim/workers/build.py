"""Which build of iojoule computes here: another may differ in the last digit, and must not join."""

from __future__ import annotations

import hashlib
import math
import platform
from functools import cache
from importlib.metadata import version
from pathlib import Path

import numpy as np

import iojoule

LIBRARIES = ("numpy", "scipy", "scikit-learn")
"""Whose results go into ours."""

PACKAGES = ("datasets", "model", "sim", "recommender")
"""What computes; the rest asks and answers."""


@cache
def build() -> dict[str, str]:
    """What must be the same wherever parts of one answer are computed, by what it is called.

    The sources and the compiled core go in by their content, since a version names many states of
    a checkout; processors go in by what they make of a few thousand numbers, since libraries take
    other instructions on other processors.
    """
    return {
        "iojoule": iojoule.__version__,
        "sources": _hash(".py"),
        "compiled core": _hash(".so"),
        "Python": platform.python_version(),
        **{name: version(name) for name in LIBRARIES},
        "arithmetic": _arithmetic(),
    }


def _hash(suffix: str) -> str:
    told = hashlib.sha256()
    root = Path(iojoule.__file__).parent
    for package in PACKAGES:
        base = (root / package).resolve()
        for path in sorted(base.rglob(f"*{suffix}")):
            told.update(f"{package}/{path.relative_to(base)}\n".encode())
            told.update(path.read_bytes())
    return told.hexdigest()[:12]


def _arithmetic() -> str:
    x = np.geomspace(1e-3, 1e3, 4096)
    told = hashlib.sha256()
    for made in (np.exp(-x), np.log(x), x**0.3, np.sin(x), np.array(x.sum()), np.outer(x, x) @ x):
        told.update(made.tobytes())
    told.update(np.array([f(-v) for v in x for f in (math.exp, math.expm1, math.cos)]).tobytes())
    return told.hexdigest()[:12]
