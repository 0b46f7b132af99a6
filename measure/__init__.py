"""What does this drive really do? Plans runs, guards the drive, runs them, records everything."""
