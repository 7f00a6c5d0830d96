"""A match in which bots of the engine can take the place of agents."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack

import vizdoom

from sf.envs.doom.game import Game, Rows
from sf.envs.doom.matches.match import Match
from sf.envs.doom.matches.tasks import MatchSetup
from sf.envs.group import Episode

BOTS = {"doom": -1}
"""See `sf.envs.EnvSpec.bots`. How good it is, `--doom_bot_difficulty` says."""


class MatchWithStandIns(Game):
    """A `Game` of several agents. Who is played by a bot, the first actions of an episode say.

    Nobody but a client can be an agent's player in the engine, and a bot no client's. So an episode with bots is one of
    other engines: one for each agent that is left, and as many bots more. They are started when they are first needed,
    and kept. `reset` begins an episode without bots. Where the first actions name some, `begins_anew` drops it, and the
    next `reset` begins the one with bots.
    """

    def __init__(
        self,
        setup: MatchSetup,
        frameskip: int,
        shaped: bool,
        seed: int,
        make_engine: Callable[[], vizdoom.DoomGame] = vizdoom.DoomGame,
    ) -> None:
        """See `Match`."""
        self._setup = setup
        self._num_agents = setup.num_agents
        everybody = Match(setup, frameskip, shaped, seed, make_engine)
        self._matches = {setup.num_agents: everybody}  # by the number of agents in them
        self._start = lambda fewer: Match(fewer, frameskip, shaped, seed, make_engine)
        self._shaping: list[Sequence[float]] = [[*setup.shaping.weights.values()] if shaped else []] * setup.num_agents
        self._options: Mapping[str, float] = {}  # of the next matches
        self._has_begun = False  # with its first step
        self._agents = list(range(setup.num_agents))  # that play in this episode: the others are bots
        self._next_agents: list[int] | None = None  # of the episode that `begins_anew` has asked for
        self._started = ExitStack()
        self._started.callback(everybody.close)

    def reset(self, obs: Rows) -> None:
        """Start the next episode and write its first observations: zeros where a bot plays."""
        self._has_begun = self._next_agents is not None
        self._agents = self._next_agents or list(range(self._num_agents))
        self._next_agents = None
        if len(self._agents) not in self._matches:
            num_bots = self._setup.num_bots + len(self._bots)
            fewer = dataclasses.replace(self._setup, num_agents=len(self._agents), num_bots=num_bots)
            self._matches[len(self._agents)] = match = self._start(fewer)
            match.set_options(self._options)
            self._started.callback(match.close)
        for n, agent in enumerate(self._agents):
            self._match.set_shaping(n, self._shaping[agent])  # others may have had their place in these engines
        self._match.reset([obs[agent] for agent in self._agents])
        self._clear_those_of_bots(obs)

    def begins_anew(self, choices: Sequence[Sequence[int]]) -> bool:
        """Raises RuntimeError where nobody but bots is to play."""
        if self._has_begun:
            return False
        self._has_begun = True
        agents = [agent for agent, choice in enumerate(choices) if choice[0] != BOTS["doom"]]
        if not agents:
            raise RuntimeError("bots of Doom play with an agent only: let another player meet bot:doom")
        if len(agents) == self._num_agents:
            return False
        self._next_agents = agents
        return True

    def step(self, choices: Sequence[Sequence[int]], obs: Rows) -> tuple[list[float], bool, bool]:
        """See `Match`. Of an agent whose place a bot has, observation and reward are zero."""
        own = [[max(0, option) for option in choices[agent]] for agent in self._agents]
        own_rewards, terminated, truncated = self._match.step(own, [obs[agent] for agent in self._agents])
        rewards = [0.0] * self._num_agents
        for agent, reward in zip(self._agents, own_rewards, strict=True):
            rewards[agent] = reward
        self._clear_those_of_bots(obs)
        return rewards, terminated, truncated

    def set_options(self, values: Mapping[str, float]) -> None:
        self._options = values
        for match in self._matches.values():
            match.set_options(values)

    def set_shaping(self, agent_idx: int, weights: Sequence[float]) -> None:
        self._shaping[agent_idx] = weights
        if agent_idx in self._agents:
            self._match.set_shaping(self._agents.index(agent_idx), weights)

    def episodes(self, first_actor_idx: int) -> list[Episode]:
        of_agents = self._match.episodes(first_actor_idx)
        num_steps, num_frames = of_agents[0].num_steps, of_agents[0].num_frames
        found = {
            agent: dataclasses.replace(episode, actor_idx=first_actor_idx + agent)
            for agent, episode in zip(self._agents, of_agents, strict=True)
        }
        all_frags = [episode.episode_return for episode in of_agents] + self._match.frags_of_bots()
        for n, agent in enumerate(self._bots, len(self._agents)):
            frags, best_other = all_frags[n], max(all_frags[:n] + all_frags[n + 1 :])
            win = float(frags > best_other)
            stats = {"frags": frags, "win": win, "tie": float(frags == best_other), "true_objective": win}
            found[agent] = Episode(first_actor_idx + agent, frags, num_steps, num_frames, stats)
        return [found[agent] for agent in range(self._num_agents)]

    def returns(self) -> list[float]:
        frags = dict(zip(self._agents, self._match.returns(), strict=True))
        frags |= dict(zip(self._bots, self._match.frags_of_bots(), strict=False))
        return [frags[agent] for agent in range(self._num_agents)]

    def shown(self) -> list[vizdoom.DoomGame]:
        """Returns the engine that shows what each agent sees; where a bot has its place, what another agent sees."""
        engines = dict(zip(self._agents, self._match.shown(), strict=True))
        return [engines.get(agent, engines[self._agents[0]]) for agent in range(self._num_agents)]

    def close(self) -> None:
        self._started.close()

    @property
    def _match(self) -> Match:
        return self._matches[len(self._agents)]

    @property
    def _bots(self) -> list[int]:
        """Agents whose places they have."""
        return [agent for agent in range(self._num_agents) if agent not in self._agents]

    def _clear_those_of_bots(self, obs: Rows) -> None:
        for agent in self._bots:
            for row in obs[agent].values():
                row[...] = 0
