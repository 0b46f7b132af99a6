"""GET /jobs and /jobs/{id}: how far it is, what it gave, calling it off."""
