"""`iojoule completion`: lets a shell complete commands and options."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from iojoule.api.cli import console


class Shell(StrEnum):
    """A shell that can complete."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    shell: Annotated[Shell, typer.Argument(help="bash, zsh or fish.")],
) -> None:
    """Print the completion script of a shell.

    For bash: iojoule completion bash > ~/.local/share/bash-completion/completions/iojoule
    """
    from typer._completion_shared import get_completion_script

    from iojoule.api.cli.app import COMPLETES

    script = get_completion_script(prog_name="iojoule", complete_var=COMPLETES, shell=shell.value)
    console.emit(script + "\n")
