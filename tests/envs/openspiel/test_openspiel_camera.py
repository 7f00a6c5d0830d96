"""The pictures of OpenSpiel's games: texts of positions, for everybody or for one player."""

import numpy as np
import pytest

from sf import envs
from sf.envs import EnvOptions, StepResult
from sf.envs.rendering.pictures import TextPainter
from sf.envs.spaces.observations import obs_arrays

pytest.importorskip("pyspiel")


def test_a_person_sees_what_its_player_knows_and_all_when_the_game_is_over(monkeypatch):
    drawn = []
    monkeypatch.setattr(TextPainter, "draw", lambda painter, text: drawn.append(text) or np.zeros((1, 1, 3), np.uint8))
    group = envs.make_rendered_group("openspiel:kuhn_poker", 1, EnvOptions(), seed=0, first_env_idx=0)
    spec = group.spec
    obs = obs_arrays(spec.obs_space, 2)
    rows, result = {key: list(array) for key, array in obs.items()}, StepResult.empty(2)
    group.reset(rows)
    both = drawn[-1]  # such as "2 1"
    cards = both.split()
    group.show_to(1)
    assert drawn[-1] == cards[1]
    assert group.moves(0) == {0: "Pass", 1: "Bet"}
    assert group.moves(1) == {}
    nothing = np.zeros((2, 0), np.float32)
    for action, seen in ((1, f"{cards[1]}b"), (1, f"{both} bb")):
        group.step(np.full((2, 1), action, np.int32), nothing, rows, result)
        assert seen in drawn[-2:]
    assert len(drawn[-1]) == 1  # of the next game, for the same player
    assert len(group.pictures()[0]) == 3
    assert group.num_views == 1
    group.close()
