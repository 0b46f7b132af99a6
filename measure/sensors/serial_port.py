"""A raw serial port, exclusive to one program, that never blocks (termios, flock, poll)."""

from __future__ import annotations

import errno
import fcntl
import os
import select
import termios
import time
from collections.abc import Callable

from iojoule.measure.errors import SensorError

_GONE = (errno.EIO, errno.ENODEV, errno.ENXIO)
_READ_BYTES = 1 << 16


class SerialPort:
    """An open port such as `/dev/ttyACM0`; close it, or use it as a context manager.

    Every method raises SensorError once the device is gone; opening does if the port is missing, no
    serial port, in use, or not permitted.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._fd = _open(path)
        try:
            self._claim()
            self._make_raw()
        except BaseException:
            os.close(self._fd)
            raise

    def __enter__(self) -> SerialPort:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the port back; safe to call twice."""
        if self._fd < 0:
            return
        descriptor, self._fd = self._fd, -1
        try:
            # the mark outlives us where something else holds the port open, as with a pseudo-tty
            fcntl.ioctl(descriptor, termios.TIOCNXCL)
        except OSError:
            pass  # unplugged: nothing is left to be released
        finally:
            os.close(descriptor)

    def write(self, data: bytes) -> None:
        """Send a few bytes: they must fit into the port's buffer."""
        try:
            written = os.write(self._fd, data)
        except BlockingIOError:
            written = 0
        except OSError as error:
            raise self._gone(error) from error
        if written != len(data):
            raise SensorError(f"{self.path} takes no more bytes: unplug it and plug it in again")

    def available(self) -> bytes:
        """Received bytes, possibly none."""
        parts: list[bytes] = []
        while True:
            try:
                part = os.read(self._fd, _READ_BYTES)
            except BlockingIOError:
                return b"".join(parts)
            except OSError as error:
                if parts:
                    return b"".join(parts)  # the next call says so
                raise self._gone(error) from error
            if not part:
                if not parts and self._hung_up():
                    raise SensorError(_unplugged(self.path))
                return b"".join(parts)
            parts.append(part)

    def exactly(self, count: int, timeout_seconds: float) -> bytes:
        """That many bytes, or fewer at the time-out."""
        return self._gather(timeout_seconds, lambda data: len(data) >= count, count)

    def line(self, timeout_seconds: float) -> bytes:
        """Bytes up to and with a line feed, or fewer at the time-out."""
        return self._gather(timeout_seconds, lambda data: data.endswith(b"\n"), 0)

    def drain(self, quiet_seconds: float, limit_seconds: float) -> int:
        """Discard bytes until none came for a while; returns how many."""
        discarded = 0
        end = time.monotonic() + limit_seconds
        while self._wait(quiet_seconds):
            discarded += len(self.available())
            if time.monotonic() > end:
                break
        return discarded

    def _gather(
        self, timeout_seconds: float, done: Callable[[bytearray], bool], count: int
    ) -> bytes:
        gathered = bytearray()
        end = time.monotonic() + timeout_seconds
        while not done(gathered):
            left = end - time.monotonic()
            if left <= 0 or not self._wait(left):
                break
            try:
                gathered += os.read(self._fd, max(count - len(gathered), 1))
            except BlockingIOError:
                continue
            except OSError as error:
                raise self._gone(error) from error
        return bytes(gathered)

    def _wait(self, seconds: float) -> bool:
        """Whether something can be read before the time is over."""
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        events = poll.poll(max(seconds, 0.0) * 1e3)
        if events and not events[0][1] & select.POLLIN:
            raise SensorError(_unplugged(self.path))
        return bool(events)

    def _hung_up(self) -> bool:
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        return any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll(0))

    def _claim(self) -> None:
        try:
            # root passes TIOCEXCL, and the vendor's programs take the lock: so both
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.ioctl(self._fd, termios.TIOCEXCL)
        except BlockingIOError as error:
            raise SensorError(_in_use(self.path)) from error
        except OSError as error:
            raise SensorError(f"{self.path} is not a serial port ({error.strerror})") from error

    def _make_raw(self) -> None:
        """Let every byte through: no line ends changed, no echo, no signals, eight bits."""
        try:
            attributes = termios.tcgetattr(self._fd)
            control = attributes[2] & ~(termios.CSIZE | termios.PARENB)
            control |= termios.CS8 | termios.CREAD | termios.CLOCAL
            characters = attributes[6]
            # a read with nothing there must say so and not look like the end of the file
            characters[termios.VMIN], characters[termios.VTIME] = 1, 0
            raw = [termios.IGNBRK, 0, control, 0, *attributes[4:6], characters]
            termios.tcsetattr(self._fd, termios.TCSANOW, raw)
            termios.tcflush(self._fd, termios.TCIFLUSH)
        except termios.error as error:
            raise SensorError(f"{self.path} is not a serial port ({error})") from error

    def _gone(self, error: OSError) -> SensorError:
        if error.errno in _GONE:
            return SensorError(_unplugged(self.path))
        return SensorError(f"{self.path}: {error.strerror}")


def _open(path: str) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise SensorError(
            f"{path} is not there: plug the device in, or look for its name in /dev/serial/by-id/"
        ) from error
    except PermissionError as error:
        raise SensorError(
            f"no permission to open {path}: add yourself to its group "
            "(`sudo usermod -aG dialout $USER`, then log in again), or add a udev rule such as "
            'SUBSYSTEM=="tty", ATTRS{idVendor}=="0483", MODE="0666"'
        ) from error
    except OSError as error:
        if error.errno == errno.EBUSY:
            raise SensorError(_in_use(path)) from error
        raise SensorError(f"{path} cannot be opened: {error.strerror}") from error


def _in_use(path: str) -> str:
    return f"{path} is in use by another program; end that first (`fuser {path}` names it)"


def _unplugged(path: str) -> str:
    return f"{path} has vanished: the device was unplugged or lost power; check cable and hub"
