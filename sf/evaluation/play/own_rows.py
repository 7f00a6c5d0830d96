"""Players with the spaces of some kinds of agents, in an environment whose rows have those of all kinds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sf.envs import ActionSpec, EnvGroup, EnvSpec
from sf.evaluation.play.player import Actions, Actors, Obs, Player, PlayerInGroup
from sf.evaluation.play.policy import Policy
from sf.shared.policy_view import PolicyView, widened


def actors_in(group: EnvGroup, player: Player, num_actors: int, seed: int) -> Actors:
    """Returns the actors of a player, which see and act in the rows of this group."""
    if isinstance(player, PlayerInGroup):
        return player.actors_in_group(group, num_actors, seed)
    return in_rows_of(group.spec, player, player.actors(num_actors, seed))


def in_rows_of(spec: EnvSpec, player: Player, actors: Actors) -> Actors:
    """Returns the actors of the player as they are, or with its part of rows that have these spaces."""
    if not isinstance(player, Policy) or player.has_rows_of(spec):
        return actors
    action = ActionSpec.of(spec.action_space)
    view = PolicyView(EnvSpec(player.flat_obs_space, player.action_space, stored_in=spec))
    return _OwnRows(actors, view, (len(action.discrete_sizes),), (action.num_continuous,))


@dataclass(frozen=True)
class _OwnRows:
    """Has actors see their part of the rows. discrete, continuous: shapes of an action in the rows."""

    actors: Actors
    view: PolicyView
    discrete: tuple[int, ...]
    continuous: tuple[int, ...]

    def act(self, obs: Obs, first: np.ndarray, who: np.ndarray | None = None, deterministic: bool = False) -> Actions:
        actions = self.actors.act(self.view.observations(obs), first, who, deterministic)
        discrete, continuous = widened(actions.discrete, self.discrete), widened(actions.continuous, self.continuous)
        return actions._replace(discrete=discrete, continuous=continuous)
