"""A small file of settings, such as a udev rule, that is there or not."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from iojoule.datasets.atomic import write_text_atomically
from iojoule.measure.errors import HostStateError
from iojoule.measure.host import host_files

if TYPE_CHECKING:
    from iojoule.measure.host.changes import Change


@dataclass(frozen=True)
class TextFile:
    """A text file; its value is its content, empty where there is none."""

    path: str
    kind: ClassVar[str] = "text-file"

    def is_settable(self) -> bool:
        """Whether it is a file of iojoule's own, and neither it nor a folder above it is a link."""
        path = Path(self.path)
        return any(one.hold(path) for one in host_files.OWN) and path.resolve() == path

    def is_there(self) -> bool:
        """Whether the folder is there in which it is or could be."""
        return Path(self.path).parent.is_dir()

    def get(self) -> str:
        """What is in it."""
        try:
            return Path(self.path).read_text(encoding="utf-8")
        except FileNotFoundError:
            return ""
        except (OSError, UnicodeDecodeError) as error:
            raise HostStateError(f"{self.path}: cannot be read ({error})") from None

    def set(self, value: str) -> None:
        """Write it whole, or remove it where the value is empty."""
        path = Path(self.path)
        try:
            if value:
                write_text_atomically(path, value)
            else:
                path.unlink(missing_ok=True)
        except OSError as error:
            raise HostStateError(
                f"{self.path}: cannot be written ({error.strerror}); run as root"
            ) from None

    def command(self, value: str) -> str:
        """Shell lines."""
        if not value:
            return f"rm -f {self.path}"
        return f"cat > {self.path} <<'END'\n{value}END"

    def disturbs(self) -> tuple[Change, ...]:
        """Nothing."""
        return ()
