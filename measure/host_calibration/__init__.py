"""Finds what a host costs without a drive: loads of known shape, its own counters, one fit."""
