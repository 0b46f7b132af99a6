"""Recommends the NVMe SSD and host I/O settings that meet an SLA for the least energy.

The subpackages are the architecture: see CONTRIBUTING.md for what each one answers and what it may
import. Importing this package imports none of them.
"""

__version__ = "0.1.0"
