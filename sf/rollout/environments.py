"""Makes the environments of a group in a rollout worker, and compares them with those that the run was planned for."""

from __future__ import annotations

import json
from dataclasses import replace

import gymnasium as gym

from sf import envs
from sf.envs import ActionSpec, EnvGroup, EnvOptions, UsageError
from sf.envs.added.central_state import CentralStateGroup
from sf.envs.added.clock import ADDED_FOR_CRITIC, ClockedGroup
from sf.envs.seeding import env_seed
from sf.rollout.args import RolloutWorkerArgs
from sf.rollout.scheduled import option_ranges
from sf.shared.rows import OBS


def make_envs(args: RolloutWorkerArgs, options: EnvOptions, group_idx: int, attempt: int, changes: int) -> EnvGroup:
    """Makes the environments of a group.

    attempt: 0 for the first environments of this group in this process, and one more each time they are rebuilt.
    changes: of its task.
    """
    key = (*args.seed_key, attempt, changes) if changes else (*args.seed_key, attempt)
    if args.scheduled is not None and (ranges := option_ranges(args.scheduled, policy_id=0)):
        options = replace(options, env_options=json.dumps({**options.option_ranges, **ranges}))
    group = envs.make_group(
        args.env,
        args.num_envs_per_group,
        options,
        seed=env_seed(args.seed, *key) if any(key) else args.seed,
        first_env_idx=group_idx * args.num_envs_per_group,
        core=args.core,
    )
    if args.with_state:
        group = CentralStateGroup(group, args.env)
    return ClockedGroup(group) if args.with_clock else group


def require_as_planned(args: RolloutWorkerArgs, group: EnvGroup) -> None:
    """Raises UsageError where agents, observations or actions are not those that memory was allocated for."""
    planned_actors = args.num_envs_per_group * args.assignment.num_agents
    if group.num_actors != planned_actors:
        raise UsageError(
            f"{args.env}: a group of its environments has {group.num_actors} agents in a rollout worker, and had "
            f"{planned_actors} when the run was planned: list the same `possible_agents` each time that "
            "it is made"
        )
    arrays = args.slots.arrays
    planned = {key: (rows.shape[2:], rows.dtype) for key, rows in arrays.named(OBS).items()}
    found = {key: (box.shape, box.dtype) for key, box in group.spec.obs_space.items()}
    action = ActionSpec.of(group.spec.action_space)
    layout = (len(action.discrete_sizes), action.num_continuous)
    seen = group.spec.obs_space.items()
    shown = gym.spaces.Dict({key: box for key, box in seen if key not in ADDED_FOR_CRITIC})
    fits = layout == tuple(arrays[name].shape[-1] for name in ("discrete", "continuous"))
    if planned != found or not fits or group.spec.action_space != args.action_space:
        raise UsageError(
            f"{args.env}: its spaces are {shown} and {group.spec.action_space} in a rollout worker, and "
            "were others when the run was planned: give it the same ones each time that it is made"
        )
