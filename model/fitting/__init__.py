"""Fitting a device profile from measurements and published figures."""
