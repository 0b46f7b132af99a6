"""How do programs ask? `Client` asks a service, and is cheap to import: no models, no arrays."""

from iojoule.api.client.client import Client

__all__ = ["Client"]
