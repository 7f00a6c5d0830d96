"""Describes the networks of a run: what each policy sees and does, and what its critic sees beside that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import torch

from sf.config import Config
from sf.config.flags.model import is_hidden
from sf.config.roles import kinds_played, roles_of
from sf.config.schedules import Schedule, parse
from sf.envs import ActionSpec, EnvOptions, EnvSpec
from sf.envs.added.central_state import with_central_state
from sf.envs.added.clock import CLOCK, with_clock
from sf.envs.errors import UsageError
from sf.envs.groups.policy_spec import require_playable, spec_of_kinds
from sf.envs.spaces.actions import ACTION_MASK
from sf.learner.demonstrations.field import with_demonstrated_rows
from sf.learner.intrinsic.curiosity import Curiosity
from sf.learner.intrinsic.field import NONE, with_intrinsic_rows
from sf.model.building import build_model
from sf.run.plan import PolicyNetwork
from sf.run.startup.describing import describe
from sf.run.startup.levels import with_level_rows
from sf.run.startup.search import with_search_rows
from sf.run.startup.teachers import with_teacher_rows
from sf.run.tasks.groups import require_tasks

MODEL = "actor_critic"  # ours
_ROWS_OF_FEATURES = (
    with_level_rows,
    with_intrinsic_rows,
    with_teacher_rows,
    with_demonstrated_rows,
    with_search_rows,
)


class DescribedNetworks(NamedTuple):
    """config: with the clock of the critic chosen. spec: of all agents. teams: see `Plan`. networks: [P]."""

    config: Config
    spec: EnvSpec
    teams: tuple[int, ...]
    networks: list[PolicyNetwork]


def describe_networks(config: Config) -> DescribedNetworks:
    """Makes the environment, to find what each policy sees and does. Raises ValueError for what cannot work."""
    spec = describe(config.run.env, config.environment)
    require_tasks(config, spec)
    config = _with_clock_chosen(config, spec)
    if config.model.critic_clock:
        spec = with_clock(spec)
    for with_rows in _ROWS_OF_FEATURES:
        spec = with_rows(config, spec)
    spec, teams = _with_central_critic(config, spec)
    return DescribedNetworks(config, spec, teams, _networks(config, spec))


def _with_clock_chosen(config: Config, spec: EnvSpec) -> Config:
    """`critic_clock` as true or false. Somebody's own network knows of no clock."""
    if CLOCK in spec.obs_space.spaces:
        raise UsageError(f"{config.run.env} has an observation called {CLOCK!r}, which is the critic's: rename it")
    bootstrap, clock = config.learner.bootstrap_truncated, config.model.critic_clock
    is_own = config.model.model != MODEL
    if clock is True and is_own:
        raise UsageError(f"critic_clock is true, but the model {config.model.model} does not support it: leave it out")
    if clock == "auto":
        clock = not is_own and (spec.has_own_time_limit if bootstrap == "auto" else not bootstrap)
    return config.replace(critic_clock=clock)


def _with_central_critic(config: Config, spec: EnvSpec) -> tuple[EnvSpec, tuple[int, ...]]:
    """Returns the spec with what the critic alone sees, and the teams [A] of agents that it sees at once, if any.

    Raises UsageError where there is no such thing to see.
    """
    model, env = config.model, config.run.env
    spec = _with_hidden_obs(config, spec)
    if not model.has_central_critic:
        return spec, ()
    if model.model != MODEL:
        flag = "critic_obs" if model.critic == "own" else "critic"
        raise UsageError(f"the model {model.model} has no critic that sees more than the policy: leave {flag} out")
    if model.critic == "own" and model.mixer == "none":
        return spec, ()
    if model.critic == "state":
        spec = with_central_state(spec, env)
    flag = f"critic is {model.critic}" if model.critic in ("team", "all") else f"mixer is {model.mixer}"
    if spec.num_agents == 1 and (model.critic != "state" or model.mixer != "none"):
        raise UsageError(f"{flag}, but {env} has one agent: leave it out")
    if model.critic == "team" and not spec.teams:
        raise UsageError(f"critic is team, but no teams of {env} are known: name them with --teams, or take all")
    if model.mixer != "none" and not _are_paid_together(config.environment, spec, parse(config.run.anneal)):
        raise UsageError(
            f"mixer is {model.mixer}, for agents that are paid together: set --share_reward team (all where there is "
            "one team), or --team_spirit 1"
        )
    if config.learner.trajectory_priority:
        raise UsageError(
            f"{flag}, for which minibatches have all agents of an environment, and trajectory_priority draws them one "
            "by one: leave one of the two out"
        )
    return spec, spec.teams or (0,) * spec.num_agents


def _with_hidden_obs(config: Config, spec: EnvSpec) -> EnvSpec:
    """Returns the spec with what the policy does not see. Raises UsageError for patterns of no observation."""
    model, env = config.model, config.run.env
    if model.teacher_obs and not config.learner.teacher:
        raise UsageError("teacher_obs is for what a teacher alone sees: name one with --teacher, or leave it out")
    if model.teacher_obs and model.model != MODEL:
        raise UsageError(f"teacher_obs is given, but the model {model.model} does not support it: leave it out")
    for pattern in model.hidden_obs:
        if not any(is_hidden(key, (pattern,)) for key in spec.obs_space if key != ACTION_MASK):
            flag = "critic_obs" if pattern in model.critic_obs else "teacher_obs"
            raise UsageError(
                f"{flag} has {pattern!r}, and no observation of {env} is called so (it has "
                f"{', '.join(key for key in spec.obs_space if key not in spec.for_critic)}): name one of them"
            )
    hidden = tuple(key for key in spec.obs_space if is_hidden(key, model.hidden_obs) and key != ACTION_MASK)
    return replace(spec, for_critic=(*spec.for_critic, *hidden))


def _networks(config: Config, spec: EnvSpec) -> list[PolicyNetwork]:
    """Returns the network of each policy, [P]. One that plays some kinds of agents has their spaces alone, unless its
    critic has to read the rows of the others.

    Raises UsageError if a policy cannot play all of its kinds.
    """
    roles, made = roles_of(config.population, spec, config.run.env), dict[tuple[int, ...], PolicyNetwork]()
    reads_others = config.model.critic in ("team", "all") or config.model.mixer != "none"
    kinds_of = [kinds_played(roles, spec, policy_id) for policy_id in range(config.population.num_policies)]
    for kinds in kinds_of:
        if kinds not in made:
            require_playable(config.run.env, spec, kinds)
            own = spec if reads_others else spec_of_kinds(config.run.env, spec, kinds, config.environment)
            with torch.device("meta"):
                model = build_model(config.model, own.obs_space, ActionSpec.of(own.action_space))
                beside = 0 if config.learner.intrinsic == NONE else Curiosity(config, own.obs_space).num_numbers
            made[kinds] = replace(PolicyNetwork.of(own, model), num_beside=beside)
    return [made[kinds] for kinds in kinds_of]


def _are_paid_together(options: EnvOptions, spec: EnvSpec, schedules: Sequence[Schedule]) -> bool:
    """Returns whether all agents of each team have one reward. schedules: of `--anneal`."""
    is_one_spirit = options.team_spirit == 1.0 and all(each.name != "team_spirit" for each in schedules)
    return (
        options.share_reward == "team" or is_one_spirit or (options.share_reward == "all" and len(set(spec.teams)) < 2)
    )
