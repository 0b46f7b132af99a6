"""POST /devices/{id}/calibrations: a new version of a device's profile from datasets."""
