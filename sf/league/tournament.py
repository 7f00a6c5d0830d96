"""A tournament: every two of some players meet in a fixed number of matches, with the seats shared evenly.

Called by `sf-league`. Each pair is an evaluation of its own (`sf.evaluation.task`), whose seed comes from that of the
tournament and the position of the pair. Its results are appended to the record when all of its matches are over. So a
tournament that was killed goes on with the first pair that is missing, and ends with the same record as one that was
not. Players play whole teams where they are known (`sf.envs.teams`). In a match of more than two sides both play half
of them, or one more in every other match.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from sf import envs
from sf.config.older import as_today
from sf.envs import EnvOptions
from sf.envs.seeding import env_seed
from sf.evaluation.play.opponents import Opponent
from sf.evaluation.results import Evaluation
from sf.evaluation.task import EvaluationTask, evaluate
from sf.league import record
from sf.league.record import Finished, Match, Player, Row, Settings
from sf.storage import checkpoint, output_file, run_lock
from sf.storage.run_dir import RunDir
from sf.storage.text_files import dumps


@dataclass(frozen=True)
class Tournament:
    """task: the players and their environment, and how they are evaluated. matches: of each pair, an even number.

    first: the player that joins the record first, and so is held at 0 where nothing else says who is; None: the first
    of the task. It changes no match.
    """

    task: EvaluationTask
    matches: int
    first: str | None = None

    @property
    def pairs(self) -> list[tuple[str, str]]:
        return list(combinations(self.task.players, 2))


class PairResult(NamedTuple):
    """Holds what was played of one pair. remarks: sentences on the environment."""

    players: tuple[str, str]
    matches: Sequence[Match]
    env_faults: int
    remarks: Sequence[str]


def require_matches(task: EvaluationTask) -> int:
    """The number of agents of a match. Raises ValueError where the environment has no matches."""
    num_agents = envs.describe(task.env, task.options).num_agents
    if num_agents < 2:
        raise ValueError(
            f"{task.env} has one agent, so nobody meets in it: compare scores with sf-eval RUN --against OTHERS"
        )
    return num_agents


class Results:
    """The record of a tournament, in a folder or in memory alone. Open it with `opened`."""

    def __init__(self, path: Path | None, rows: Sequence[Row]) -> None:
        self._path = path
        self.rows = list(rows)

    @property
    def finished(self) -> set[tuple[str, str]]:
        """The pairs whose matches are all there."""
        return {row.players for row in self.rows if isinstance(row, Finished)}

    def add(self, rows: Sequence[Row]) -> None:
        """Raises ValueError where they cannot be written."""
        if self._path is not None:
            try:
                record.append(self._path, rows)
            except OSError as error:
                raise _unwritable(self._path, error) from None
        self.rows += rows


@contextmanager
def opened(directory: Path | None, tournament: Tournament) -> Iterator[Results]:
    """The results so far, of nobody else while they are open. None: they are not written.

    Raises ValueError where the folder has another tournament, is that of a run, cannot be written, or is in use.
    """
    if directory is not None and RunDir(directory).config.is_file():
        raise ValueError(f"{directory} is a run of sf-train, not a tournament: name another --results")
    lock = nullcontext() if directory is None else run_lock.held(directory, flag="results")
    with lock:
        path = None if directory is None else directory / record.NAME
        results = Results(path, [] if path is None else _earlier(path, tournament))
        if not results.rows:
            results.add([settings_of(tournament), *players_of(tournament)])
        yield results


def play(
    tournament: Tournament,
    results: Results,
    num_agents: int,
    on_progress: Callable[[int, tuple[str, str], int, int], None],
) -> Iterator[PairResult]:
    """Play the pairs that are missing, one after the other, and add each to the results.

    on_progress: called with the number of the pair, the pair, the number of its episodes that are over, and of all.
    Raises what `evaluate` does.
    """
    task, finished = tournament.task, results.finished
    for number, pair in enumerate(tournament.pairs):
        if pair in finished:
            continue
        of_pair = replace(
            task,
            players={name: task.players[name] for name in pair},
            num_episodes=tournament.matches * num_agents // 2,
            seed=env_seed(task.seed, number),
        )
        evaluation = evaluate(of_pair, partial(on_progress, number, pair))
        matches = _matches(evaluation, pair)
        results.add([*matches, Finished(pair, evaluation.num_env_faults)])
        yield PairResult(pair, matches, evaluation.num_env_faults, list(evaluation.remarks.values()))


def settings_of(tournament: Tournament) -> Settings:
    """Returns what must be the same if a tournament goes on."""
    task = tournament.task
    values = {
        "env": task.env,
        "matches": tournament.matches,
        "seed": task.seed,
        "deterministic": task.deterministic,
        "objective": task.objective,
        "players": {
            name: None if isinstance(each, Opponent) else checkpoint.fingerprint(each)
            for name, each in task.players.items()
        },
        "options": asdict(task.options),
    }
    return Settings(json.loads(dumps(values)))


def players_of(tournament: Tournament) -> list[Player]:
    """Returns the players as they join the record."""
    return [
        Player(name)
        if isinstance(each, Opponent)
        else Player(name, env_steps=each.state["env_steps"], weights=checkpoint.weights_of(each))
        for name, each in sorted(tournament.task.players.items(), key=lambda player: player[0] != tournament.first)
    ]


def _earlier(path: Path, tournament: Tournament) -> list[Row]:
    """The rows of all pairs that are finished. What was played of another one is removed from the file."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = record.read(path) if path.exists() else []
    except OSError as error:
        if output_file.is_full(error):
            raise _unwritable(path, error) from None
        raise ValueError(f"{path} cannot be read or made ({error.strerror}): name another --results") from None
    if not rows:
        return []
    if not isinstance(rows[0], Settings):
        raise ValueError(f"{path} is not the record of a tournament: name another --results")
    _require_same(rows[0].values, settings_of(tournament).values, path.parent)
    ends = [number for number, row in enumerate(rows, start=1) if isinstance(row, Settings | Player | Finished)]
    whole = rows[: ends[-1]]
    joined = [row for row in whole if isinstance(row, Player)]
    missing = [player for player in players_of(tournament) if player not in joined]  # killed between the first rows
    if len(whole) < len(rows) or missing:
        whole += missing
        try:
            record.rewrite(path, whole)
        except OSError as error:
            raise _unwritable(path, error) from None
    return whole


