"""Finds the players that a run meets from its start, and checks that they can play."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from sf.config import Config
from sf.config.roles import require_roles_of_players, roles_of
from sf.envs import EnvSpec
from sf.envs.errors import UsageError
from sf.evaluation.play.named_checkpoint import find_checkpoint, num_policies
from sf.league.players.entrants import Entrant, find_entrants, fitting_roles
from sf.league.players.pool_roles import PoolRoles, names_in_pool, once_each
from sf.run.plan import sides_of_match
from sf.storage.checkpoint import Checkpoint
from sf.storage.zoo.places import located
from sf.surgery.operated import Request
from sf.surgery.players import operated_player
from sf.surgery.subject import Subject

Operate = Callable[[Checkpoint, str], Checkpoint]


def find_pool(
    config: Config, spec: EnvSpec, specs: Sequence[EnvSpec], run_dir: Path, teams: Sequence[int] = ()
) -> tuple[Mapping[str, Entrant], PoolRoles]:
    """Returns the players that are in the pool from the start, by their names there, and which roles they may play.

    specs: [P] of each policy. run_dir: of the run. teams: see `sf.run.plan.Plan`. Raises ValueError where one cannot
    play, or nobody plays against anybody.
    """
    roles = roles_of(config.population, spec, config.run.env)
    require_roles_of_players(roles, config.population, config.players, spec)
    of_roles = [specs[policies[0]] for policies in dict.fromkeys(roles)]
    operate = _surgery_of_players(config, specs, teams) if config.run.surgery else None
    entrants = _entrants(config, spec, of_roles, run_dir, operate)
    fitting = fitting_roles(entrants, of_roles) if of_roles else None
    names = names_in_pool(config.players, entrants)
    return entrants, PoolRoles.of(config.players, spec, roles, config.population.num_policies, names, fitting)


def _surgery_of_players(config: Config, specs: Sequence[EnvSpec], teams: Sequence[int]) -> Operate:
    """Returns what operates on a player with the spaces of the run that this one begins from."""

    def operate(saved: Checkpoint, name: str) -> Checkpoint:
        source = located(str(config.run.init_from))
        num = num_policies(source)
        before = [find_checkpoint(source, policy_id=policy_id % num)[1] for policy_id in range(len(specs))]
        subjects = [Subject.of_spec(config.model, own, teams) for own in specs]
        requests = [Request(subject, config, n, is_inexact=config.run.inexact) for n, subject in enumerate(subjects)]
        operated = operated_player(saved, name, before, requests)
        return saved if operated is None else operated.checkpoint()

    return operate


def _entrants(
    config: Config, spec: EnvSpec, of_roles: Sequence[EnvSpec], run_dir: Path, operate: Operate | None
) -> Mapping[str, Entrant]:
    if not config.players.with_players:
        return {}
    if spec.num_agents < 2:
        raise UsageError(
            f"past_share is {config.players.past_share}, but {config.run.env} has one agent, so there is nobody to "
            "play against: leave it out"
        )
    sizes = sorted(Counter(sides_of_match(config, spec)).values())
    if sizes[0] != sizes[-1] and config.population.policy_of is None:  # a role is played by players of its own
        raise UsageError(
            f"past_share is {config.players.past_share}, and the teams of {config.run.env} have {sizes[0]} to "
            f"{sizes[-1]} agents, so results of whole teams would not compare: make them equal by --teams, or set "
            "--mix_teams true"
        )
    run, resumes = config.run, config.run.restart_behavior == "resume"
    named = once_each(config.players)
    entrants = find_entrants(named, run.env, config.environment, spec, run_dir, run.trust, resumes, of_roles, operate)
    for flag in ("opponent_weights", "player_roles"):
        if getattr(config.players, flag) and len(named) != len(entrants):
            raise UsageError(
                f"{flag} has a value for each of {len(named)} players, but there are {len(entrants)}, since a run with "
                "several policies is among them: name a checkpoint of each policy"
            )
    return entrants
