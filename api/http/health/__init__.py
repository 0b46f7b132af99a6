"""GET /healthz: is it up, with which profiles? GET /readyz: can it do everything?"""
