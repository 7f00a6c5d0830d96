"""A recurrent model that counts the steps of its episode, for tests that say whose state a row was computed from."""

import torch
from torch import nn

from sf.model.actor_critic import StepOutput
from sf.model.registry import register_model
from sf.policy.worker import policy_worker


@register_model("counting")
class CountingModel(nn.Module):
    """Its state, which is its value, too, grows by its only weight; it chooses uniformly."""

    def __init__(self, config, obs_space, action_spec):
        super().__init__()
        self.state_size = 1
        self.trunk = nn.ModuleList()
        self.num_logits = action_spec.discrete_sizes[0]
        self.by = nn.Parameter(torch.ones(1))
        self.value_norm = nn.Identity()

    def step(self, obs, state, first):
        count = state * (~first).unsqueeze(1) + self.by
        return StepOutput(torch.zeros(len(first), self.num_logits), count[:, 0], count)

    def unroll(self, obs, state, first):
        raise NotImplementedError("no test learns with it")

    update_normalizers = update_value_norm = unroll


def counting_policy_worker(reports, args):
    """The real one; named here so that its process imports this module, and with it the model."""
    policy_worker(reports, args)
