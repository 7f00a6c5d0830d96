"""Finds the levels of a run, says whether they can be chosen, and how probable each is when a run goes on."""

from __future__ import annotations

from dataclasses import replace

from sf.config import Config
from sf.config.schedules import ENV, parse
from sf.envs import EnvSpec, UsageError
from sf.envs.added.episode_options import LEVEL, ranges_asked
from sf.learner.checkpoints.content import Origin
from sf.learner.levels import LevelScores
from sf.run.memory import RunMemory
from sf.shared.levels import Levels
from sf.storage import checkpoint


def with_level_rows(config: Config, spec: EnvSpec) -> EnvSpec:
    """Returns the spec with the level in the rows where learners choose levels. Raises UsageError if they cannot."""
    if config.sampler.level_choice != "plr":
        return spec
    env = config.run.env
    if LEVEL not in spec.schedulable:
        raise UsageError(
            f"level_choice is plr, and {env} declares no levels: give it an attribute `levels`, see docs/curricula.md"
        )
    if any(schedule.name == ENV + LEVEL for schedule in parse(config.run.anneal)):
        raise UsageError(f"level_choice is plr, which decides about levels: leave {ENV}{LEVEL} out of anneal")
    if config.model.has_central_critic:
        raise UsageError(
            "level_choice is plr, which needs the values of policy workers, and a central critic has none there: leave "
            "one of both out"
        )
    if config.sampler.rollout == 1:
        raise UsageError("level_choice is plr, which needs trajectories of 2 steps or more: raise rollout")
    return replace(spec, optional_fields=(*spec.optional_fields, LEVEL))


def levels_of_run(config: Config, spec: EnvSpec) -> range:
    """Returns the levels that learners choose from."""
    low, high = ranges_asked(spec, config.environment.option_ranges)[LEVEL]
    return range(round(low), round(high) + 1)


def begin_levels(memory: RunMemory, levels: Levels) -> None:
    """Write the probabilities of each policy as its learner will: rollout workers begin episodes before that is
    ready."""
    for policy_id in range(memory.plan.num_policies):
        path = checkpoint.latest(memory.checkpoints_of(policy_id))
        if path is not None:
            scores = LevelScores.of(levels, memory.plan.config.sampler)
            scores.load(Origin.of(checkpoint.load(path)).levels)
            levels.arrays["probabilities"][policy_id] = scores.probabilities()
