"""A network with the rows that a policy worker reads and writes, for tests of its batches."""

import gymnasium as gym
import numpy as np
import torch

from sf.config import ModelConfig
from sf.envs import ActionSpec, EnvSpec
from sf.model.acting import Acting, ActingHere
from sf.model.distributions import ActionDistribution
from sf.model.inference import inference_model
from sf.policy.inference_batch import InferenceBatch
from sf.shared.recurrent_states import RecurrentStates
from sf.shared.rows import OBS, slot_fields
from sf.system import gpu
from sf.system.arrays import SharedArrays

NUM_ACTORS, ROLLOUT = 30, 3


class Deciding:
    """kind: of acting."""

    def __init__(self, obs_space, action_space, model, device="cpu", precision="float32", kind=Acting):
        self.action_spec = ActionSpec.of(action_space)
        torch.manual_seed(0)
        self.network = inference_model(model, obs_space, self.action_spec, precision, gpu.torch_device(device))
        self.device = device
        self.dtype = getattr(torch, precision)
        self.spec = spec = EnvSpec(obs_space, action_space)
        self.rows = SharedArrays(slot_fields(spec, NUM_ACTORS, ROLLOUT))
        self.states = RecurrentStates(self.network.state_size, NUM_ACTORS, NUM_ACTORS)
        acting = ActingHere(kind(self.network, self.action_spec))
        self.decisions = InferenceBatch(acting, spec, self.rows, self.states, NUM_ACTORS, device)

    def record(self):
        self.decisions.record(self.dtype)
        return self

    def decide(self, num, seed=0):
        """Of `num` actors with observations and states by chance: the answers, and what they should be."""
        rng = np.random.default_rng(seed)
        for array in self.rows.named(OBS).values():
            is_image = array.dtype == np.uint8
            array[:] = rng.integers(0, 256, array.shape) if is_image else rng.uniform(-1, 1, array.shape)
        self.states.of_actors[:] = torch.from_numpy(rng.normal(size=self.states.of_actors.shape))
        actors = rng.permutation(NUM_ACTORS)[:num]
        rows, numbers, first = rng.integers(0, ROLLOUT, num), rng.integers(5, 9, num), rng.random(num) < 0.5
        before = self.states.of_actors[(numbers - 1) % 2, actors].clone()
        answers = self.decisions.decide(actors, rows, actors, numbers, first)
        there = gpu.torch_device(self.device)
        obs = {key: torch.from_numpy(array[actors, rows]).to(there) for key, array in self.rows.named(OBS).items()}
        with torch.inference_mode():
            expected = self.network.step(obs, before.to(there), torch.from_numpy(first).to(there))
            chosen = (
                torch.from_numpy(actions.copy()).to(there) for actions in (answers["discrete"], answers["continuous"])
            )
            log_prob = ActionDistribution(self.action_spec, expected.params).log_prob(*chosen)
        after = self.states.of_actors[numbers % 2, actors]
        found = {"log_prob": answers["log_prob"], "value": answers["value"], "state": after}
        should_be = {"log_prob": log_prob, "value": expected.value, "state": expected.state}
        return answers, {name: torch.as_tensor(found[name]).clone() for name in found}, should_be

    def assert_right(self, num, seed=0):
        _, found, should_be = self.decide(num, seed)
        tolerance = {torch.float32: 1e-3, torch.bfloat16: 0.1}[self.dtype]
        for name, tensor in found.items():
            torch.testing.assert_close(tensor, should_be[name].cpu(), rtol=tolerance, atol=tolerance, msg=name)


def vectors():
    """Observations, actions and a network with memory, small."""
    box = gym.spaces.Box
    obs_space = gym.spaces.Dict(obs=box(-1, 1, (5,), np.float32), numbers=box(-1, 1, (2, 3), np.float32))
    discrete = gym.spaces.Discrete
    action_space = gym.spaces.Tuple((discrete(3), discrete(2), box(-1, 1, (2,))))
    return obs_space, action_space, ModelConfig(encoder_mlp_layers=(8,), core="gru", rnn_size=8)
