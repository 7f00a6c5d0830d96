import struct

import pytest
import vizdoom

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


def test_a_missing_wad_is_answered_with_those_there_are():
    with pytest.raises(ValueError, match=r"doom_wad is 'gig.wad'.*give its path, or one of .*cig.wad"):
        find_wad("gig.wad")


def test_what_is_no_wad_or_half_of_one_is_refused(tmp_path):
    text = tmp_path / "text.wad"
    text.write_text("not a WAD at all")
    with pytest.raises(ValueError, match="no WAD"):
        deathmatch_starts(text)
    whole = write_wad(tmp_path / "b.wad", [("MAP01", b""), ("THINGS", b"")])
    whole.write_bytes(whole.read_bytes()[:-4])
    with pytest.raises(ValueError, match="cut off"):
        deathmatch_starts(whole)


@pytest.mark.parametrize(
    "damaged",
    [
        struct.pack("<4sii", b"PWAD", 1, -5),
        struct.pack("<4sii", b"PWAD", -1, 12),
        struct.pack("<4sii", b"PWAD", 2, 12)
        + struct.pack("<ii8s", 0, 0, b"MAP01")
        + struct.pack("<ii8s", -10, 100, b"THINGS"),
    ],
    ids=["directory", "number", "lump"],
)
def test_a_wad_with_negative_positions_or_numbers_is_refused(tmp_path, damaged):
    path = tmp_path / "damaged.wad"
    path.write_bytes(damaged)
    with pytest.raises(ValueError, match="the file is damaged or cut off; get it again"):
        deathmatch_starts(path)
