"""What any program costs: sensors around it, work units from its output, joules per unit."""
