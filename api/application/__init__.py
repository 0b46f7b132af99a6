"""The use cases of iojoule: one module each, computed here or asked of a service."""
