"""What is spared where a game shows all players the same, or pays at its end, changes nothing."""

import random

import numpy as np
import pytest

pyspiel = pytest.importorskip("pyspiel")

from sf.envs.openspiel.games import load  # noqa: E402
from sf.envs.openspiel.match import Match, Traits, traits_of  # noqa: E402
from sf.envs.openspiel.views import ALL_AT_ONCE, Views  # noqa: E402

GAMES = {
    "connect_four": Traits(looks_alike=True, pays_at_end=True),
    "go": Traits(looks_alike=True, pays_at_end=True),
    "backgammon": Traits(looks_alike=False, pays_at_end=True),
    "othello": Traits(looks_alike=False, pays_at_end=True),  # own and other discs
    "2048": Traits(looks_alike=True, pays_at_end=False),
    "kuhn_poker": Traits(looks_alike=False, pays_at_end=True),
    "hanabi": Traits(looks_alike=False, pays_at_end=False),
    "matrix_rps": Traits(looks_alike=False, pays_at_end=True),
}


def test_the_traits_of_some_games():
    assert {name: traits_of(load(f"openspiel:{name}", {}, seed=0)) for name in GAMES} == GAMES


def played(name, kwargs, with_traits, num_decisions=150):
    """Observations, masks and rewards of games of random play."""
    game = load(f"openspiel:{name}", kwargs, seed=0)
    views = Views(game.game.num_players(), game.tensor_shape)
    match = Match(name, game, views, 1, traits=traits_of(game) if with_traits else Traits())
    num = match.num_players
    seen, rng = [], random.Random(2)
    match.start()
    for _ in range(num_decisions):
        rows, masks = np.full((num, *views.shape), -7.0, np.float32), np.full((num, 10_000), 7, np.int8)
        masks = masks[:, : game.game.num_distinct_actions()]
        match.show(rows, masks)
        legal = [match.legal(player) for player in range(num)]
        choices = [rng.choice(actions) if actions else 0 for actions in legal]
        seen.append((rows, masks.copy(), np.array(match.play(choices)), np.array(match.returns())))
        if match.is_over:
            match.start()
    assert ALL_AT_ONCE < 0
    return seen


@pytest.mark.parametrize(
    ("name", "kwargs"),
    [
        *((name, {}) for name in GAMES),
        ("mancala", {}),
        ("repeated_leduc_poker", {"num_hands": 2}),
        ("goofspiel", {"num_cards": 4}),
    ],
)
def test_nothing_is_another_than_without(name, kwargs):
    for one, other in zip(played(name, kwargs, True), played(name, kwargs, False), strict=True):
        for found, expected in zip(one, other, strict=True):
            np.testing.assert_array_equal(found, expected)
