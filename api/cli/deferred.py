"""Commands whose modules are imported when they are called; their help is known before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import wraps
from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup

LARGEST = 9e9
"""Largest number that an option takes: seconds, watts and hours beyond it are slips, and as
nanoseconds they would not fit 64 bits."""

LARGEST_WHOLE = (1 << 63) - 1
"""Likewise of whole numbers, which databases and the simulator keep in 64 bits."""


class DeferredCommand(TyperCommand):
    """Stands for a command in the list of its group, and gives way to it when it is called.

    Args:
        name: Of the command, and of its function where the module holds no `app`.
        help: First paragraph of the command's help.
        module: Below `iojoule.api.cli`.
    """

    def __init__(self, name: str, help: str, module: str) -> None:  # noqa: A002 - Typer's name
        super().__init__(name=name, help=help)
        self.module = module

    def load(self) -> Any:
        """The command itself, from its module."""
        module = import_module(f"iojoule.api.cli.{self.module}")
        application = getattr(module, "app", None)
        if application is None:
            application = typer.Typer(add_completion=False)
            application.command(self.name)(getattr(module, str(self.name)))
        command = typer.main.get_command(application)
        for _, one in walk(str(self.name), command):
            one.callback = _bounded(one.callback, one.params)
        return command

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """The context of the command itself."""
        return self.load().make_context(*arguments, **options)


class DeferredGroup(TyperGroup):
    """A group with deferred commands before its own."""

    deferred: ClassVar[Mapping[str, str]] = {}
    """Name of a command -> first paragraph of its help."""

    modules: ClassVar[Mapping[str, str]] = {}
    """Name of a command -> its module, where that has another name."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = {
            name: DeferredCommand(name, text, self.modules.get(name, name.replace("-", "_")))
            for name, text in self.deferred.items()
        } | dict(self.commands)


def _bounded(callback: Any, parameters: Sequence[Any]) -> Any:
    """The function of a command, which refuses nan, inf and numbers beyond the largest."""
    if callback is None:
        return None

    @wraps(callback)
    def bounded(*given: Any, **values: Any) -> Any:
        for parameter in parameters:
            value = values.get(parameter.name)
            most = LARGEST_WHOLE if isinstance(value, int) else LARGEST
            if isinstance(value, int | float) and not abs(value) <= most:
                raise typer.BadParameter(
                    f"{value} is out of range; write a number of at most {most:.0e}",
                    param_hint=f"'{parameter.opts[0]}'",
                )
        return callback(*given, **values)

    return bounded


def walk(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    """A command and everything below it, each with its full name; deferred ones are loaded."""
    waiting = [(name, command)]
    while waiting:
        full_name, one = waiting.pop(0)
        if isinstance(one, DeferredCommand):
            one = one.load()
        yield full_name, one
        inner = getattr(one, "commands", {})
        waiting = [(f"{full_name} {key}", inner[key]) for key in inner] + waiting
