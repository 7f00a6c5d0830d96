import json

import pytest

from sf.league import record
from sf.league.record import ExploiterReset, ExploiterRestarted, Finished, Match, Player, Reference, Settings
from sf.storage import text_files

SNAPSHOT = Player("policy_00_000000409600", 0, 409_600, "league/policy_00_000000409600.safetensors")
MATCH = Match(("policy_00", SNAPSHOT.name), (1.0, -1.0), 412_345)
ROWS = [
    SNAPSHOT,
    Player("random"),
    MATCH,
    ExploiterReset(2, 500_000),
    Match(("a", "a", "b", "b"), (0.0, 0.5, 1.0, 2.0)),
    Match(("a", "b"), (1.0, 0.0), 30, 0.5, {"a": 30, "b": 9}),
]


@pytest.fixture
def path(tmp_path):
    return tmp_path / record.NAME


LINES = {  # as earlier versions have written them
    '{"kind": "player", "name": "policy_00_000000000064", "policy": 0, "env_steps": 64, "path": "league/a"}': (
        Player("policy_00_000000000064", 0, 64, "league/a")
    ),
    '{"kind": "match", "players": ["policy_00", "a"], "scores": [1.0, -1.0], "env_steps": 70, "probability": 0.5}': (
        Match(("policy_00", "a"), (1.0, -1.0), 70, 0.5)
    ),
    '{"kind": "anew", "policy": 2, "env_steps": 500000}': ExploiterReset(2, 500_000),
    '{"kind": "begun", "policy": 2, "env_steps": 500064}': ExploiterRestarted(2, 500_064),
    '{"kind": "reference", "ratings": {"random": 0.0}}': Reference({"random": 0.0}),
    '{"kind": "tournament", "env": "toy", "matches": 2}': Settings({"env": "toy", "matches": 2}),
    '{"kind": "finished", "players": ["a", "b"], "env_faults": 3}': Finished(("a", "b"), 3),
}


def test_a_line_of_each_kind_is_read_and_written_as_by_earlier_versions(path):
    for line, row in LINES.items():
        path.write_text(line + "\n")
        assert record.read(path) == [row]
        record.rewrite(path, [row])
        assert path.read_text() == line + "\n"
    path.write_text('{"kind": "weather", "sun": true}\n')  # a kind that nobody knows yet
    assert record.read(path) == []


def test_half_a_line_is_ignored_and_gone_after_the_next_append(path):
    record.append(path, ROWS)
    whole = path.read_bytes()
    line = json.dumps({"kind": "player", "name": "somebody"}).encode()
    for torn in (*(line[:kept] for kept in range(1, len(line) + 1)), b"x" * 200_000):
        path.write_bytes(whole + torn)
        assert record.read(path) == ROWS
        record.append(path, [MATCH])
        assert record.read(path) == [*ROWS, MATCH]
        assert path.read_bytes().startswith(whole + b"{")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "line 2"),
        ('{"kind": "player", "name": 3}', "name is 3"),
        ('{"kind": "match", "players": ["a", "b"], "scores": [1]}', "2 players, but 1 scores"),
        ('{"kind": "match", "players": ["a"], "scores": [NaN]}', "scores is nan"),
        ('{"kind": "match", "env_steps": -1, "players": ["a"], "scores": [1]}', "env_steps is -1"),
    ],
)
def test_a_broken_line_is_named_with_what_is_wrong(path, line, reason):
    record.append(path, ROWS[:1])
    path.write_text(f"{path.read_text()}{line}\n")
    record.append(path, ROWS[1:])
    with pytest.raises(ValueError, match="line 2") as error:
        record.read(path)
    assert reason in str(error.value)


def test_a_disk_that_gets_full_leaves_no_part_of_the_rows(path, monkeypatch):
    record.append(path, ROWS)
    before = path.read_bytes()

    def full(fd):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(text_files.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        record.append(path, [MATCH])
    assert path.read_bytes() == before
