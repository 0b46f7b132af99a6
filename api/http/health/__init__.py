"""GET /healthz: is the service up, and with which profiles?"""
