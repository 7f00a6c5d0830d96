"""What is found of games: whether they show all players the same, and whether they pay at their end alone."""

import pytest

pyspiel = pytest.importorskip("pyspiel")

from sf.envs.openspiel.games import load  # noqa: E402
from sf.envs.openspiel.match import Traits, traits_of  # noqa: E402

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
