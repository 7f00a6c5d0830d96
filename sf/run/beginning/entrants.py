"""The players that a run begins with, and the ratings at which they are held: found before anything starts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sf.config import Config
from sf.envs import EnvSpec
from sf.envs.errors import UsageError
from sf.league.reference import played
from sf.players.entrants import Entrant, find_entrants
from sf.players.reference import find_reference
from sf.storage.run_dir import RunDir


def entrants_of(config: Config, spec: EnvSpec) -> Mapping[str, Entrant]:
    """By their names in the pool. Raises ValueError where one cannot play, or nobody plays against anybody."""
    if not config.players.with_players:
        return {}
    if spec.num_agents < 2:
        raise UsageError(
            f"past_share is {config.players.past_share}, but {config.run.env} has one agent, so there is nobody to "
            "play against: leave it out"
        )
    run = config.run
    entrants = find_entrants(
        config.players.players, run.env, config.environment, spec, _run_dir(config), run.trust, _resumes(config)
    )
    weights = config.players.opponent_weights
    if weights and len(weights) != len(entrants):
        raise UsageError(
            f"opponent_weights has {len(weights)} numbers, but there are {len(entrants)} players, since a run with "
            "several policies is among them: name a checkpoint of each policy"
        )
    return entrants


def reference_of(config: Config, entrants: Mapping[str, Entrant]) -> Mapping[str, float]:
    """See `sf.players.reference.find_reference`."""
    what = played(config.run.env, config.environment.kwargs)
    return find_reference(config.players.reference_ratings, what, entrants, _run_dir(config), _resumes(config))


def _resumes(config: Config) -> bool:
    return config.run.restart_behavior == "resume"


def _run_dir(config: Config) -> Path:
    return RunDir.at(config.run.train_dir, config.run.experiment_name).path
