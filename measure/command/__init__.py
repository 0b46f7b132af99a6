"""`measure command`: sensors around any program, work from its output, joules per unit."""
