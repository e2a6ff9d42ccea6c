"""The file around a release: a zip of named members in one fixed form.

Every byte that is not a member's own follows from the members' names and lengths: no times, no owners, no comments, no
gaps. So a file that differs in any of them is refused, and nothing travels beside what a release declares. (How deflate
packs a member is left to the machine that packs it; what comes out of it is checked.)
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hedgerow.errors import LimitError, ReleaseError

LARGEST = (1 << 32) - 1
"""Bytes that a release may unpack to, and be packed in: what the fields of a plain zip hold."""
MOST_MEMBERS = (1 << 16) - 2
SWOLLEN, SLACK = 64, 64 << 20
"""A release unpacks to at most SWOLLEN times its own length, and SLACK bytes."""

_LOCAL = struct.Struct("<4s5H3L2H")
_LISTED = struct.Struct("<4s6H3L5H2L")
_END = struct.Struct("<4s4H2LH")
_VERSION, _UNIX, _DEFLATED = 20, 3, 8
_FIRST_DAY = (1 << 5) | 1
"""1980-01-01, at midnight."""
_READABLE = 0o644 << 16
_NAME = re.compile(r"[a-z0-9./]{1,100}")


def write(path: Path, members: Mapping[str, bytes]) -> None:
    """Write members in the one form that `read` takes."""
    if len(members) > MOST_MEMBERS or sum(map(len, members.values())) > LARGEST:
        raise LimitError(
            "release-too-large",
            f"a release file holds at most {MOST_MEMBERS:,} members of {LARGEST:,} bytes together; this one needs "
            f"{len(members):,} of {sum(map(len, members.values())):,}. It was not written. Hint: a smaller "
            "--max-memory makes a smaller model; a run with a journal is resumed without paying again.",
        )
    listed, offset = b"", 0
    with open(path, "wb") as file:
        for name, data in members.items():
            packer = zlib.compressobj(method=zlib.DEFLATED, wbits=-zlib.MAX_WBITS)
            packed = packer.compress(data) + packer.flush()
            local, entry = _headers(name, zlib.crc32(data), len(packed), len(data), offset)
            file.write(local)
            file.write(packed)
            listed += entry
            offset += len(local) + len(packed)
        file.write(listed)
        file.write(_end(len(members), len(listed), offset))


def read(path: Path, most: int = LARGEST) -> dict[str, bytes]:
    """The members of a file that `write` made, if they unpack to at most `most` bytes; ReleaseError otherwise."""
    try:
        data = path.read_bytes() if path.stat().st_size <= LARGEST else b""
    except FileNotFoundError:
        raise ReleaseError("no-such-release", f'there is no release file "{path}".') from None
    except OSError as problem:
        raise ReleaseError(
            "cannot-read", f'"{path}" cannot be read ({(problem.strerror or "refused").lower()}).'
        ) from None
    try:
        return _unpacked(memoryview(data), most)
    except ReleaseError as problem:
        raise ReleaseError(problem.code, f'"{path}" is not a release that Hedgerow wrote: {problem}') from None
    except (struct.error, zlib.error, UnicodeDecodeError):
        raise ReleaseError(
            "not-a-release", f'"{path}" is not a release: it is damaged, cut short, or of another kind.'
        ) from None


def _unpacked(data: memoryview, most: int) -> dict[str, bytes]:
    listed = _listed(data)
    sizes = sum(size for _, _, _, size, _ in listed)
    if sizes > min(most, LARGEST) or sizes > SWOLLEN * len(data) + SLACK:
        raise ReleaseError("release-unpacks-too-large", "it would unpack to more than a release holds.")
    if len({name for name, *_ in listed}) != len(listed):
        raise ReleaseError("release-member-twice", "a member stands in it twice.")
    members: dict[str, bytes] = {}
    expected, offset = b"", 0
    for name, check, packed, size, begin in listed:
        local, entry = _headers(name, check, packed, size, offset)
        start = offset + len(local)
        if begin != offset or data[offset:start] != local or start + packed > len(data):
            raise ReleaseError("release-hidden-bytes", "it holds bytes beside its members.")
        members[name] = _member(data[start : start + packed], size, check)
        expected += entry
        offset = start + packed
    if data[offset:] != expected + _end(len(listed), len(expected), offset):
        raise ReleaseError("release-hidden-bytes", "it holds bytes beside its members.")
    return members


def _listed(data: memoryview) -> list[tuple[str, int, int, int, int]]:
    """Name, checksum, packed and unpacked length, and offset of every member, as the list at the end has it."""
    if len(data) < _END.size:
        raise struct.error
    mark, *_, count, length, offset, comment = _END.unpack(data[-_END.size :])
    if mark != b"PK\x05\x06" or comment or offset + length + _END.size != len(data):
        raise struct.error
    found = []
    for _ in range(count):
        fields = _LISTED.unpack(data[offset : offset + _LISTED.size])
        named, check, packed, size, begin = fields[10], fields[7], fields[8], fields[9], fields[16]
        name = str(data[offset + _LISTED.size : offset + _LISTED.size + named], "ascii")
        if not _NAME.fullmatch(name):
            raise ReleaseError("release-member-name", "it has a member of another name than a release has.")
        found.append((name, check, packed, size, begin))
        offset += _LISTED.size + named
    return found


def _member(packed: memoryview, size: int, check: int) -> bytes:
    """What deflate gives back: no more than was said, and nothing behind it."""
    unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
    data = unpacker.decompress(packed, size + 1)
    if len(data) != size or not unpacker.eof or unpacker.unused_data or zlib.crc32(data) != check:
        raise zlib.error
    return data


def _headers(name: str, check: int, packed: int, size: int, offset: int) -> tuple[bytes, bytes]:
    """What stands before a member, and its entry in the list."""
    common = (_VERSION, 0, _DEFLATED, 0, _FIRST_DAY, check, packed, size, len(name), 0)
    local = _LOCAL.pack(b"PK\x03\x04", *common)
    made_by = _UNIX << 8 | _VERSION
    entry = _LISTED.pack(b"PK\x01\x02", made_by, *common, 0, 0, 0, _READABLE, offset)
    return local + name.encode(), entry + name.encode()


def _end(count: int, length: int, offset: int) -> bytes:
    return _END.pack(b"PK\x05\x06", 0, 0, count, count, length, offset, 0)


# ---------------------------------------------------------------- arrays

TYPES = ("|u1", "<u2", "<u4", "<i4", "<i8", "<f8")
"""Types of numbers that a release holds."""
_HEADER = re.compile(
    rb"\{'descr': '([|<][a-z]\d)', 'fortran_order': False, 'shape': \(((?:\d{1,19}, )*\d{1,19},?)?\), \} *\n"
)
_MAGIC = b"\x93NUMPY\x01\x00"


def array_bytes(array: npt.NDArray[Any]) -> bytes:
    """An array as a .npy file, in the one form that `array_of` takes."""
    return _array_header(array.dtype.str, array.shape) + np.ascontiguousarray(array).tobytes()


def array_of(data: bytes) -> npt.NDArray[Any]:
    """The array of a .npy member, without a copy: its length is that of its bytes, so it cannot claim more."""
    (length,) = struct.unpack("<H", data[8:10])
    header = data[: 10 + length]
    said = _HEADER.fullmatch(header[10:])
    if said is None or said[1].decode() not in TYPES:
        raise ReleaseError("release-array-type", "an array of the release is of a type that a release does not hold.")
    shape = tuple(int(size) for size in (said[2] or b"").replace(b",", b" ").split())
    kind = np.dtype(said[1].decode())
    cells = 1
    for size in shape:
        cells *= size
    if header != _array_header(kind.str, shape) or len(data) - len(header) != cells * kind.itemsize or len(shape) > 32:
        raise ReleaseError("release-array-written", "an array of the release is not written as Hedgerow writes arrays.")
    return np.frombuffer(data, dtype=kind, offset=len(header)).reshape(shape)


def _array_header(kind: str, shape: tuple[int, ...]) -> bytes:
    """As numpy writes it: padded so that the numbers begin at a multiple of 64 bytes, with room for a longer shape."""
    said = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape!r}, }}"
    room = " " * (21 - len(str(shape[0]))) if shape else ""
    begun = len(_MAGIC) + 2 + len(said) + len(room) + 1
    padded = f"{said}{room}{' ' * (-begun % 64)}\n"
    return _MAGIC + struct.pack("<H", len(padded)) + padded.encode("latin-1")
