"""`sf-league`: how strong players are: those of a run that trains against past selves, or of a tournament."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import tyro

from sf.config.input_file import is_file
from sf.envs import describe
from sf.envs.field_types import require
from sf.evaluation.endless import OF_SEVERAL_AGENTS, EndlessWatch
from sf.tools.commands import cli
from sf.tools.commands.policy_flags import PolicyFlags
from sf.tools.report.outputs import require_outputs, write_json

if TYPE_CHECKING:
    from rich.console import Console

    from sf.league.record import Row
    from sf.league.standings import Standings
    from sf.league.tournament import PairResult, Tournament

_WIDTH_OF_FILES = 120  # columns, where the output is no terminal


@dataclass(frozen=True)
class LeagueFlags(PolicyFlags):
    """Whose results to show, or who plays, and where the results go."""

    players: tyro.conf.Positional[tuple[str, ...]]
    """One run that trains against its past selves, or the folder of a tournament (--results): show its results. Two or
    more players: a tournament of all of them. A player is a run, a checkpoint, hf:USER/NAME, zoo/NAME, random (random
    moves), search:N or search:N:RUN (tree search with N simulations a move, by random play or with a policy:
    docs/search.md), openspiel:mcts:N (OpenSpiel's own search), gtp:COMMAND (a program that plays Go:
    docs/openspiel.md), bot:NAME (a bot of the simulator, see docs/league.md), or module:Name (a function of the
    observation that returns an action, or a class with a method act). Of a run with several policies all of them
    play."""

    env: str | None = None
    """What is played, where no player is a trained policy, which would say it."""

    matches: int = 100
    """Matches of each pair of players: an even number, so that both play each seat equally often."""

    results: Path | None = None
    """Folder for the results of a tournament. They are written pair by pair, and the same command goes on where it was
    stopped. Default: they are only printed."""

    anchor: str | None = None
    """Player whose rating is 0. Default: the reference pool of a run is held, where it has one, else random at 0, where
    it plays, else the first player that is named."""

    reference: Path | None = None
    """A file of --json, of another tournament: those of its players that play here are held at its ratings."""

    num_workers: int | None = None
    """Processes. Default: one per core that the command may use."""

    num_envs_per_worker: int = 4
    """Environments that each worker steps together."""

    device: Literal["cpu", "cuda"] = "cpu"
    """Device of the networks."""

    json: Path | None = None
    """Write ratings, shares and the payoff table to this file."""

    png: Path | None = None
    """Draw win rates and ratings to this file: .png, .svg or .pdf. Needs the extra plot."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("matches", "num_workers", "num_envs_per_worker"):
            value = getattr(self, name)
            require(value is None or value >= 1, f"{name} is {value}: at least 1")
        even = "an even number, so that both play each seat equally often"
        require(self.matches % 2 == 0, f"matches is {self.matches}: {even}")
        is_held = self.anchor is not None and self.reference is not None
        require(not is_held, f"anchor is {self.anchor}, but reference holds players, too: leave one out")


def main() -> None:
    """Print, and write; end with 0, 1 after a failure, 2 after a user's mistake, 130 after Ctrl-C."""
    flags = cli.parse_flags(
        LeagueFlags,
        "sf-league",
        "Rate players by their matches: of a run that trains against its past selves, or of a tournament. Example: "
        "sf-league zoo/connect_four random --matches 100",
    )
    with cli.exit_status():
        _run(flags)


