"""A rollout worker's groups without any process: scripted environments, and policies that answer what is asked."""

import gymnasium as gym
import numpy as np
from allocated import allocate

from sf import envs
from sf.config import Config
from sf.envs import EnvSpec, Episode
from sf.envs.spaces.actions import ACTION_MASK
from sf.rollout.group import RolloutGroup
from sf.run.children.roles.role import Start
from sf.run.children.roles.rollout import ROLLOUT
from sf.run.learner_orders import Links

GROUP = 1  # the second one of the only worker
SPEC = EnvSpec(gym.spaces.Dict(obs=gym.spaces.Box(-1.0, 100.0, (1,), np.float32)), gym.spaces.Discrete(4), num_agents=2)


class Scripted:
    """Matches of two agents that end every third step, those of all environments at once."""

    def __init__(self, spec, num_envs, made):
        self.spec = spec
        self.num_actors = num_envs * spec.num_agents
        self.cuts, self.shaped, self.actions, self.is_closed = [], [], [], False
        self.made = made  # with these arguments
        self._num_steps = 0

    def reset(self, obs):
        self._show(obs)

    def step(self, discrete, continuous, obs, result):
        self._num_steps += 1
        self.actions.append(discrete[:, 0].tolist())
        ends = self._num_steps % 3 == 0
        result.reward[:] = self._num_steps
        result.truncated[:] = False
        result.valid[:] = True
        result.terminated[:] = result.first[:] = ends
        self._show(obs)
        return [Episode(n, float(n), 3, 3) for n in range(self.num_actors)] if ends else []

    def _show(self, obs):
        for n in range(self.num_actors):
            obs["obs"][n][...] = self._num_steps
            if ACTION_MASK in obs:
                obs[ACTION_MASK][n][...] = n % 2 == self._num_steps % 2  # its turn

    def cut(self, env_idx):
        self.cuts.append(env_idx)

    def set_shaping(self, actor_idx, weights):
        self.shaped.append((actor_idx, weights.tolist()))

    def close(self):
        self.is_closed = True


class Stage:
    """A group with all that it talks to, and policies that answer whatever is asked."""

    def __init__(self, tmp_path, monkeypatch, spec=SPEC, num_before=0, group_idx=GROUP, **flags):
        flags = {"num_envs_per_worker": 4, "rollout": 4, "batch_size": 4, "decorrelate_episodes": True, **flags}
        config = Config().replace(env="toy_match_rps", num_workers=1, device="cpu", seed=3, **flags)
        monkeypatch.setattr("sf.run.networks.describe", lambda env, options: spec)
        self.memory = allocate(config, tmp_path)
        steps = [0] * config.population.num_policies
        start = Start(0, num_before, self.memory, Links(), steps, lambda policy_id: {})
        self.args = ROLLOUT.arguments(start)

        def make_group(env, num_envs, options, **made):
            self.env = Scripted(spec, num_envs, made)
            return self.env

        monkeypatch.setattr(envs, "make_group", make_group)
        if self.memory.seats is not None:
            for seat in range(self.memory.seats.num_seats):
                self.memory.seats.give(seat, 0, "somebody")
                self.memory.seats.set_open(seat, True)
        self.group_idx, self.rows = group_idx, self.memory.pool.arrays
        self.group = RolloutGroup(group_idx, self.args)

    def answer(self, action=1):
        channels = self.memory.channels
        asked = channels.tables["asked"] != channels.tables["answered"]
        for who in np.flatnonzero(asked[:, self.group_idx]):
            channel = channels.of_policy_worker(int(who))
            groups = channel.take()
            numbers = channel.numbers(groups)
            slots, t, _ = channel.rows(groups, numbers)
            self.rows["discrete"][slots, t] = action
            channel.answer(groups, numbers)

    def step(self, action=1):
        self.group.begin_if_it_can()
        self.answer(action)
        assert self.args.channel.take([self.group_idx]) == [self.group_idx]
        return self.group.advance()

    @property
    def slots(self):
        return self.memory.channels.tables["slots"][self.group_idx]
