import struct

import pytest
import vizdoom

from sf.envs import UsageError
from sf.envs.doom.matches.wads import deathmatch_starts, find_wad, is_complete_game, single_starts


def write_wad(path, lumps, magic=b"PWAD"):
    data = b"".join(content for _, content in lumps)
    directory, position = b"", 12
    for name, content in lumps:
        directory += struct.pack("<ii8s", position, len(content), name.encode())
        position += len(content)
    path.write_bytes(struct.pack("<4sii", magic, len(lumps), position) + data + directory)
    return path


def test_starts_are_counted_in_the_formats_of_doom_hexen_and_text(tmp_path):
    doom = struct.pack("<hhhHh", 0, 0, 0, 11, 7) * 3 + struct.pack("<hhhHh", 0, 0, 0, 1, 7)
    hexen = struct.pack("<hhhhhHh6x", 5, 0, 0, 0, 0, 11, 7) * 2
    text = b"thing { x = 1; type = 11; }\nthing\n{\ntype=11;\n}\nthing { type = 111; }"
    others = ("LINEDEFS", "SIDEDEFS", "VERTEXES", "SEGS", "SSECTORS", "NODES", "SECTORS", "REJECT", "BLOCKMAP")
    rest = [(name, b"") for name in others]
    lumps = [("MAP01", b""), ("THINGS", doom), *rest]
    lumps += [("map02", b""), ("THINGS", hexen), *rest, ("BEHAVIOR", b"")]
    lumps += [("MAP03", b""), ("TEXTMAP", text), ("ENDMAP", b"")]
    path = write_wad(tmp_path / "a.wad", lumps)
    assert deathmatch_starts(path) == {"MAP01": 3, "MAP02": 2, "MAP03": 2}
    assert single_starts(path) == {"MAP01": 1, "MAP02": 0, "MAP03": 0}


def test_the_wads_that_come_with_vizdoom_are_known_by_name():
    assert deathmatch_starts(find_wad("cig.wad")) == {"MAP01": 25, "MAP02": 11}
    assert deathmatch_starts(find_wad("basic.wad")) == {"MAP01": 0}
    assert single_starts(find_wad("basic.wad")) == {"MAP01": 1}
    assert not is_complete_game(find_wad("cig.wad"))
    assert is_complete_game(find_wad("freedoom2.wad"))
    assert find_wad(vizdoom.scenarios_path + "/cig.wad") == find_wad("cig.wad")


def test_what_is_no_wad_or_damaged_or_not_there_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"gig.wad.*cig.wad"):
        find_wad("gig.wad")
    path = tmp_path / "a.wad"
    whole = write_wad(path, [("MAP01", b""), ("THINGS", b"")]).read_bytes()
    lump = struct.pack("<ii8s", 0, 0, b"MAP01") + struct.pack("<ii8s", -10, 100, b"THINGS")
    for content in (
        *(b"not a WAD at all", whole[:-4]),
        *(struct.pack("<4sii", b"PWAD", 1, -5), struct.pack("<4sii", b"PWAD", -1, 12)),
        struct.pack("<4sii", b"PWAD", 2, 12) + lump,
    ):
        path.write_bytes(content)
        with pytest.raises(UsageError, match="doom_wad"):
            deathmatch_starts(path)