def _unwritable(path: Path, error: OSError) -> ValueError:
    how = "make room there, and the same command goes on" if output_file.is_full(error) else "name another --results"
    return ValueError(f"{path} cannot be written ({error.strerror}): {how}")


def _require_same(there: Mapping[str, Any], here: Mapping[str, Any], directory: Path) -> None:
    """Raises ValueError where the tournament there is another one than this."""
    old, new = _compared(there), _compared(here)
    for name in new:
        if old.get(name) != new[name]:
            raise ValueError(
                f"{directory} has another tournament, where {name} was {old.get(name)!r}, and is {new[name]!r} here: "
                "name another --results"
            )


def _compared(values: Mapping[str, Any]) -> dict[str, Any]:
    """All settings by name: players in their order, as pairs are, then the checkpoint of each, and the options."""
    players = values.get("players", {})
    options = {**json.loads(dumps(asdict(EnvOptions()))), **as_today(values.get("options", {}))}
    more = {name: value for name, value in {**players, **options}.items() if name not in values}
    return {**values, "players": list(players), "options": None, **more}


def _matches(evaluation: Evaluation, pair: tuple[str, str]) -> list[Match]:
    """Returns the matches in which both took part. An agent that joined none is left out."""
    found = []
    for sides in evaluation.scores_of_matches().values():
        if len({policy_idx for policy_idx, _ in sides.values()}) == 2:
            seats = [sides[side_idx] for side_idx in sorted(sides)]
            found.append(Match(tuple(pair[policy_idx] for policy_idx, _ in seats), tuple(score for _, score in seats)))
    return found
