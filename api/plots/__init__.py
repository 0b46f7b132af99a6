"""Draws answers, and writes the points that it draws."""
