"""What a drive will do at a configuration nobody measured, and how sure that is."""
