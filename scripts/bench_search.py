"""Measures searches: random play beside OpenSpiel's own search and beside a bare engine, and leaves beside the bare
network, on one core.

    python scripts/bench_search.py --json benchmarks/search_1core.json
    python scripts/bench_search.py --only rts --rounds 7 --simulations 800 --json benchmarks/search_rts_1core.json

Each pair is timed in turn. The network is that of zoo/connect_four in float32, by PyTorch's operations; the bare one
answers batches of the size that the search has on average. The bare engine plays random commands from the position in
which the search begins, in as many games at once as make calls from Python cost little.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyspiel
from recording import json_file, machine
from recording.markdown_table import markdown_table

from sf import load_policy
from sf.envs import EnvOptions
from sf.envs.openspiel.forward import OpenSpielModel
from sf.envs.openspiel.games import load
from sf.envs.rts.engine.state import NOBODY, Worlds
from sf.envs.rts.forward import Game
from sf.envs.rts.group import make_group
from sf.envs.spaces.observations import obs_arrays
from sf.evaluation.play.games.search_player import judge_of
from sf.search.search import PUCT, Asked, Search, SearchSettings
from sf.system.machine.cores import usable_cores
from sf.system.processes.torch_runtime import configure
from sf.tools.commands import cli

GAMES = {"connect four": ("openspiel:connect_four", {}), "go, 9 x 9": ("openspiel:go", {"board_size": 9})}
NUM_GAMES = 64
NUM_BARE = 32  # strategy games of the bare engine


@dataclass(frozen=True)
class Options:
    """Chooses what to measure."""

    rounds: int = 3
    """Take each figure this often."""

    simulations: int = 1000
    """Simulations of a search by random play."""

    only: str = ""
    """Measure only the pairs whose names have this text in them."""

    json: Path | None = None
    """Also write everything to this file."""


def main() -> None:
    options = cli.parse_flags(Options, "bench_search.py", str(__doc__))
    json_file.require_writable(options.json)
    os.sched_setaffinity(0, {usable_cores()[-1]})
    configure("cpu", num_threads=1, deterministic=False)
    figures: dict[str, list[tuple[float, float]]] = {}
    pairs = {what: pair for what, pair in _pairs(options.simulations).items() if options.only in what}
    for _ in range(options.rounds):
        for what, pair in pairs.items():
            figures.setdefault(what, []).append(pair())
        print(figures, file=sys.stderr, flush=True)
    result = {"machine": machine.describe("cpu"), "figures": figures, "tree of 10,000 nodes, bytes": _num_bytes()}
    json_file.write(options.json, result)
    rows = []
    for name, each in figures.items():
        medians = [f"{median(side):,.0f}" for side in zip(*each, strict=True)]
        rows.append([name, *medians, ", ".join(f"{second / first:.2f}" for first, second in each)])
    print(markdown_table(["pair", "first", "second", "second / first"], rows))
    print(f"a tree of 10,000 nodes of connect four takes {_num_bytes() / 1e6:.1f} MB")


def _pairs(num: int) -> dict[str, Callable[[], tuple[float, float]]]:
    """Returns what is measured, by what it is called. num: simulations of a search by random play."""
    pairs: dict[str, Callable[[], tuple[float, float]]] = {
        f"{name}: simulations/s of OpenSpiel's MCTSBot, and of search:{num}": partial(_random_play, *game, num)
        for name, game in GAMES.items()
    }
    with_network = f"connect four, {NUM_GAMES} games: samples/s of the network alone, and leaves/s of a search with it"
    engine = f"rts_mini: decisions/s of the bare engine with random commands, and of search:{num}"
    return {**pairs, with_network: _with_network, engine: partial(_strategy_game, num)}


def _strategy_game(num: int) -> tuple[float, float]:
    group: Any = make_group("rts_mini", NUM_BARE, EnvOptions(), seed=1, first_env_idx=0)
    games, skip = group.arena.games, group.arena.settings.skip
    group.arena.begin(np.ones(NUM_BARE, bool))
    model = group.forward_model(seed=0)
    search = Search(model, SearchSettings(num, PUCT, playout_share=1.0), 1)
    rng = np.random.default_rng(0)
    position = [part[:1].copy() for part in games.worlds[:-1]]

    def set_back(which: np.ndarray) -> None:
        for part, first in zip(games.worlds[:-1], position, strict=True):
            part[which] = first

    def play() -> float:
        ticks = 0
        for _ in range(10):
            ticks += games.advance(rng.integers(0, model.num_actions, (NUM_BARE, 1, 1)), skip)[1]
            if (ended := games.winner != NOBODY).any():
                set_back(ended)
        return ticks / skip

    def search_once() -> float:
        before = model.num_ticks
        model.begin(0, root)
        search.forget(0)
        search.run([0], judge_of(None, model))
        return (model.num_ticks - before) / skip

    root = Game(Worlds(*position, games.worlds.kinds), 0, group.arena.planes[0, 0])
    set_back(np.ones(NUM_BARE, bool))
    return _per_s(play, 3.0), _per_s(search_once, 3.0)


def _random_play(env: str, kwargs: dict[str, Any], num: int) -> tuple[float, float]:
    found = load(env, kwargs, seed=0)
    state = found.game.new_initial_state()
    evaluator = pyspiel.RandomRolloutEvaluator(1, 0)
    bot = pyspiel.MCTSBot(found.game, evaluator, 2.0, num, 1000, False, 0, False)
    search = Search(OpenSpielModel(env, found), SearchSettings(num, PUCT, playout_share=1.0), 1)

    def search_once() -> int:
        search.model.begin(0, state)
        search.forget(0)
        search.run([0], judge_of(None, search.model))
        return num

    return _per_s(lambda: (bot.mcts_search(state), num)[1]), _per_s(search_once)


def _with_network() -> tuple[float, float]:
    policy: Any = load_policy("zoo/connect_four")
    found = load(policy.env_id, {}, seed=0)
    model = OpenSpielModel(policy.env_id, found)
    search = Search(model, SearchSettings(64, PUCT, batch=NUM_GAMES), NUM_GAMES)
    judge, sizes = judge_of(policy, model), list[int]()

    def judged(asked: Asked) -> tuple[np.ndarray, np.ndarray]:
        sizes.append(len(asked.game))
        return judge(asked)

    def search_all() -> int:
        sizes.clear()
        for game in range(NUM_GAMES):
            model.begin(game, found.game.new_initial_state())
            search.forget(game)
        search.run(range(NUM_GAMES), judged)
        return sum(sizes)

    leaves = _per_s(search_all)
    batches = list(sizes)
    obs = obs_arrays(policy.flat_obs_space, round(sum(batches) / len(batches)))
    obs["action_mask"][:] = 1

    def network_alone() -> int:
        for _ in batches:
            policy.judged(obs)
        return len(batches) * len(obs["action_mask"])

    return _per_s(network_alone), leaves


def _num_bytes() -> int:
    found = load("openspiel:connect_four", {}, seed=0)
    search = Search(OpenSpielModel("connect four", found), SearchSettings(10_000, PUCT, playout_share=1.0), 1)
    search.model.begin(0, found.game.new_initial_state())
    search.run([0], judge_of(None, search.model))
    return search.num_bytes


def _per_s(work: Callable[[], float], seconds: float = 1.0) -> float:
    """work: returns how much it has done."""
    work()
    began = time.perf_counter()
    num = 0.0
    while time.perf_counter() - began < seconds:
        num += work()
    return num / (time.perf_counter() - began)


if __name__ == "__main__":
    main()
