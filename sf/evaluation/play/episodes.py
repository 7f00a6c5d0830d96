"""Policies that play episodes in a group of environments, for evaluation and `sf-enjoy`.

A match is what the agents of one environment play until none of them is left; with one agent it is an episode. An agent
that leaves a match and comes back has several episodes in it, and one that never joins has none. A table of lineups
says beforehand which policy plays which agent in which match. Environment e of E plays the matches e, e + E, e + 2E and
so on. Their number is fixed before the first begins: to take the matches that end first would favour short ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sf.envs import EnvGroup, Episode, StepResult
from sf.envs.groups.match_ends import MatchEnds
from sf.envs.spaces.actions import ActionSpec
from sf.envs.spaces.observations import obs_arrays
from sf.evaluation.play.own_rows import actors_in
from sf.evaluation.play.player import Player, ThinkingActors, Thought


@dataclass(frozen=True)
class Played:
    """An episode of one agent."""

    match_idx: int
    agent_idx: int
    policy_idx: int
    episode_return: float
    num_steps: int
    num_frames: int
    stats: Mapping[str, float]


def make_lineups(
    num_policies: int,
    num_agents: int,
    num_episodes: int,
    seed: int,
    sides: Sequence[int] = (),
    roles: Sequence[Sequence[int]] = (),
) -> np.ndarray:
    """The policies of each match, [M, A] policy indices, such that each policy has at least `num_episodes` episodes.

    sides: [A] the side of each agent, from 0: a policy plays whole sides (`sf.envs.teams.sides_of`); (): each agent is
    one. In every num_policies successive matches, each policy plays each side once. A match has as many different
    policies as it can, each about as often as the others; which policies meet is random.
    roles: [A] the policies that may play each agent, see `lineups_by_role`; (): all of them.
    """
    if roles:
        return lineups_by_role(roles, num_episodes, seed)
    rng = np.random.default_rng(seed)
    sides = sides or range(num_agents)
    blocks, num_sides = -(-num_episodes // num_agents), max(sides) + 1
    order = rng.permuted(np.tile(np.arange(num_policies), (blocks, 1)), axis=1)  # [blocks, P]
    shifts = rng.permuted(np.tile(np.arange(num_sides), (blocks, 1)), axis=1)  # [blocks, S]
    places = np.arange(num_policies)[:, None] + shifts[:, None, :]  # [blocks, P, S]: a Latin square of each block
    lineups = np.take_along_axis(order[:, :, None], places % num_policies, axis=1)
    return lineups.reshape(-1, num_sides)[:, list(sides)].astype(np.int32)


def lineups_by_role(roles: Sequence[Sequence[int]], num_episodes: int, seed: int) -> np.ndarray:
    """Returns the policies of each match [M, A]. Each has at least `num_episodes` episodes, as often as the others of
    its role.

    roles: [A] the policies that may play each agent, see `sf.config.roles`.
    """
    rng = np.random.default_rng(seed)
    longest = max(map(len, roles))
    num_matches = longest * -(-num_episodes // min(sum(own == other for other in roles) for own in roles))
    lineups = np.zeros((num_matches, len(roles)), np.int32)
    for policies in dict.fromkeys(map(tuple, roles)):
        agents = [agent for agent, own in enumerate(roles) if tuple(own) == policies]
        rounds = -(-num_matches // len(policies))
        order = rng.permuted(np.tile(np.array(policies, np.int32), (rounds, 1)), axis=1).ravel()[:num_matches]
        lineups[:, agents] = order[:, None]
    return lineups


class Play:
    """The matches of a group of environments. Call `step` until `is_done`.

    obs: {key: [N, ...]} what the actors see now. value: [N] the values of what they saw last. match_idx: [E] the match
    that each environment plays now. Matches beyond the lineups do not count.
    """

    def __init__(
        self,
        group: EnvGroup,
        players: Sequence[Player],
        lineups: np.ndarray,
        env_idxs: range,
        num_envs: int,
        seed: int,
        deterministic: bool,
    ) -> None:
        """lineups: [M, A] of all matches. env_idxs: of the environments of the group, among `num_envs`."""
        self._group = group
        self._lineups = lineups
        self._num_envs = num_envs
        self._deterministic = deterministic
        num_agents = group.spec.num_agents
        n = group.num_actors
        seeds = (_mixed(seed, env_idxs.start, p) for p in range(len(players)))
        self._actors = [actors_in(group, player, n, own) for player, own in zip(players, seeds, strict=True)]
        self._agent_idx = np.tile(np.arange(num_agents), len(env_idxs))  # [N]
        self.match_idx = np.asarray(env_idxs)
        self._position = np.repeat(np.arange(len(env_idxs)), num_agents)  # [N] of the actor's environment in the group
        self._policy = np.zeros(n, np.int32)  # [N]
        # [N] of each actor's last action: its match, and who has chosen it.
        self._acted_in, self._acted_as = self.match_idx[self._position], self._policy
        self._ends = MatchEnds(n, num_agents)
        self._result = StepResult.empty(n)
        self.value = np.zeros(n, np.float32)
        self.obs = obs_arrays(group.spec.obs_space, n)
        self._rows = {key: list(rows) for key, rows in self.obs.items()}
        action_spec = ActionSpec.of(group.spec.action_space)
        self._discrete = np.zeros((n, len(action_spec.discrete_sizes)), np.int32)
        self._continuous = np.zeros((n, action_spec.num_continuous), np.float32)
        self._begun_anew: list[int] = []
        self._assign(np.ones(n, bool))
        group.reset(self._rows)

    @property
    def is_done(self) -> bool:
        """Returns whether every environment has played its matches."""
        return bool((self.match_idx >= len(self._lineups)).all())

    @property
    def first(self) -> np.ndarray:
        """[N] bool, whether what an actor sees begins an episode."""
        return self._ends.first

    @property
    def is_playing(self) -> np.ndarray:
        """[N] bool, whether the next action of an actor counts: not where its episode is over, and its reset comes.

        True for one step also of an agent that is absent when the environment starts, or is made anew after a fault.
        """
        return self._ends.in_episode | self._ends.first

    def thoughts(self) -> list[tuple[int, int, Thought]]:
        """Returns what is behind the last moves of players that search: for each move the match, the player, and why it
        was made. Call it before the match goes on."""
        found = []
        for policy_idx in np.unique(self._acted_as).tolist():  # nobody else has been asked
            actors = self._actors[policy_idx]
            if isinstance(actors, ThinkingActors):
                found += [(int(self._acted_in[n]), policy_idx, why) for n, why in sorted(actors.thoughts().items())]
        return found

    def step(self) -> list[Played]:
        """One step of every environment. Returns the episodes that ended with it, of matches that count."""
        self._acted_in, self._acted_as = self.match_idx[self._position], self._policy.copy()
        for policy_idx in np.unique(self._policy):
            who = np.flatnonzero(self._policy == policy_idx)
            actions = self._actors[policy_idx].act(
                {key: rows[who] for key, rows in self.obs.items()}, self.first[who], who, self._deterministic
            )
            self._discrete[who], self._continuous[who] = actions.discrete, actions.continuous
            self.value[who] = actions.value
        ended = self._group.step(self._discrete, self._continuous, self._rows, self._result)
        is_cut, is_over = self._ends.after_step(self._result)
        self._begun_anew += self.match_idx[is_cut].tolist()
        played = [self._played(episode) for episode in ended if self._counts(episode)]
        self.match_idx = self.match_idx + self._num_envs * is_over  # the environment resets then
        self._assign(self.first)
        return played

    def pop_begun_anew(self) -> list[int]:
        """Matches that have begun anew before their end since the last call, as after a fault: episodes of them that
        `step` returned before do not count."""
        begun_anew, self._begun_anew = self._begun_anew, []
        return begun_anew

    def _counts(self, episode: Episode) -> bool:
        return bool(self.match_idx[self._position[episode.actor_idx]] < len(self._lineups))

    def _played(self, episode: Episode) -> Played:
        n = episode.actor_idx
        return Played(
            match_idx=int(self.match_idx[self._position[n]]),
            agent_idx=int(self._agent_idx[n]),
            policy_idx=int(self._policy[n]),
            episode_return=episode.episode_return,
            num_steps=episode.num_steps,
            num_frames=episode.num_frames,
            stats=dict(episode.stats),
        )

    def _assign(self, who: np.ndarray) -> None:
        """Give actors that begin an episode to the policy that plays it. who: [N] bool."""
        in_lineups = np.minimum(self.match_idx, len(self._lineups) - 1)[self._position]  # what is beyond does not count
        self._policy[who] = self._lineups[in_lineups, self._agent_idx][who]


def _mixed(*numbers: int) -> int:
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> np.uint64(1))
