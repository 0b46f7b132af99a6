"""Calibrating the simulator on measurements: timing by Gauss-Newton steps, energy by least squares.

parameters and energy declare what is fitted, observations selects what is compared, runs simulates
it, estimate finds the parameters and their uncertainty, calibrate joins these, judge computes
errors, residual learns what is left of them, tables and section write the result into a profile.
"""
