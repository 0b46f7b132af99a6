"""What answers say, in words and rows that tables and documents share."""
