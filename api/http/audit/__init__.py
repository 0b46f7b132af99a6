"""GET /audit: who changed what and when."""
