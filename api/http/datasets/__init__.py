"""GET and POST /datasets: measurements that calibrations can be asked for."""
