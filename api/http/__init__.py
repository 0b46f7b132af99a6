"""The HTTP service: one folder per resource, with endpoints, schemas and service side by side."""
