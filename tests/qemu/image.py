"""The guest's system disk: this host's Python, .venv, checkout, fio and nvme, in an ext4 image.

Nothing is installed: programs are found on this host with the libraries they are linked to, and
the checkout lies in the guest where it lies here, because an environment cannot be moved.
"""

import os
import shutil
import struct
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

PROGRAMS = ("sh", "mount", "umount", "wipefs", "blkdiscard", "setpriv", "fio", "nvme", "echo")
SBIN = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
CHECKOUT = (
    "src",
    "datasets",
    "measure",
    "meter",
    "model",
    "sim",
    "recommender",
    "api",
    "tests/qemu",
)
# What only developers need, or what a measurement does not import; most of the room is theirs.
LEFT_OUT = {
    "cmake", "fontTools", "grimp", "hypothesis", "kiwisolver", "matplotlib", "mypy", "mypyc",
    "narwhals", "ninja", "PIL", "pillow.libs", "pip", "ruff", "setuptools", "sklearn",
    "test", "idlelib", "lib2to3", "tests",
}  # fmt: skip
EMPTY = ("dev", "proc", "sys", "tmp", "run", "root", "etc", "mnt")
DISK_ID = "10c0ffee"
"""Identifier of the partition table, by which the kernel finds its root in any order of drives."""
_FIRST_BYTE = 1 << 20


def build(root: Path, image: Path) -> None:
    """Write the image of a disk with one partition.

    Args:
        root: The checkout.
        image: The file; beside it is a folder of links while it is made.
    """
    stage = image.with_suffix(".stage")
    shutil.rmtree(stage, ignore_errors=True)
    for name in EMPTY:
        (stage / name).mkdir(parents=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        (stage / "usr" / name).mkdir(parents=True)
        (stage / name).symlink_to(f"usr/{name}")
    (stage / "etc" / "passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    trees = _trees(root)
    for tree in trees:
        _link_tree(tree, stage)
    programs = [_program(name) for name in PROGRAMS]
    interpreter = Path(sys.executable)
    while interpreter.is_symlink():
        _link(interpreter, stage)
        interpreter = interpreter.parent / interpreter.readlink()
    programs.append(interpreter)
    for file in [*programs, *_libraries([*programs, *_extensions(trees)])]:
        _link(file, stage)
    partial = image.with_suffix(".part")
    partial.unlink(missing_ok=True)
    _write(stage, partial)
    partial.replace(image)
    shutil.rmtree(stage)


def _trees(root: Path) -> list[Path]:
    library = Path(sysconfig.get_path("stdlib"))
    return [library, root / ".venv", *(root / name for name in CHECKOUT)]


def _program(name: str) -> Path:
    found = shutil.which(name, path=SBIN)
    assert found is not None, f"{name} is not installed"
    return Path(found)


def _extensions(trees: Iterable[Path]) -> list[Path]:
    return [path for tree in trees for path, _ in _files(tree) if ".so" in path.suffixes]


def _libraries(files: Iterable[Path]) -> set[Path]:
    """What they are linked to, and the loader; `ldd` knows their own search paths."""
    said = subprocess.run(
        ["ldd", *map(str, files)], capture_output=True, text=True, check=False
    ).stdout
    words = {word for line in said.splitlines() for word in line.split() if word.startswith("/")}
    return {Path(word) for word in words if not word.endswith(":")}


def _files(tree: Path) -> Iterator[tuple[Path, bool]]:
    """Files and links below a folder, and whether it is a link."""
    for folder, names, files in os.walk(tree):
        here = Path(folder)
        for name in [one for one in names if (here / one).is_symlink()]:
            yield here / name, True
        names[:] = [one for one in names if one not in LEFT_OUT and not (here / one).is_symlink()]
        for name in files:
            if "mypyc" not in name:
                yield here / name, (here / name).is_symlink()


def _link_tree(tree: Path, stage: Path) -> None:
    for path, is_link in _files(tree):
        if is_link:
            place = _place(path, stage)
            if not place.is_symlink():
                place.symlink_to(path.readlink())
        else:
            _link(path, stage)


def _link(path: Path, stage: Path) -> None:
    """A hard link where that can be, for nothing is to be copied twice."""
    place = _place(path, stage)
    if place.exists() or place.is_symlink():
        return
    try:
        os.link(path.resolve(), place)
    except OSError:
        shutil.copy2(path.resolve(), place)


def _place(path: Path, stage: Path) -> Path:
    """Where a path of the host lies in the guest: /lib is a link to /usr/lib in both."""
    place = stage / (path.parent.resolve() / path.name).relative_to("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    return place


def _write(stage: Path, image: Path) -> None:
    used = sum(path.lstat().st_blocks * 512 for path in stage.rglob("*"))
    size = used * 5 // 4 + (64 << 20)
    size -= size % (1 << 20)
    with image.open("wb") as stream:
        stream.truncate(_FIRST_BYTE + size)
    _run(
        "mke2fs", "-q", "-F", "-t", "ext4", "-O", "^has_journal", "-m", "0", "-d", str(stage),
        "-E", f"offset={_FIRST_BYTE},root_owner=0:0", str(image), f"{size >> 10}k",
    )  # fmt: skip
    _give_to_root(stage, image)
    _partition(image, _FIRST_BYTE // 512, size // 512)


def _give_to_root(stage: Path, image: Path) -> None:
    """Whoever builds the image, root runs its programs: of another user's it would run none."""
    names = ("usr", "usr/bin", "usr/sbin", "usr/local", "usr/local/bin", "usr/local/sbin")
    folders = [stage / name for name in names if (stage / name).is_dir()]
    files = [path for folder in folders[1:] for path in folder.iterdir()]
    given = [*folders, *files, stage / "bin", stage / "sbin"]
    said = "".join(f"sif /{path.relative_to(stage)} uid 0\n" for path in given)
    said += "".join(f"sif /{path.relative_to(stage)} mode 040755\n" for path in folders)
    words = image.with_suffix(".debugfs")
    words.write_text(said)
    _run("debugfs", "-w", "-f", str(words), f"{image}?offset={_FIRST_BYTE}")
    words.unlink()


def _partition(image: Path, first_sector: int, sectors: int) -> None:
    """A partition table of the oldest kind: identifier, one Linux partition, signature."""
    entry = struct.pack("<B3sB3sII", 0, b"\xff" * 3, 0x83, b"\xff" * 3, first_sector, sectors)
    table = struct.pack("<I2x", int(DISK_ID, 16)) + entry + bytes(48) + b"\x55\xaa"
    with image.open("r+b") as stream:
        stream.seek(512 - len(table))
        stream.write(table)


def _run(program: str, *words: str) -> None:
    command = [_program(program), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{program}: {done.stderr}"
