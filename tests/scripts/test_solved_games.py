"""The exact solver of connect four, and how often a policy keeps the outcome that it finds."""

import json
import sys

import numpy as np
import pytest

pyspiel = pytest.importorskip("pyspiel")
from solved_games import kept_outcomes  # noqa: E402  it needs OpenSpiel
from solved_games.connect_four import Solver  # noqa: E402


def _outcome(state, known):
    """Returns what the first player gets, by trying everything."""
    if state.is_terminal():
        return state.player_return(0)
    if str(state) not in known:
        outcomes = [_outcome(state.child(move), known) for move in state.legal_actions()]
        known[str(state)] = max(outcomes) if state.current_player() == 0 else min(outcomes)
    return known[str(state)]


def test_the_solver_finds_what_trying_everything_finds():
    game, solver, known, rng = pyspiel.load_game("connect_four"), Solver(), {}, np.random.default_rng(0)
    seen = set()
    while len(seen) < 25:
        state = game.new_initial_state()
        while not state.is_terminal() and len(state.history()) < 30:
            state.apply_action(int(rng.choice(state.legal_actions())))
        if not state.is_terminal():
            sign = 1 if state.current_player() == 0 else -1
            outcomes = {move: sign * _outcome(state.child(move), known) for move in state.legal_actions()}
            assert solver.outcomes(state.history()) == outcomes
            seen.add(tuple(state.history()))
    assert solver.outcomes([0, 1, 0, 1, 0, 1])[0] == 1
    assert {-1, 0, 1} == set(known.values())


def test_a_search_keeps_more_outcomes_than_its_policy_and_the_policy_more_than_random_moves(tmp_path, monkeypatch):
    out = tmp_path / "kept.json"
    argv = ["kept_outcomes.py", "zoo/connect_four", "--positions", "60", "--simulations", "0", "64"]
    monkeypatch.setattr(sys, "argv", [*argv, "--json", str(out)])
    kept_outcomes.main()
    random_move, alone, searched = json.loads(out.read_text())["shares"].values()
    assert random_move + 0.1 < alone < searched
