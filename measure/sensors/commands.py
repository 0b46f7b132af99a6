"""Programs that a sensor asks: with a time-out, and with errors that name the remedy."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from iojoule.datasets.programs import find_program, program_environment
from iojoule.measure.errors import SensorError


def ask(command: Sequence[str], *, timeout_seconds: float, package: str) -> bytes:
    """What a program says on standard output.

    Args:
        command: The program and its arguments.
        timeout_seconds: How long it may take.
        package: The Debian package that has it.

    Raises:
        SensorError: It is missing, takes too long, or fails.
    """
    program = find_program(command[0], f"sudo apt-get install {package}", SensorError)
    try:
        done = subprocess.run(
            [program, *command[1:]], capture_output=True, timeout=timeout_seconds, check=False,
            stdin=subprocess.DEVNULL, env=program_environment(),
        )  # fmt: skip
    except OSError as error:
        raise SensorError(f"{command[0]} cannot be run: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise SensorError(
            f"`{' '.join(command)}` did not answer within {timeout_seconds:g} s"
        ) from error
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip() or "no reason given"
        raise SensorError(f"`{' '.join(command)}` failed: {said.splitlines()[0]}")
    return done.stdout
