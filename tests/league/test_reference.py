"""Ratings of a tournament at which its players are held elsewhere."""

import json

import pytest

from sf.league import reference
from sf.league.reference import described, played


def test_who_is_held_is_said_whatever_it_is_called():
    held = {"a{}": 0.0, "n{e}t": 12.4, "c": -3.0}
    assert described(held) == "a{} is held at 0, and n{e}t at 12, and c at -3"


def test_a_game_of_another_size_is_another_one(tmp_path):
    path = tmp_path / "pool.json"
    small, large = (played("openspiel:go", {"board_size": size}) for size in (9, 19))
    path.write_text(json.dumps({"env": small, "players": [{"name": "random", "rating": {"mean": 1}}]}))
    pool = reference.read(path)
    assert pool.held(small, {"random": None, "b": None}) == pool.held(None, {"random": None}) == {"random": 1.0}
    with pytest.raises(ValueError, match=r"and what is played is openspiel:go .*19.*: name another"):
        pool.held(large, {"random": None})
    assert played("openspiel:go", {}) == "openspiel:go"


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"players": []}', '{"players": [{"name": "a"}]}', '{"players": [{"name": 3, "rating": 1}]}']
    + [f'{{"players": [{{"name": "a", "rating": {{"mean": {mean}}}}}]}}' for mean in ("NaN", "null", "9" * 400)],
)
def test_what_is_no_result_of_a_tournament_is_one_sentence(tmp_path, text):
    (tmp_path / "pool.json").write_text(text)
    with pytest.raises(ValueError, match=r"pool\.json has no ratings: name a file that sf-league --json has written"):
        reference.read(tmp_path / "pool.json")


def test_a_folder_is_one_sentence(tmp_path):
    with pytest.raises(ValueError, match="cannot be read"):
        reference.read(tmp_path)
