"""The spaces of a policy that plays some kinds of agents: those of its kinds, with nothing of the others.

The rows of a run have room for all kinds (`sf.envs.groups.kinds`). What one kind sees and does is the front of them:
the first numbers of each vector, the first heads and their first choices, and the first continuous numbers. So is the
union of some kinds. `sf.shared.policy_view` finds these numbers in the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import gymnasium as gym

from sf.envs.added.agent_index import is_shown, with_index
from sf.envs.added.clock import ADDED_FOR_CRITIC
from sf.envs.group import EnvSpec
from sf.envs.groups.kinds import AGENT_KIND, UnionOfKinds
from sf.envs.options import EnvOptions
from sf.envs.spaces.observations import ObsWriter
from sf.envs.spaces.unions import require_choices_or_numbers


def require_playable(env_id: str, spec: EnvSpec, kinds: Sequence[int]) -> None:
    """Raises UsageError if one policy cannot play all of these kinds."""
    require_choices_or_numbers(env_id, [spec.own_spaces[kind][1] for kind in kinds], _an_agent_of_each(spec, kinds))


def spec_of_kinds(env_id: str, spec: EnvSpec, kinds: Sequence[int], options: EnvOptions) -> EnvSpec:
    """Returns the spec of a policy that plays agents of these kinds alone.

    One kind has exactly its own spaces, and its index only with `--show_agent true` or in a team. Several have the
    union of theirs, with `agent_kind` as in the rows. spec: of all kinds, which is returned if the policy plays all.
    """
    if len(kinds) == len(spec.own_spaces):
        return spec
    agents, own_spaces = _an_agent_of_each(spec, kinds), tuple(spec.own_spaces[kind] for kind in kinds)
    writers = [
        ObsWriter(f"{env_id} (agents like {agent!r})", obs) for agent, (obs, _) in zip(agents, own_spaces, strict=True)
    ]
    if len(kinds) == 1:
        ((native, action),) = own_spaces
        obs_space = writers[0].space
    else:
        union = UnionOfKinds(env_id, writers, [action for _, action in own_spaces], agents)
        native = obs_space = gym.spaces.Dict({**union.obs.spaces, AGENT_KIND: spec.obs_space[AGENT_KIND]})
        action = union.action
    own = replace(
        spec,
        obs_space=obs_space,
        env_obs_space=native,
        action_space=action,
        kinds=() if len(kinds) == 1 else spec.kinds,
        own_spaces=own_spaces,
        stored_in=spec,
    )
    if is_shown(env_id, own, options):
        own = with_index(own)
    added = {key: spec.obs_space[key] for key in ADDED_FOR_CRITIC if key in spec.obs_space.spaces}
    obs_space = gym.spaces.Dict({**own.obs_space.spaces, **added})
    return replace(
        own, obs_space=obs_space, for_critic=tuple(key for key in spec.for_critic if key in obs_space.spaces)
    )


def _an_agent_of_each(spec: EnvSpec, kinds: Sequence[int]) -> list[str]:
    return [spec.agents[spec.kinds.index(kind)] for kind in kinds]
