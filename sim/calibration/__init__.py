"""Calibrating the simulator on measurements: timing by history matching, energy by least squares.

parameters and energy declare what is fitted, observations selects what is compared, runs simulates
it, history_matching finds the parameters and their uncertainty, calibrate joins these, judge
computes errors, tables and section write the result into a profile.
"""
