"""The schedules of `--anneal`: whether they can be, and their values when a run starts or goes on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sf.config import Config
from sf.config.schedules import ENV, Evolved, Schedule, Stage
from sf.envs import EnvSpec, UsageError
from sf.envs.added.episode_options import require_options
from sf.envs.teams import require_teams_for_rewards
from sf.learner.checkpoints.content import Origin
from sf.run.memory import RunMemory
from sf.shared.scheduled import Scheduled
from sf.storage import checkpoint


def require_schedules(config: Config, spec: EnvSpec, schedules: Sequence[Schedule]) -> None:
    """Raises UsageError for options that the environment lacks, and for team spirit without teams."""
    env, options = config.run.env, config.environment
    for schedule in schedules:
        low, high = sorted((schedule.start, schedule.end))
        if schedule.name.startswith(ENV):
            name = schedule.name.removeprefix(ENV)
            require_options(env, spec, {name: (low, high)}, "anneal")
            if name in options.option_ranges:
                raise UsageError(f"anneal and env_options both name {name}: leave one of both out")
        elif schedule.name == "team_spirit":
            require_teams_for_rewards(env, spec, replace(options, team_spirit=high))


def evolved_options(config: Config, spec: EnvSpec) -> tuple[Evolved, ...]:
    """Returns the options of the environment that evolution mutates. Raises UsageError for those that it cannot."""
    found = []
    for name in config.population.pbt_optimize_options:
        if name not in config.environment.option_ranges:
            raise UsageError(f"pbt_optimize_options names {name}: give it a first value with --env_options")
        low, high = config.environment.option_ranges[name]
        if low < high:
            raise UsageError(
                f"pbt_optimize_options names {name}, which env_options draws from a range: give it one value there"
            )
        found.append(Evolved(ENV + name, low, low))
    if found and not config.population.with_pbt:
        raise UsageError("pbt_optimize_options is for populations that evolve: set --with_pbt true, or leave it out")
    return tuple(found)


def begin_schedules(memory: RunMemory, scheduled: Scheduled) -> None:
    """Write the values of each policy as its learner will: rollout workers begin episodes before that is ready."""
    for policy_id in range(memory.plan.num_policies):
        path, stage = checkpoint.latest(memory.checkpoints_of(policy_id)), Stage()
        if path is not None:
            saved = Origin.of(checkpoint.load(path))
            stage = Stage(saved.env_steps, moves={name: each["moves"] for name, each in saved.annealing.items()})
        scheduled.write(policy_id, stage)
