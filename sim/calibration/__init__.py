"""Calibrating the simulator on measurements: timing by history matching, energy by least squares.

parameters and energy say what may be fitted, gate and points what is compared with what, runs
simulates it, emulator and history find the parameters that the measurements allow, posterior and
discrepancy say how well they are known and what the simulator misses, tables makes numbers of it
that a profile holds.
"""
