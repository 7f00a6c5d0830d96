"""Running normalisation of vector observations and value targets. Only the learner updates the statistics."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

EPSILON = 1e-5  # added to the variance
CLIP = 10.0  # a normalised observation is held within this many standard deviations


class RunningMoments(nn.Module):
    """Mean and variance of all samples so far.

    Batches are merged by the formula of Chan et al. 1979, in float64: neither the count nor the mean loses
    digits over billions of samples.
    """

    mean: Tensor
    var: Tensor
    count: Tensor

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(shape, dtype=torch.float64))
        self.register_buffer("var", torch.ones(shape, dtype=torch.float64))
        self.register_buffer("count", torch.zeros((), dtype=torch.float64))

    @torch.no_grad()
    def update(self, samples: Tensor, mask: Tensor) -> None:
        """Merge the samples [M, *shape] for which `mask` [M] holds. Nothing changes if it holds for none."""
        keep = mask.view(-1, *[1] * (samples.ndim - 1))
        n = keep.sum().double()
        x = torch.where(keep, samples.double(), 0.0)
        mean = x.sum(0) / n.clamp(min=1)
        var = torch.where(keep, x - mean, 0.0).square().sum(0) / n.clamp(min=1)
        total = (self.count + n).clamp(min=1)
        delta = mean - self.mean
        merged_var = (self.var * self.count + var * n + delta.square() * self.count * n / total) / total
        self.var.copy_(torch.where(n > 0, merged_var, self.var))
        self.mean.add_(delta * n / total)
        self.count.add_(n)

    @property
    def stddev(self) -> Tensor:
        return (self.var + EPSILON).sqrt()


class ObsNormalizer(nn.Module):
    """Observations with the keys of `shapes` get mean 0 and standard deviation 1, clipped; others stay."""

    def __init__(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        super().__init__()
        # Not a ModuleDict: it does not take every key (some are names of its methods).
        self._moments = {key: RunningMoments(shape) for key, shape in shapes.items()}
        self.moments = nn.ModuleList(self._moments.values())

    def forward(self, obs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """{key: [N, *shape]} -> the same, float32 where it is normalised."""
        out = dict(obs)
        for key, moments in self._moments.items():
            centred = obs[key].float() - moments.mean.float()
            out[key] = (centred / moments.stddev.float()).clamp(-CLIP, CLIP)
        return out

    def update(self, obs: Mapping[str, Tensor]) -> None:
        """Merge all observations {key: [..., *shape]} into the statistics."""
        for key, moments in self._moments.items():
            samples = obs[key].reshape(-1, *moments.mean.shape)
            moments.update(samples, samples.new_ones(len(samples), dtype=torch.bool))


class ReturnNormalizer(nn.Module):
    """Between the scale of returns and the scale in which the critic is trained: PopArt (van Hasselt et al. 2016)."""

    def __init__(self) -> None:
        super().__init__()
        self.moments = RunningMoments(())

    def normalize(self, value: Tensor) -> Tensor:
        return ((value - self.moments.mean) / self.moments.stddev).to(value.dtype)

    def denormalize(self, value: Tensor) -> Tensor:
        return (value * self.moments.stddev + self.moments.mean).to(value.dtype)

    @torch.no_grad()
    def update(self, returns: Tensor, mask: Tensor, head: nn.Linear) -> None:
        """Merge the value targets, in the scale of returns, for which `mask` of the same shape holds.

        The critic's last layer is rescaled so that what it predicts, in the scale of returns, stays what it was
        (equation 9). Without that, bootstrapped targets grow with the scale and the scale with them.
        """
        mean, stddev = self.moments.mean.clone(), self.moments.stddev  # before this batch
        self.moments.update(returns.flatten(), mask.flatten())
        ratio = stddev / self.moments.stddev
        head.weight.mul_(ratio)
        head.bias.copy_(head.bias * ratio + (mean - self.moments.mean) / self.moments.stddev)


class NoReturnNormalizer(nn.Module):
    """The critic is trained in the scale of returns."""

    def normalize(self, value: Tensor) -> Tensor:
        return value

    def denormalize(self, value: Tensor) -> Tensor:
        return value

    def update(self, returns: Tensor, mask: Tensor, head: nn.Linear) -> None:
        """There are no statistics."""
