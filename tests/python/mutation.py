"""Reproducible damage to files, as by disks, users and other parties in a directory of arrays."""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from random import Random

_HEADER = struct.Struct(
    "<8sIIQII"
)  # magic, byte order, version, bytes and checksum of the body, of the header
_MAGICS = (b"OUTCARRY", b"OUTCTABL")


def _table() -> list[int]:
    table = []
    for first in range(256):
        value = first
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_CRC = _table()


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _CRC[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def sealed(data: bytes) -> bytes:
    """A file of the store with the sizes and checksums that its body has."""
    magic, order, version, *_ = _HEADER.unpack(data[: _HEADER.size])
    body = data[_HEADER.size :]
    head = _HEADER.pack(magic, order, version, len(body), crc32c(body), 0)[:-4]
    return head + struct.pack("<I", crc32c(head)) + body


def is_sealed(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(8) in _MAGICS


def files(root: Path) -> list[Path]:
    return sorted(each for each in root.rglob("*") if each.is_file() and not each.is_symlink())


def _changed(data: bytes, random: Random) -> bytes:
    """Changes a few bits or a run of bytes, or writes zeros, an extreme number, or another length."""
    new = bytearray(data or b"\0")
    at = random.randrange(len(new))
    match random.randrange(6):
        case 0:
            for _ in range(random.randint(1, 4)):
                new[random.randrange(len(new))] ^= 1 << random.randrange(8)
        case 1:
            size = min(random.randint(1, 64), len(new) - at)
            new[at : at + size] = random.randbytes(size)
        case 2:
            at = at // 4096 * 4096 if random.random() < 0.5 else at
            size = min(random.choice((8, 512, 4096)), len(new) - at)
            new[at : at + size] = bytes(size)
        case 3:
            number = random.choice((0, 1, 2**63 - 1, 2**64 - 1, 2**31, 2**32 - 1, 2**62)).to_bytes(
                8, "little"
            )
            size = min(random.choice((1, 2, 4, 8)), len(new) - at)
            new[at : at + size] = number[:size]
        case 4:
            del new[at:]
        case _:
            new += random.randbytes(random.randint(1, 9000))
    return bytes(new)


def _flip(root: Path, other: Path, random: Random) -> str:
    path = random.choice(files(root))
    path.write_bytes(_changed(path.read_bytes(), random))
    return f"bytes of {path.relative_to(root)}"


def _swap(root: Path, other: Path, random: Random) -> str:
    """Exchanges two files, or two directories of arrays, of the same tree."""
    names = files(root) if random.random() < 0.5 else [each.parent for each in files(root)]
    one, two = random.choice(names), random.choice(names)
    if one == two or one in two.parents or two in one.parents:
        return "nothing"
    spare = root / "spare"
    one.rename(spare)
    two.rename(one)
    spare.rename(two)
    return f"{one.relative_to(root)} and {two.relative_to(root)} exchanged"


def _foreign(root: Path, other: Path, random: Random) -> str:
    """Takes a file, or the directory of an array or generation, from another tree that was made in the same
    way. Not the whole tree: that would be another valid one."""
    path = random.choice(files(other))
    name = path.relative_to(other)
    if random.random() < 0.5 and len(name.parts) > 2:
        name = random.choice(name.parents[:-2])
        shutil.rmtree(root / name, ignore_errors=True)
        shutil.copytree(other / name, root / name)
    else:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, root / name)
    return f"{name} of another"


def _remove(root: Path, other: Path, random: Random) -> str:
    path = random.choice(files(root))
    path.unlink()
    return f"{path.relative_to(root)} removed"


def _duplicate(root: Path, other: Path, random: Random) -> str:
    one, two = random.choice(files(root)), random.choice(files(root))
    two.write_bytes(one.read_bytes())
    return f"{one.relative_to(root)} copied over {two.relative_to(root)}"


def _block(root: Path, other: Path, random: Random) -> str:
    """Exchanges two blocks of a file."""
    path = random.choice(files(root))
    data = bytearray(path.read_bytes())
    if len(data) < 8192:
        return "nothing"
    one, two = (random.randrange(len(data) // 4096) * 4096 for _ in range(2))
    data[one : one + 4096], data[two : two + 4096] = data[two : two + 4096], data[one : one + 4096]
    path.write_bytes(data)
    return f"blocks {one} and {two} of {path.relative_to(root)} exchanged"


def _other_kind(root: Path, other: Path, random: Random) -> str:
    """Replaces a file or a directory by something that is no file; not the root, whose name the user
    chooses."""
    path = random.choice(files(root))
    inside = path.relative_to(root).parents[:-2]
    if random.random() < 0.3 and inside:
        path = root / random.choice(inside)
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    kind = random.choice(("directory", "link", "link to nothing", "FIFO"))
    if kind == "directory":
        path.mkdir()
    elif kind == "FIFO":
        os.mkfifo(path)
    else:
        path.symlink_to(other / path.relative_to(root) if kind == "link" else root / "nowhere")
    return f"{path.relative_to(root)} is a {kind}"


def forge(root: Path, other: Path, random: Random) -> str:
    """A wrong number in a manifest or table whose checksums are right: what a program could have written."""
    path = random.choice([each for each in files(root) if is_sealed(each)] or files(root))
    data = path.read_bytes()
    if not is_sealed(path):
        return _flip(root, other, random)
    new = sealed(data[: _HEADER.size] + _changed(data[_HEADER.size :], random))
    path.write_bytes(new)
    manifest = path.parent / "manifest"
    if path.name.startswith("table.") and manifest.exists():  # which has size and checksum of the table
        known = struct.pack("<qI", len(data), crc32c(data))
        manifest.write_bytes(
            sealed(manifest.read_bytes().replace(known, struct.pack("<qI", len(new), crc32c(new))))
        )
    return f"forged {path.relative_to(root)}"


DAMAGE: tuple[Callable[[Path, Path, Random], str], ...] = (
    _flip,
    _flip,
    _swap,
    _foreign,
    _remove,
    _duplicate,
    _block,
    _other_kind,
)
