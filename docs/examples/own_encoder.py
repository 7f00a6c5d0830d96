"""An encoder of one's own: what makes features of one observation.

    python own_encoder.py
    sf-train --env toy_identity --encoder own_encoder:Fourier         # the same, without the last lines

It is in a file without environments: rollout workers import the file that an environment is in, and need no torch.
"""

import math

import torch
from torch import nn

from sf import main, register_encoder


@register_encoder("fourier")
class Fourier(nn.Module):
    """Sines and cosines of linear functions of a vector, then one layer."""

    def __init__(self, space, config):
        """space: the Box of the observation. config: sf.config.ModelConfig, the flags of the model."""
        super().__init__()
        self.out_size = config.encoder_mlp_layers[-1]  # every encoder says how many features it gives
        self.frequencies = nn.Linear(math.prod(space.shape), 64)
        self.layer = nn.Sequential(nn.Linear(128, self.out_size), nn.ELU())

    def forward(self, obs):  # [N, ...] -> [N, out_size]
        angles = self.frequencies(obs.flatten(1))
        return self.layer(torch.cat((angles.sin(), angles.cos()), dim=-1))


if __name__ == "__main__":
    main(env="toy_identity", experiment="own_encoder", encoder="fourier", train_for_env_steps=50_000, batch_size=512)
