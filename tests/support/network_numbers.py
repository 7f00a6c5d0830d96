"""All numbers of a network, for a comparison."""

import torch


def numbers_of(model):
    """[N] float64: of all parameters and buffers. In the vector that travels, some are bits, which may be NaN."""
    return torch.cat([x.detach().double().reshape(-1) for x in [*model.parameters(), *model.buffers()]])
