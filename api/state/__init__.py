"""What the service keeps: jobs, datasets, profile versions; rows in a database, bytes in files."""
