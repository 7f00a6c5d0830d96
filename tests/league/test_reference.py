"""Ratings of a tournament at which its players are held elsewhere."""

import json

import pytest

from sf.league import reference
from sf.league.reference import played


def test_a_game_of_another_size_is_another_one(tmp_path):
    path = tmp_path / "pool.json"
    small, large = (played("openspiel:go", {"board_size": size}) for size in (9, 19))
    path.write_text(json.dumps({"env": small, "players": [{"name": "random", "rating": {"mean": 1}}]}))
    pool = reference.read(path)
    assert pool.held(small, {"random": None, "b": None}) == pool.held(None, {"random": None}) == {"random": 1.0}
    with pytest.raises(ValueError, match=r"openspiel:go .*19"):
        pool.held(large, {"random": None})
    assert played("openspiel:go", {}) == "openspiel:go"
