"""GET /devices/{id}/profiles: versions; PUT .../current: which one answers."""
