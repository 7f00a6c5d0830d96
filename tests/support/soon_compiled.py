"""An encoder whose learner makes its program at once, instead of after the half minute that a run has to last."""

import torch
from torch import nn

from sf.learner.compiled import compiled_step
from sf.system.native.program_beside import ProgramBeside


class AtOnce(ProgramBeside):
    def __init__(self, *args):
        super().__init__(*args[:-1], begins_after_s=0.0)


compiled_step.ProgramBeside = AtOnce


class Encoder(nn.Module):
    def __init__(self, space, config):
        super().__init__()
        self.out_size = 8
        self.layer = nn.Linear(space.shape[0], self.out_size)

    def forward(self, obs):
        return torch.tanh(self.layer(obs))
