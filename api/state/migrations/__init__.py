"""How the tables came to be, one file for each change."""
