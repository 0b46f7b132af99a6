"""What a drive would do if it were built or set up otherwise: an SSD simulator with energy."""
