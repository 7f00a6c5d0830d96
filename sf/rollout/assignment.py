"""Which policy, or player, plays which actor: drawn when an episode begins, and kept for the whole of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from sf.shared.seats import Seats


@dataclass(frozen=True)
class AssignmentRules:
    """num_policies: to draw from. mixed: each agent of an environment draws for itself, else one for all.

    rollouts_per_draw: a policy stays for this many rollouts, over several episodes where they are shorter. When another
    one comes in the middle of a rollout, the rest of that rollout is of no use to either. seats: of players that do not
    learn, where the run has any. past_share: of the matches are against one of them. waits_for_players: where no seat
    is open for such a match, policies play among themselves, and nobody is trained. targets: the one that each
    exploiter meets, by policy ids, see `sf.league.players.exploiters`. They are the last policies. sides: [A] of the
    agents of an environment, from 0: those of one side are drawn together, as a team; (): each agent by itself.
    roles: [A] the policies that may play each agent, see `sf.config.roles`. Against players that do not learn, a policy
    plays its role, and a player each other one; without roles a player has half of the sides.
    """

    num_policies: int
    mixed: bool
    num_agents: int  # of one environment
    rollouts_per_draw: int
    seats: Seats | None = None
    past_share: float = 0.0
    waits_for_players: bool = False
    targets: Mapping[int, int] = field(default_factory=dict)
    sides: tuple[int, ...] = ()
    roles: tuple[tuple[int, ...], ...] = ()

    @property
    def has_teams(self) -> bool:
        """Returns whether some agents are drawn together."""
        return 0 < len(set(self.sides)) < self.num_agents

    @property
    def draws_by_match(self) -> bool:
        """Whether all agents of an environment draw when a match begins. Agents may come and go within it."""
        draws_alone = self.mixed and not self.has_teams and not self.roles
        return self.seats is not None or (self.num_policies > 1 and self.num_agents > 1 and not draws_alone)

    @property
    def is_fixed(self) -> bool:
        """Whether one policy plays all agents for ever."""
        return self.num_policies == 1 and self.seats is None

    @property
    def num_mains(self) -> int:
        return self.num_policies - len(self.targets)


class Assignment:
    """The policies of the N actors of a group.

    policy: [N] int32, who plays each actor now, P + s for the player in seat s. players: those who have to be asked, P
    for all seats. identity: [N] int64, as `policy`, but P + i for player i of the pool. learner: [N] int32, who learns
    from the rows: as `policy`, but P, which is no policy, for all agents of a match that waits for players. ended_with:
    [N] int32, `learner` as it was in the last step.
    """

    def __init__(
        self, rules: AssignmentRules, num_actors: int, rollout: int, rng: np.random.Generator, group_idx: int = 0
    ) -> None:
        self._rules = rules
        self.past_share = rules.past_share  # of the matches that are drawn from now on
        self._steps_at_least = rules.rollouts_per_draw * rollout
        self._rng = rng
        self._group_idx = group_idx
        self._sides = np.array(rules.sides or range(rules.num_agents))  # [A]
        self._num_sides = int(self._sides.max()) + 1
        _, firsts = np.unique(self._sides, return_index=True)
        # [A] The agent whose draw each agent follows.
        self._leaders = firsts[self._sides] if rules.mixed else np.zeros(rules.num_agents, np.int64)
        num_envs = num_actors // rules.num_agents
        self._roles_of_mains = [tuple(each for each in own if each < rules.num_mains) for own in rules.roles]
        self._age = np.zeros(num_actors, np.int64)  # steps since the draw
        self._seats: list[list[int]] = [[] for _ in range(num_envs)]  # where players sit that play in each environment
        self.policy = np.zeros(num_actors, np.int32)
        self.identity = np.zeros(num_actors, np.int64)
        self.learner = np.zeros(num_actors, np.int32)
        self.ended_with = np.zeros(num_actors, np.int32)
        self.players: list[int] = []
        if rules.seats is None:
            self._draw(np.ones(num_actors, bool))
        else:
            self._draw_matches(np.arange(num_envs))
        self.ended_with[:] = self.learner

    def after_step(self, begins: np.ndarray) -> bool:
        """Draws who plays the games that begin, where the last draw is old enough. Called unless the rules are fixed.

        begins: [N] bool, whose next observation begins a game. It is the same for all agents of an environment where
        `rules.draws_by_match`. Returns whether `learner` may have changed.
        """
        self.ended_with[:] = self.learner
        self._age += 1
        if not begins.any():
            return False
        draws = begins & (self._age >= self._steps_at_least)
        if self._rules.seats is not None:
            draws |= begins & (self.learner != self.policy)  # a match that waits for players draws at once
            self._draw_matches(np.flatnonzero(draws[:: self._rules.num_agents]))
        elif draws.any():
            self._draw(draws)
        return True

    def close(self) -> None:
        """No match goes on: seats may be given to other players."""
        for env in range(len(self._seats)):
            self._leave(env)

    def _draw(self, who: np.ndarray) -> None:
        num_envs = len(who) // self._rules.num_agents
        if self._rules.roles:
            drawn = drawn_by_role(self._roles_of_mains, num_envs, self._rng)
        else:
            drawn = self._rng.integers(self._rules.num_mains, size=len(who), dtype=np.int32)
            drawn = drawn.reshape(num_envs, -1)[:, self._leaders]
        self._play(who, drawn.ravel()[who])

    def _draw_matches(self, envs: np.ndarray) -> None:
        """envs: [E'] in which a match begins."""
        for env in envs.tolist():
            self._leave(env)
            actors = np.zeros(len(self.policy), bool)
            first = env * self._rules.num_agents
            actors[first : first + self._rules.num_agents] = True
            is_against_a_player = self._rng.random() < self.past_share
            if is_against_a_player and self._meet_a_player(env, actors):
                continue
            if not self._rules.targets or not self._meet_an_exploiter(actors):
                self._draw(actors)
            if is_against_a_player and self._rules.waits_for_players:
                self.learner[actors] = self._rules.num_policies

    def _meet_a_player(self, env: int, actors: np.ndarray) -> bool:
        """A policy meets players of its seats. False where one is needed and none is open."""
        seats, num_policies = self._rules.seats, self._rules.num_policies
        assert seats is not None
        policy_id = int(self._rng.integers(self._rules.num_mains))
        players = []
        for opposed in range(seats.num_opposed):
            seat = seats.draw(policy_id, self._rng, opposed)
            player_idx = None if seat is None else seats.sit_down(self._group_idx, seat)
            if seat is None or player_idx is None:
                self._leave(env)
                return False
            self._seats[env].append(seat)
            players.append(player_idx)
        policy = np.full(self._rules.num_agents, policy_id)
        identity = policy.copy()
        for plays, seat, player_idx in zip(self._parts_of_players(policy_id), self._seats[env], players, strict=True):
            policy[plays] = num_policies + seat
            identity[plays] = num_policies + player_idx
        self._play(actors, policy)
        self.identity[actors] = identity
        return True

    def _parts_of_players(self, policy_id: int) -> list[np.ndarray]:
        """Returns the agents of each player in a match of this policy, [A] bool."""
        if not self._rules.roles:
            return [self._half_of_the_sides()]
        others = [role for role in dict.fromkeys(self._rules.roles) if policy_id not in role]
        return [np.array([own == role for own in self._rules.roles]) for role in others]

    def _meet_an_exploiter(self, actors: np.ndarray) -> bool:
        """An exploiter has as many matches as if each policy were as likely. False where it is no exploiter's turn."""
        policy_id = int(self._rng.integers(self._rules.num_policies))
        target_id = self._rules.targets.get(policy_id)
        if target_id is None:
            return False
        if self._rules.roles:
            policy = drawn_by_role(self._roles_of_mains, 1, self._rng)[0]
            for each in (target_id, policy_id):
                policy[[each in own for own in self._rules.roles]] = each
        else:
            policy = np.where(self._half_of_the_sides(), policy_id, target_id)
        self._play(actors, policy)
        return True

    def _half_of_the_sides(self) -> np.ndarray:
        """[A] bool, whose sides they are, in random order."""
        is_drawn = self._rng.permutation(self._num_sides) < self._num_sides // 2
        return is_drawn[self._sides]

    def _leave(self, env: int) -> None:
        for seat in self._seats[env]:
            assert self._rules.seats is not None
            self._rules.seats.get_up(self._group_idx, seat)
        self._seats[env].clear()

    def _play(self, actors: np.ndarray, policy: np.ndarray) -> None:
        """actors: [N] bool. policy: those that play them now."""
        self.policy[actors] = policy
        self.identity[actors] = policy
        self.learner[actors] = policy
        self.players = np.unique(np.minimum(self.policy, self._rules.num_policies)).tolist()
        self._age[actors] = 0


def drawn_by_role(roles: Sequence[Sequence[int]], num_envs: int, rng: np.random.Generator) -> np.ndarray:
    """Draws a policy for each role in each environment. Returns [E, A] int32."""
    drawn = np.zeros((num_envs, len(roles)), np.int32)
    for policies in dict.fromkeys(map(tuple, roles)):
        agents = [agent for agent, own in enumerate(roles) if tuple(own) == policies]
        drawn[:, agents] = rng.choice(np.array(policies, np.int32), num_envs)[:, None]
    return drawn
