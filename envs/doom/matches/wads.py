"""WAD files: where they are, and which maps with places to start from are in them.

The format (a header, lumps, a directory of them at the end) is that of the Unofficial Doom Specs, version 1.666.
"""

from __future__ import annotations

import os
import re
import struct
from pathlib import Path
from typing import BinaryIO

import vizdoom

from sf.envs.errors import UsageError

SINGLE_START, DEATHMATCH_START = 1, 11  # the types of things
HEADER = struct.Struct("<4sii")  # IWAD or PWAD, number of lumps, position of the directory
ENTRY = struct.Struct("<ii8s")  # position, bytes, name
# What a map stores of a thing: x, y, angle, type, flags; in Hexen's format an id before and a height among them.
DOOM_THING, HEXEN_THING = struct.Struct("<hhhHh"), struct.Struct("<hhhhhHh6x")
TEXT_TYPE = re.compile(rb"\btype\s*=\s*(\d+)\s*;")

_Lump = tuple[str, int, int]  # name, position, bytes


def find_wad(name: str) -> Path:
    """The WAD of this path, or of this name among those that come with ViZDoom. Raises UsageError where none is."""
    package = Path(vizdoom.__file__).parent
    for path in (Path(name), Path(vizdoom.scenarios_path, name), package / name):
        if path.is_file():
            return path.resolve()
    known = sorted({path.name for folder in (vizdoom.scenarios_path, package) for path in Path(folder).glob("*.wad")})
    raise UsageError(f"doom_wad is {name!r}: there is no such file; give its path, or one of {', '.join(known)}")


def is_complete_game(wad: Path) -> bool:
    """Returns whether it is an IWAD, which needs no other WAD below it. Raises UsageError for what is no WAD at all."""
    with wad.open("rb") as file:
        magic, _, _ = _header(file, wad)
    return magic == b"IWAD"


def deathmatch_starts(wad: Path) -> dict[str, int]:
    """Returns how many places to start from in a deathmatch each map of it has, by the name of the map in upper case.

    Raises UsageError for a file that is no WAD.
    """
    return _starts(wad, DEATHMATCH_START)


def single_starts(wad: Path) -> dict[str, int]:
    """As `deathmatch_starts`, where one plays alone."""
    return _starts(wad, SINGLE_START)


def _starts(wad: Path, type_of_thing: int) -> dict[str, int]:
    with wad.open("rb") as file:
        lumps = _directory(file, wad)
        starts = {}
        for i, (name, _, _) in enumerate(lumps):
            following = [lump[0] for lump in lumps[i + 1 : i + 12]]
            if following[:1] == ["TEXTMAP"]:
                starts[name] = [*map(int, TEXT_TYPE.findall(_read(file, lumps[i + 1])))].count(type_of_thing)
            elif following[:1] == ["THINGS"]:
                thing = HEXEN_THING if following[10:11] == ["BEHAVIOR"] else DOOM_THING
                kind = 5 if thing is HEXEN_THING else 3
                things = _read(file, lumps[i + 1])
                whole = things[: len(things) // thing.size * thing.size]
                starts[name] = sum(fields[kind] == type_of_thing for fields in thing.iter_unpack(whole))
    return starts


def _header(file: BinaryIO, wad: Path) -> tuple[bytes, int, int]:
    data = file.read(HEADER.size)
    if len(data) < HEADER.size or data[:4] not in (b"IWAD", b"PWAD"):
        raise UsageError(f"doom_wad is {str(wad)!r}: that is not a WAD file")
    return HEADER.unpack(data)


def _directory(file: BinaryIO, wad: Path) -> list[_Lump]:
    _, count, position = _header(file, wad)
    entries = []
    if count >= 0 and position >= 0:
        file.seek(position)
        data = file.read(count * ENTRY.size)
        entries = [*ENTRY.iter_unpack(data[: len(data) // ENTRY.size * ENTRY.size])]
    if len(entries) != count or any(start < 0 or size < 0 for start, size, _ in entries):
        raise UsageError(f"doom_wad is {str(wad)!r}: the file is damaged or cut off; get it again")
    return [(name.rstrip(b"\0").decode("latin-1").upper(), start, size) for start, size, name in entries]


def _read(file: BinaryIO, lump: _Lump) -> bytes:
    _, position, size = lump
    file.seek(position, os.SEEK_SET)
    return file.read(size)
