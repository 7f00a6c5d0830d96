"""`sf-eval`: how good a trained policy is, over many episodes."""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import tyro
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sf.envs import describe
from sf.evaluation.statistics import interval_text
from sf.metrics.display.console import OutputConsole
from sf.metrics.readable import number
from sf.storage import output_file
from sf.storage.text_files import printable
from sf.tools.commands import cli
from sf.tools.commands.policy_flags import ManyEpisodesFlags
from sf.tools.report.outputs import require_outputs, write_json

if TYPE_CHECKING:
    from sf.evaluation.play.contestants import Contestant
    from sf.evaluation.results import Evaluation
    from sf.evaluation.task import EvaluationTask

_COLUMNS = ("mean", "95 % interval", "median", "std", "min", "max")
_CSV_COLUMNS = ("checkpoint", "match", "agent", "return", "num_steps", "num_frames")
_WIDTH_OF_FILES = 120  # columns, where the output is no terminal


@dataclass(frozen=True)
class EvalFlags(ManyEpisodesFlags):
    """Which policies play, how long, and where the results go."""

    run: tyro.conf.Positional[Path]
    """A run directory, such as train_dir/doom_basic, a checkpoint, the folder of a policy, hf:USER/NAME, or zoo/NAME
    (docs/enjoy.md lists the zoo)."""

    against: tuple[str, ...] = ()
    """Others who play, opponents in a match, otherwise for comparison: runs or checkpoints, random (random moves),
    search:N or search:N:RUN (tree search with N simulations a move, by random play or with a policy: docs/search.md),
    openspiel:mcts:N (OpenSpiel's own search), gtp:COMMAND (a program that plays Go: docs/openspiel.md), bot:NAME (a bot
    of the simulator, see docs/league.md), or module:Name (a function of the observation that returns an action, or a
    class with a method act)."""

    exploitability: bool = False
    """Also compute the exploitability of each policy, exactly, in a game of OpenSpiel that is small enough:
    docs/openspiel.md."""

    device: Literal["cpu", "cuda"] = "cpu"
    """Device of the networks."""

    json: Path | None = None
    """Write statistics and episodes to this file."""

    csv: Path | None = None
    """Write the episodes to this file, one row each."""


def main() -> None:
    """Evaluate, print a table; end with 0, 1 after a failure, 2 after a user's mistake, 130 after Ctrl-C."""
    flags = cli.parse_flags(
        EvalFlags,
        "sf-eval",
        "Measure how good trained policies are, over many episodes. Example: sf-eval train_dir/doom_basic",
    )
    with cli.exit_status():
        _run(flags)


def _run(flags: EvalFlags) -> None:
    from sf.evaluation.play.contestants import find_contest  # noqa: PLC0415
    from sf.evaluation.task import EvaluationTask, evaluate  # noqa: PLC0415  torch is slow to import: not for --help
    from sf.system.processes.torch_runtime import resolve_device  # noqa: PLC0415

    require_outputs(flags.json)
    if flags.csv is not None:
        output_file.require_writable("csv", flags.csv)
    if flags.json is not None and flags.csv is not None and flags.json.resolve() == flags.csv.resolve():
        raise ValueError(f"json and csv are both {flags.csv}, and one would be lost: name two files")
    found = find_contest(flags.run, flags.against, flags.checkpoint, flags.policy, flags.overrides, flags.trust)
    found = found.searching(flags.asked_search)
    config, players = found.config, found.players
    task = EvaluationTask(
        env=config.run.env,
        options=found.options,
        players=players,
        num_episodes=flags.episodes,
        objective=config.population.pbt_target_objective,
        seed=flags.seed,
        deterministic=flags.deterministic,
        device=resolve_device(flags.device),
        num_workers=flags.num_workers,
        num_envs_per_worker=flags.num_envs_per_worker,
        roles=found.roles(describe(config.run.env, found.options)),
    )
    exploitability = _exploitability(task) if flags.exploitability else {}
    evaluation = evaluate(task, cli.EpisodeProgress(lambda: describe(task.env, task.options).time_limit))
    _print(evaluation, list(players), exploitability)
    if flags.json is not None:
        settings = {name: str(value) if isinstance(value, Path) else value for name, value in vars(flags).items()}
        write_json(flags.json, {**settings, **_result(evaluation, players, found.num_own, exploitability)})
    if flags.csv is not None:
        output_file.write("csv", flags.csv, _csv(evaluation, list(players)).encode())