def _run(flags: LeagueFlags) -> None:
    from sf.league import record  # noqa: PLC0415  torch is slow to import: not for --help
    from sf.league.standings import standings  # noqa: PLC0415
    from sf.metrics.display.console import OutputConsole  # noqa: PLC0415
    from sf.tools.report.league.held import env_of, held_by  # noqa: PLC0415
    from sf.tools.report.league.tables import print_standings  # noqa: PLC0415

    require_outputs(flags.json, flags.png)
    console = OutputConsole.of_width(_WIDTH_OF_FILES)
    if not flags.players:
        raise ValueError("no player is named: for example sf-league zoo/connect_four random")
    if len(flags.players) == 1:
        title = flags.players[0]
        rows = record.read(_record_of(title))
        env = env_of(Path(title), rows)
        held = held_by(flags.anchor, flags.reference, env, rows, Path(title))
    else:
        title, env, held, rows = _tournament(flags, console)
    result = standings(rows, held)
    print_standings(console, title, result)
    write_json(flags.json, _as_json(title, env, result))
    if flags.png is not None:
        from sf.tools.report import style  # noqa: PLC0415  matplotlib is an extra
        from sf.tools.report.league.figure import draw  # noqa: PLC0415

        style.save(draw(title, result), flags.png, "png")


def _record_of(named: str) -> Path:
    from sf.league import record  # noqa: PLC0415

    path = Path(named) / record.NAME
    if not is_file(path):
        raise ValueError(
            f"{named} has no {record.NAME}: name a run with --past_share, the --results of a tournament, or at least "
            "two players for a new tournament"
        )
    return path


def _tournament(flags: LeagueFlags, console: Console) -> tuple[str, str, Mapping[str, float], list[Row]]:
    """Play what is missing. Returns what the tournament is about, the environment, the ratings that are held, and the
    record."""
    from sf.evaluation.play import opponents  # noqa: PLC0415
    from sf.league.ratings import held_ratings  # noqa: PLC0415
    from sf.league.reference import played  # noqa: PLC0415
    from sf.league.tournament import Tournament, opened, play, players_of, require_matches  # noqa: PLC0415
    from sf.tools.report.league.held import held_by  # noqa: PLC0415

    task = _task(flags)
    # Policies go ahead of all others, wherever they are named.
    first = flags.players[0] if opponents.is_name(flags.players[0]) else next(iter(task.players))
    tournament = Tournament(task, flags.matches, first)
    players = players_of(tournament)
    env = played(task.env, task.options.kwargs)
    held = held_by(flags.anchor, flags.reference, env, players, Path())
    held = held_ratings((), [player.name for player in players], held)
    num_agents = require_matches(task)
    with opened(flags.results, tournament) as results:
        num_done = len(results.finished)
        if num_done:
            console.print(f"{num_done} of {len(tournament.pairs)} pairs were played before", highlight=False)
        with _said_how_to_go_on(flags):
            remarks: set[str] = set()
            for pair in play(tournament, results, num_agents, _Progress(tournament)):
                num_done += 1
                _say(console, pair, f"{num_done} of {len(tournament.pairs)}", remarks)
        return f"{task.env}, {flags.matches} matches of each pair", env, held, results.rows


def _task(flags: LeagueFlags) -> Any:
    from sf.evaluation.play import opponents  # noqa: PLC0415
    from sf.evaluation.play.contestants import contest_in, find_contest  # noqa: PLC0415
    from sf.evaluation.task import EvaluationTask  # noqa: PLC0415
    from sf.system.processes.torch_runtime import resolve_device  # noqa: PLC0415

    known: dict[str | Path, str] = {}
    for name in flags.players:
        path = Path(name)
        player = path.resolve() if path.exists() and not opponents.is_name(name) else name
        if player in known:
            twice = f"{name} is named twice" if known[player] == name else f"{known[player]} and {name} are the same"
            raise ValueError(f"{twice}: each player once")
        known[player] = name
    policies = [name for name in flags.players if not opponents.is_name(name)]
    if policies and flags.env is not None:
        find_contest(Path(policies[0]), (), flags.checkpoint, None, (), flags.trust)  # says where there is none
        raise ValueError(f"env is {flags.env}, but what is played is that of {policies[0]}: leave it out")
    if policies:
        others = tuple(name for name in flags.players if name != policies[0])
        found = find_contest(Path(policies[0]), others, flags.checkpoint, None, flags.overrides, flags.trust)
    elif flags.env is not None:
        found = contest_in(flags.env, flags.players, flags.overrides)
    else:
        raise ValueError(
            f"{', '.join(flags.players)}: none of them is a trained policy, so the environment is not known: add "
            "--env, or a trained policy such as a run"
        )
    return EvaluationTask(
        env=found.config.run.env,
        options=found.options,
        players=found.players,
        num_episodes=flags.matches,
        objective=found.config.population.pbt_target_objective,
        seed=flags.seed,
        deterministic=flags.deterministic,
        device=resolve_device(flags.device),
        num_workers=flags.num_workers,
        num_envs_per_worker=flags.num_envs_per_worker,
    )


