"""fio: job files that people can run themselves, the program, and what a run of it says."""
