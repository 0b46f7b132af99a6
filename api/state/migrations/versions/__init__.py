"""The changes; the newest one is `tables.REVISION`."""