@contextmanager
def _said_how_to_go_on(flags: LeagueFlags) -> Iterator[None]:
    """Around the matches: where Ctrl-C ends them, a sentence says what is kept."""
    try:
        yield
    except KeyboardInterrupt:
        if flags.results is None:
            sentence = "stopped; nothing is kept: with --results DIR a tournament can go on"
        else:
            sentence = f"stopped; the same command goes on: {shlex.join(['sf-league', *sys.argv[1:]])}"
        cli.say_below_progress(sentence)
        raise


class _Progress:
    """One line on a terminal, of the pair that plays; a sentence, if none of its episodes ends."""

    def __init__(self, tournament: Tournament) -> None:
        self._num_pairs = len(tournament.pairs)
        self._endless = EndlessWatch(
            cli.say_below_progress,
            OF_SEVERAL_AGENTS,
            lambda: describe(tournament.task.env, tournament.task.options).time_limit,
        )

    def __call__(self, number: int, pair: tuple[str, str], done: int, total: int) -> None:
        if sys.stderr.isatty():
            of_pair = f"pair {number + 1} of {self._num_pairs}, {pair[0]} and {pair[1]}: {done} of {total} episodes"
            print(f"\r\033[K{of_pair}" if done < total else "\r\033[K", end="", file=sys.stderr, flush=True)
        self._endless(done, total)


def _say(console: Console, pair: PairResult, which: str, remarks: set[str]) -> None:
    """The result of a pair, when it is over. remarks: what has been said of the environment."""
    from sf.league.standings import payoffs  # noqa: PLC0415

    table = payoffs(pair.players, pair.matches)
    won = f"{table.win_rate[0, 1]:.1%}" if pair.matches else "-"
    first, second = pair.players
    lines = [f"{which}: {first} has won {won} of {len(pair.matches)} matches against {second}"]
    if pair.env_faults:
        lines.append(f"{pair.env_faults} environments failed and were rebuilt; their matches do not count")
    lines += [remark for remark in pair.remarks if remark not in remarks]
    remarks |= {*pair.remarks}
    for line in lines:
        console.print(line, highlight=False, markup=False, emoji=False)


def _as_json(title: str, env: str | None, result: Standings) -> Mapping[str, Any]:
    """`sf.league.reference` reads it, too."""
    table = result.payoffs
    return {
        "title": title,
        "env": env,
        "anchor": next(iter(result.held)) if len(result.held) == 1 else None,
        "held": dict(result.held),
        "players": [_plain(standing) for standing in result.players],
        "win_rates": table.win_rate.tolist(),
        "mean_scores": table.mean_score.tolist(),
        "num_matches": table.num_matches.tolist(),
        "curves": {name: [_plain(point) for point in curve] for name, curve in result.curves.items()},
        "progress": None if result.progress is None else _plain(result.progress),
        "missing": list(result.missing),
    }


def _plain(value: Any) -> Any:
    """Named tuples as objects."""
    if hasattr(value, "_asdict"):
        return {name: _plain(part) for name, part in value._asdict().items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(part) for part in value]
    return value.tolist() if hasattr(value, "tolist") else value
