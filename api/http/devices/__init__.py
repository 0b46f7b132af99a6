"""GET /devices and /devices/{id}: which SSD models are known."""
