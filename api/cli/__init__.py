"""The command line `iojoule`: one module a command; what is heavy is imported when it is used."""

from iojoule.api.cli.app import main

__all__ = ["main"]