def _exploitability(task: EvaluationTask) -> dict[str, float]:
    """By the names of the players, of those that are policies or move at random."""
    from sf.evaluation.play import exploitability as measure  # noqa: PLC0415
    from sf.evaluation.play.opponents import RANDOM, Opponent  # noqa: PLC0415
    from sf.evaluation.play.torch_policy import TorchPolicy  # noqa: PLC0415

    states = measure.information_states(task.env, task.options)
    found = {}
    for name, each in task.players.items():
        if not isinstance(each, Opponent):
            probabilities = measure.tabular(TorchPolicy(each, name), states, task.deterministic)
        elif each.name == RANDOM:
            probabilities = states.uniform()
        else:  # a function or class, which is asked one observation at a time
            continue
        found[name] = measure.exploitability(states, probabilities)
    return found


def _print(evaluation: Evaluation, names: list[str], exploitability: dict[str, float]) -> None:
    console = OutputConsole.of_width(_WIDTH_OF_FILES)
    for i, name in enumerate(names):
        statistics = evaluation.statistics(i)
        label = f"{i}: {name}" if len(names) > 1 else name
        num_episodes = statistics["return"].num if statistics else 0
        console.print(f"{label}, {num_episodes} episodes", highlight=False, markup=False, emoji=False)
        table = Table("", *_COLUMNS, box=SIMPLE)
        for column in table.columns:
            column.overflow = "fold"  # a digit that is cut off changes a number
            column.justify = "right" if column.header else "left"
        for key, s in statistics.items():
            shown = (s.mean, s.median, s.std, s.min, s.max)
            mean, *rest = (number(value) for value in shown)
            table.add_row(Text(printable(key)), mean, interval_text(s), *rest)
        if name in exploitability:
            table.add_row("exploitability", f"{exploitability[name]:.4f}", "exact")
        console.print(table)
        scores = evaluation.task_scores(i)
        if scores:
            mean, median = map(number, scores.values())
            console.print(
                f"normalised score of the tasks, each at most 1: mean {mean}, median {median}\n", highlight=False
            )
    _print_scores(evaluation, len(names), console)
    for sentence in evaluation.remarks.values():
        console.print(sentence, highlight=False, markup=False, emoji=False)
    if evaluation.num_env_faults:
        console.print(f"{evaluation.num_env_faults} environments failed and were rebuilt; their episodes do not count")


def _print_scores(evaluation: Evaluation, num_policies: int, console: Console) -> None:
    """Who fared how against whom, where any two have met."""
    policies = range(num_policies)
    scores = [[evaluation.score_against(i, j) for j in policies] for i in policies]
    if num_policies == 1 or not any(any(row) for row in scores):
        return
    what = "mean score in a match of a row against a column (of how many), and win rate against all others"
    console.print(what, highlight=False)
    table = Table(box=SIMPLE)
    for heading in ("", *map(str, policies), "win rate", "95 % interval"):
        table.add_column(heading, justify="right", overflow="fold")
    for i, row in enumerate(scores):
        won = evaluation.win_rate(i)
        shown = ["-" if s is None else f"{number(s.mean)} ({s.num})" for s in row]
        table.add_row(str(i), *shown, *(("-", "-") if won is None else (f"{won.mean:.1%}", interval_text(won, ".1%"))))
    console.print(table)


def _result(
    evaluation: Evaluation, players: Mapping[str, Contestant], num_own: int, exploitability: dict[str, float]
) -> dict[str, Any]:
    """num_own: the players of the run itself, which are the first."""
    from sf.evaluation.play.opponents import Opponent  # noqa: PLC0415

    indices = range(len(players))
    # Of the first policy against those of --against; without, against all others, or who is part of the environment.
    first = evaluation.share_won(0, *indices[num_own:])
    return {
        "env_faults": evaluation.num_env_faults,
        "win_rate": first and first.mean,
        "policies": [
            {
                "checkpoint": name,
                "env_steps": None if isinstance(each, Opponent) else each.state["env_steps"],
                "exploitability": exploitability.get(name),
                "statistics": {key: value._asdict() for key, value in evaluation.statistics(i).items()},
                "task_scores": evaluation.task_scores(i),
                "scores": [s._asdict() if (s := evaluation.score_against(i, j)) else None for j in indices],
                "win_rates": [s._asdict() if (s := evaluation.win_rate(i, j)) else None for j in indices],
            }
            for i, (name, each) in enumerate(players.items())
        ],
        "episodes": [dataclasses.asdict(episode) for episode in evaluation.episodes],
    }


def _csv(evaluation: Evaluation, names: list[str]) -> str:
    from sf.evaluation.results import named_apart  # noqa: PLC0415

    stats = sorted({name for episode in evaluation.episodes for name in episode.stats})
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow([*_CSV_COLUMNS, *(named_apart(name, _CSV_COLUMNS) for name in stats)])
    for e in evaluation.episodes:
        own = [names[e.policy_idx], e.match_idx, e.agent_idx, e.episode_return, e.num_steps, e.num_frames]
        writer.writerow([*own, *(e.stats.get(name, "") for name in stats)])
    return printable(text.getvalue())
