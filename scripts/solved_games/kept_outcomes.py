"""Measures how often a policy of connect four plays a move that keeps the outcome, alone and with searches.

    python scripts/solved_games/kept_outcomes.py train_dir/c4 --simulations 0 64

The positions come from games of random moves, and are those in which a wrong move exists. An exact solver says which
moves keep what perfect play of both would bring. 0 simulations are the policy's most probable move.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import pyspiel
import tyro
from recording import json_file, machine
from recording.markdown_table import markdown_table
from solved_games.connect_four import Solver

from sf import load_policy
from sf.envs.openspiel.forward import OpenSpielModel
from sf.envs.openspiel.games import load
from sf.envs.spaces.actions import ACTION_MASK
from sf.envs.spaces.observations import obs_arrays
from sf.evaluation.play.games.search_player import best_move, judge_of, settings_for
from sf.search.search import Search, SearchSettings
from sf.tools.commands import cli

FIRST_PLY, LAST_PLY = 12, 30


@dataclass(frozen=True)
class Options:
    """Says which policy is measured, and where."""

    run: tyro.conf.Positional[str]
    """Measure the policy of this run, this checkpoint, or zoo/NAME."""

    simulations: tuple[int, ...] = (0, 64)
    """Measure searches with each of these numbers of simulations; 0 is the policy alone."""

    root: Literal["puct", "gumbel"] = "puct"
    """Choose at the root by PUCT, or by sequential halving with Gumbel noise."""

    positions: int = 1000
    """Play this many positions."""

    seed: int = 0
    """Draw the positions with this seed."""

    json: Path | None = None
    """Also write the shares to this file."""


def main() -> None:
    options = cli.parse_flags(Options, "kept_outcomes.py", str(__doc__))
    json_file.require_writable(options.json)
    states, keeping = labelled(options.positions, options.seed)
    policy: Any = load_policy(options.run)
    model = OpenSpielModel(policy.env_id, load(policy.env_id, {}, seed=0))
    shares = {
        "a random move": float(
            np.mean([len(kept) / len(state.legal_actions()) for state, kept in zip(states, keeping, strict=True)])
        )
    }
    for num in options.simulations:
        moves = searched(policy, model, states, num, options.root) if num else alone(policy, model, states)
        name = f"{num} simulations" if num else "the policy alone"
        shares[name] = float(np.mean([move in kept for move, kept in zip(moves, keeping, strict=True)]))
    print(
        markdown_table(["who", "moves that keep the outcome"], [[who, f"{share:.1%}"] for who, share in shares.items()])
    )
    json_file.write(options.json, {"run": options.run, "machine": machine.describe("cpu"), "shares": shares})


def labelled(num: int, seed: int) -> tuple[list[Any], list[set[int]]]:
    """Returns positions (pyspiel.State) and the moves that keep the outcome of each."""
    game, solver = pyspiel.load_game("connect_four"), Solver()
    rng = np.random.default_rng(seed)
    states: list[Any] = []
    keeping: list[set[int]] = []
    while len(states) < num:
        state = game.new_initial_state()
        for _ in range(int(rng.integers(FIRST_PLY, LAST_PLY + 1))):
            if state.is_terminal():
                break
            state.apply_action(int(rng.choice(state.legal_actions())))
        if state.is_terminal():
            continue
        outcomes = solver.outcomes(state.history())
        best = {move for move, outcome in outcomes.items() if outcome == max(outcomes.values())}
        if len(best) < len(outcomes):
            states.append(state)
            keeping.append(best)
    return states, keeping


def alone(policy: Any, model: OpenSpielModel, states: Sequence[Any]) -> list[int]:
    """Returns the most probable move of the policy in each state."""
    for game, state in enumerate(states):
        model.begin(game, state)
    obs = obs_arrays(policy.flat_obs_space, len(states))
    model.show(range(len(states)), [0] * len(states), obs)
    logits, _ = policy.judged(obs)
    return list(np.where(obs[ACTION_MASK] != 0, logits, -np.inf).argmax(axis=1))


def searched(policy: Any, model: OpenSpielModel, states: Sequence[Any], num: int, root: str) -> list[int]:
    """Returns the move that a search finds in each state."""
    games = range(len(states))
    settings = settings_for(policy, SearchSettings(num, root, batch=len(states)), model.num_players)
    search = Search(model, settings, len(states))
    for game, state in enumerate(states):
        model.begin(game, state)
    search.run(games, judge_of(policy, model))
    return [best_move(search.read(game)) for game in games]


if __name__ == "__main__":
    main()
