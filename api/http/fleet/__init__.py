"""POST /fleet/plan: what every drive of a fleet does under a power budget."""
