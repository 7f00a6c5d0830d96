"""Groups of OpenSpiel's games beside bare loops of the same games, decisions a second on one core.

    python scripts/bench_openspiel.py --json benchmarks/openspiel_1core.json

Everything is measured in turn, round after round, and the table has medians. A decision is one action of one player.
All play at random. How long it takes to draw the actions counts nowhere, except in the last column: in training they
come from elsewhere.

lists: a bare loop in Python over one game. At each decision it takes the tensor and the mask of legal actions as
    OpenSpiel returns them, which is lists of numbers.
buffers: the same, with the tensor in the buffer of `open_spiel.python.observation`.
group: `step` of a group, which also writes what the waiting players see, and lays rows out as training needs them.
drawing, group / lists: both with the time that it takes to draw, from the masks of the group and by `legal_actions`.
"""

from __future__ import annotations

import json
import os
import platform
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
from recording import json_file
from recording.markdown_table import markdown_table

from sf.envs import ActionSpec, EnvOptions, StepResult, make_group
from sf.envs.spaces.actions import ACTION_MASK, random_actions
from sf.envs.spaces.observations import obs_arrays
from sf.tools.commands import cli

if TYPE_CHECKING:
    from sf.envs.openspiel.games import TensorGame

GAMES = {
    "tic_tac_toe": {},
    "kuhn_poker": {},
    "leduc_poker": {},
    "connect_four": {},
    "go": {"board_size": 9},
    "goofspiel": {},
    "chess": {},
    "2048": {},
}
COLUMNS = ("lists", "buffers", "group")
DRAWING = " and drawing"  # the same column with the time of drawing


@dataclass(frozen=True)
class Options:
    """What to measure."""

    games: tuple[str, ...] = tuple(GAMES)
    """Names of OpenSpiel's games."""

    rounds: int = 5
    """How often each figure is taken."""

    seconds: float = 1.0
    """Of each measurement."""

    num_envs: int = 16
    """Games of a group."""

    json: Path | None = None
    """Also write everything to this file."""


def main() -> None:
    options = cli.parse_flags(Options, "bench_openspiel.py", str(__doc__))
    json_file.require_writable(options.json)
    from sf.envs.openspiel.games import load  # noqa: PLC0415  an extra

    columns = [column + drawing for column in COLUMNS for drawing in ("", DRAWING)]
    figures: dict[str, dict[str, list[float]]] = {name: {column: [] for column in columns} for name in options.games}
    for _ in range(options.rounds):
        for name, by_column in figures.items():
            tensor_game = load(f"openspiel:{name}", GAMES.get(name, {}), seed=0)
            measured = (
                *bare(tensor_game, options.seconds, with_buffers=False),
                *bare(tensor_game, options.seconds, with_buffers=True),
                *grouped(name, options.num_envs, options.seconds),
            )
            for column, figure in zip(columns, measured, strict=True):
                by_column[column].append(round(figure))
            print(name, {column: values[-1] for column, values in by_column.items()}, file=sys.stderr, flush=True)
        machine = {"cores": len(os.sched_getaffinity(0)), "load": os.getloadavg(), "kernel": platform.release()}
        versions = {"python": platform.python_version(), "open_spiel": version("open_spiel"), "numpy": np.__version__}
        json_file.write(options.json, {"machine": machine, "versions": versions, "figures": figures})
    print(table(figures))


def bare(tensor_game: TensorGame, seconds: float, with_buffers: bool) -> tuple[float, float]:
    """Decisions a second without the drawing of actions, and with it.

    A loop that draws twice tells how long that takes.
    """
    once, twice = (_seconds_a_decision(tensor_game, seconds / 2, with_buffers, num_draws) for num_draws in (1, 2))
    return 1 / max(2 * once - twice, 1e-9), 1 / once


def _seconds_a_decision(tensor_game: TensorGame, seconds: float, with_buffers: bool, num_draws: int) -> float:
    decisions = bare_decisions(tensor_game, with_buffers, num_draws)
    num_decisions, start = 0, time.perf_counter()
    while (taken := time.perf_counter() - start) < seconds:
        num_decisions += sum(next(decisions) for _ in range(100))
    return taken / num_decisions


def bare_decisions(tensor_game: TensorGame, with_buffers: bool, num_draws: int = 1) -> Iterator[int]:
    """Plays for ever, and yields how many players have just acted. num_draws: of actions, the last of which counts."""
    game, rng, observer = tensor_game.game, random.Random(0), tensor_game.make_observer()
    has_recall = tensor_game.tensor == "information_state"
    while True:
        state = game.new_initial_state()
        while not state.is_terminal():
            if state.is_chance_node():
                actions, probabilities = zip(*state.chance_outcomes(), strict=True)
                state.apply_action(rng.choices(actions, probabilities)[0])
                continue
            is_at_once = state.is_simultaneous_node()
            choices = []
            for player in range(game.num_players()) if is_at_once else (state.current_player(),):
                if with_buffers:
                    observer.set_from(state, player)
                elif has_recall:
                    state.information_state_tensor(player)
                else:
                    state.observation_tensor(player)
                state.legal_actions_mask(player)
                for _ in range(num_draws):
                    drawn = rng.choice(state.legal_actions(player))
                choices.append(drawn)
            if is_at_once:
                state.apply_actions(choices)
            else:
                state.apply_action(choices[0])
            yield len(choices)


def grouped(name: str, num_envs: int, seconds: float) -> tuple[float, float]:
    """Decisions a second of a group's `step`, and with the drawing of actions."""
    options = EnvOptions(env_kwargs=json.dumps(GAMES.get(name, {})))
    group = make_group(f"openspiel:{name}", num_envs, options, seed=0, first_env_idx=0)
    rng, action = np.random.default_rng(0), ActionSpec.of(group.spec.action_space)
    arrays = obs_arrays(group.spec.obs_space, group.num_actors)
    obs: dict[str, Any] = {key: list(rows) for key, rows in arrays.items()}
    result, masks = StepResult.empty(group.num_actors), arrays[ACTION_MASK]
    group.reset(obs)
    num_decisions, in_step, start = 0, 0.0, time.perf_counter()
    while (taken := time.perf_counter() - start) < seconds:
        actions = random_actions(rng, action, group.num_actors, masks)
        num_decisions += int(masks.any(axis=1).sum())
        before = time.perf_counter()
        group.step(*actions, obs, result)
        in_step += time.perf_counter() - before
    group.close()
    return num_decisions / in_step, num_decisions / taken


def table(figures: dict[str, dict[str, list[float]]]) -> str:
    """Medians, and the median over the rounds of what the group reaches of each bare loop, with the range."""
    ratios = {
        "group / lists": ("group", "lists"),
        "group / buffers": ("group", "buffers"),
        "drawing, group / lists": (f"group{DRAWING}", f"lists{DRAWING}"),
    }
    rows = []
    for name, by_column in figures.items():
        found = []
        for ours, theirs in ratios.values():
            of_rounds = [one / other for one, other in zip(by_column[ours], by_column[theirs], strict=True)]
            found.append(f"{median(of_rounds):.2f} ({min(of_rounds):.2f} to {max(of_rounds):.2f})")
        rows.append([name, *(f"{median(by_column[column]):,.0f}" for column in COLUMNS), *found])
    return markdown_table(["game", *COLUMNS, *ratios], rows)


if __name__ == "__main__":
    main()
