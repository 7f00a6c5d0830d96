"""A whole network of one's own, in the place of sf.model.actor_critic.ActorCritic: its methods are what is asked for.

python own_model.py
sf-train --env toy_identity --model own_model:TwoTowers
"""

import math

import torch
from torch import nn

from sf import main, register_model
from sf.model.actor_critic import StepOutput, UnrollOutput
from sf.model.normalizers import NoReturnNormalizer


@register_model("two_towers")
class TwoTowers(nn.Module):
    """Actor and critic see all observations as one vector, with a small network each; for discrete actions."""

    state_size = 0  # numbers of a recurrent state

    def __init__(self, config, obs_space, action_spec):
        """config: sf.config.ModelConfig. obs_space: a Dict of Boxes. action_spec: envs.ActionSpec."""
        super().__init__()
        size = sum(math.prod(box.shape) for box in obs_space.values())
        self.trunk = nn.ModuleList([nn.Sequential(nn.Linear(size, 64), nn.Tanh()) for _ in range(2)])  # maybe bfloat16
        self.policy_head = nn.Linear(64, sum(action_spec.discrete_sizes))  # heads stay float32
        self.value_head = nn.Linear(64, 1)
        self.value_norm = NoReturnNormalizer()

    def step(self, obs, state, first):
        """One step of N actors: obs {key: [N, ...]}, state [N, S], first [N] where an episode begins."""
        params, value = self._heads(obs, num_axes=1)
        return StepOutput(params, value, state)

    def unroll(self, obs, state, first):
        """T steps of B trajectories: obs {key: [T+1, B, ...]}, state [B, S] before row 0, first [T+1, B]."""
        params, value = self._heads(obs, num_axes=2)
        return UnrollOutput(params[:-1], value)

    def update_normalizers(self, obs, mask):
        """This network normalises nothing; ActorCritic keeps running statistics of observations here."""

    def update_value_norm(self, returns, mask):
        """And here those of returns."""

    def _heads(self, obs, num_axes):
        x = torch.cat([obs[key].flatten(num_axes).float() for key in sorted(obs)], dim=-1)
        actor, critic = (tower(x.to(tower[0].weight.dtype)) for tower in self.trunk)
        with torch.autocast(x.device.type, enabled=False):
            return self.policy_head(actor.float()), self.value_head(critic.float()).squeeze(-1)


if __name__ == "__main__":
    main(
        env="toy_identity",
        experiment="own_model",
        model="two_towers",
        train_for_env_steps=50_000,
        batch_size=512,
        learning_rate=1e-3,
    )
