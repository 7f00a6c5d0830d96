"""Says which players of a pool a policy meets, where the agents of a match have different roles."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from sf.config.flags.players import PlayersConfig
from sf.config.roles import Roles, role_of_agents, role_of_policies, roles_of_patterns
from sf.envs import EnvSpec, UsageError
from sf.envs.teams import agent_names
from sf.league.record import Player


def once_each(config: PlayersConfig) -> Sequence[str]:
    """Returns the players as the user names them, without those that are named again for another role."""
    return list(dict.fromkeys(config.players)) if config.player_roles else config.players


def names_in_pool(config: PlayersConfig, joined: Collection[str]) -> list[str]:
    """Returns the names in the pool of `config.players`, in their order. joined: the names of `once_each`, which are
    more where a run with several policies is among them and there are no roles."""
    if not config.player_roles:
        return [*joined]
    in_pool = dict(zip(once_each(config), joined, strict=True))
    return [in_pool[name] for name in config.players]


@dataclass(frozen=True)
class PoolRoles:
    """Holds the roles of policies and of players. In a match a policy plays its own, and a player each other one.

    Without roles there is one, number 0, which a policy and a player share: half of the sides are the player's.
    of_policies: [P] the role of each policy, whose snapshots play it. num_roles: of a match. named: the roles that a
    player may play that has joined by its name. weights: how often to meet a player in a role; empty: by the choice
    of opponents.
    """

    of_policies: Sequence[int]
    num_roles: int = 1
    named: Mapping[str, Collection[int]] = field(default_factory=dict)
    weights: Mapping[tuple[str, int], float] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        config: PlayersConfig,
        spec: EnvSpec,
        roles: Roles,
        num_policies: int,
        names: Sequence[str],
        fitting: Mapping[str, Collection[int]] | None = None,
    ) -> PoolRoles:
        """names: of the players of `config` in the pool, in their order. fitting: by name, the roles whose spaces a
        player has; None: all of them.

        Raises UsageError where nobody is there to play a role that a policy is to be trained against, or a player
        cannot play its role.
        """
        of_policies, num_roles = role_of_policies(roles, num_policies), max(1, len({*roles}))
        may_play = [frozenset(range(num_roles))] * len(names)
        if config.player_roles:
            may_play = roles_of_patterns(config.player_roles, roles, spec)
        if fitting is not None:
            may_play = [its.intersection(fitting[name]) for name, its in zip(names, may_play, strict=True)]
            for name, its in zip(names, may_play, strict=True):
                if not its:
                    raise UsageError(f"players names {name}, which has the spaces of another role: change its pattern")
        named: dict[str, frozenset[int]] = {}
        weights: dict[tuple[str, int], float] = {}
        for idx, (name, its) in enumerate(zip(names, may_play, strict=True)):
            named[name] = named.get(name, frozenset()) | its
            for role in its if config.opponent_weights else ():
                weights[name, role] = weights.get((name, role), 0.0) + config.opponent_weights[idx]
        found = cls(of_policies, num_roles, named, weights)
        needed = {role for policy_id in range(num_policies - config.exploiters) for role in found.opposed(policy_id)}
        alone = needed.difference(*named.values())
        if config.waits_for_players and alone:
            agent = role_of_agents(roles, spec.num_agents).index(min(alone))
            raise UsageError(
                f"past_share is 1, and no player may play the role of {agent_names(spec)[agent]}: name one in "
                "--players, with its pattern in --player_roles"
            )
        return found

    @property
    def num_opposed(self) -> int:
        """Returns the number of roles that players have in a match."""
        return max(1, self.num_roles - 1)

    def opposed(self, policy_id: int) -> list[int]:
        """Returns the roles that players have in a match of this policy."""
        if self.num_roles == 1:
            return [0]
        return [role for role in range(self.num_roles) if role != self.of_policies[policy_id]]

    def may_play(self, player: Player, role: int) -> bool:
        if self.num_roles == 1:
            return True
        if player.policy is not None and player.policy < len(self.of_policies):
            return self.of_policies[player.policy] == role
        return role in self.named.get(player.name, ())

    def most_of_one_role(self) -> int:
        """Returns the number of weighted players of the role that has the most."""
        roles = [role for _, role in self.weights]
        return max((roles.count(role) for role in roles), default=0)
