"""Running normalisation of observations and value targets. Only the learner updates the statistics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import gymnasium as gym
import torch
from torch import Tensor, nn

from sf.envs.spaces.observations import is_image
from sf.model.layers import Compilable
from sf.ranks.ranks import ALONE
from sf.system.native import kernels

EPSILON = 1e-5  # added to the variance of observations
_ROUNDING = 1e-6  # of the mean return: some digits of float32, in which targets are computed
CLIP = 10.0  # a normalised observation is held within this many standard deviations
FRAMES_PER_UPDATE = 32  # of the images of a batch: neighbours in time say little new
_GOLDEN_RATIO = (5**0.5 - 1) / 2
MISSED = "missed"  # the name in a checkpoint of what entries have not seen
LARGEST_SAMPLE = 1e18  # its square is finite in float32, in which the statistics travel to the policy workers


class RunningMoments(nn.Module):
    """Mean and variance of all samples so far.

    Batches are merged by the formula of Chan et al. 1979, in float64: neither the count nor the mean loses
    digits over billions of samples.

    missed: [*shape] how many of the samples each entry has not seen, where surgery has added entries; None: none. The
    learner alone reads it, so it is in checkpoints and not among the buffers, which travel to the policy workers.
    """

    mean: Tensor
    var: Tensor
    count: Tensor

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(shape, dtype=torch.float64))
        self.register_buffer("var", torch.ones(shape, dtype=torch.float64))
        self.register_buffer("count", torch.zeros((), dtype=torch.float64))
        self.missed: Tensor | None = None
        self.ranks = ALONE  # whose samples are merged

    @property
    def seen(self) -> Tensor:
        """The samples that each entry has seen: 0-dim where that is the same for all, else [*shape]."""
        return self.count if self.missed is None else self.count - self.missed

    @torch.no_grad()
    def update(self, samples: Tensor, mask: Tensor) -> None:
        """Merge the samples [M, *shape] for which `mask` [M] holds. Nothing changes if it holds for none.

        A sample with a number that is NaN or beyond `LARGEST_SAMPLE` is left out: statistics never recover from one.
        """
        x = samples.double()
        fits = (x.abs() <= LARGEST_SAMPLE).unsqueeze(-1).flatten(1).all(1)  # [M]; a NaN compares as false
        keep = (mask & fits).view(-1, *[1] * (x.ndim - 1))
        n = keep.sum().double()
        x = torch.where(keep, x, 0.0)
        mean = x.sum(0) / n.clamp(min=1)
        var = torch.where(keep, x - mean, 0.0).square().sum(0) / n.clamp(min=1)
        n, mean, var = self._of_all_ranks(n, mean, var)
        seen = self.seen
        total = (seen + n).clamp(min=1)
        delta = mean - self.mean
        merged_var = (self.var * seen + var * n + delta.square() * seen * n / total) / total
        self.var.copy_(torch.where(n > 0, merged_var, self.var))
        self.mean.add_(delta * n / total)
        self.count.add_(n)

    @property
    def stddev(self) -> Tensor:
        return (self.var + EPSILON).sqrt()

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        if self.missed is not None:
            destination[prefix + MISSED] = self.missed

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *others: Any) -> None:
        missed = state_dict.pop(prefix + MISSED, None)
        super()._load_from_state_dict(state_dict, prefix, *others)
        self.missed = None if missed is None else missed.to(self.mean.device, copy=True)

    def _of_all_ranks(self, n: Tensor, mean: Tensor, var: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Count, mean and variance of the samples of all ranks, from those of this one."""
        if self.ranks.size == 1:
            return n, mean, var
        distance = mean - self.mean  # the same origin on all ranks, and no digits are lost
        n, moved, squared = self.ranks.totals(n, n * distance, n * (var + distance.square()))
        distance = moved / n.clamp(min=1)
        return n, self.mean + distance, (squared / n.clamp(min=1) - distance.square()).clamp(min=0)


class VectorNormalizer(nn.Module):
    """Mean 0 and standard deviation 1 for every number, clipped."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.moments = RunningMoments(shape)

    def forward(self, numbers: Tensor, dtype: torch.dtype) -> Tensor:
        """[N, *shape] -> the same in float32: `dtype` is for images."""
        if numbers.dtype == torch.float32:
            centred = numbers - self.moments.mean.float()
        else:  # a clock or an identifier has more digits than float32
            centred = (numbers.double() - self.moments.mean).float()
        return (centred / self.moments.stddev.float()).clamp(-CLIP, CLIP)

    def update(self, numbers: Tensor, mask: Tensor) -> None:
        """Merge numbers [M, *shape] where `mask` [M] holds."""
        self.moments.update(numbers, mask)


class ImageNormalizer(Compilable):
    """Mean 0 for every pixel, and one scale for all, so that what moves has standard deviation 1 on average.

    What never changes (walls, the status bar, the background) vanishes, and what is left is large enough to be learned
    from. A scale for each pixel would make the most of those in which something happens once in a while.
    """

    offset: Tensor
    scale: Tensor

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.moments = RunningMoments(shape)
        self.register_buffer("scale", torch.full((), 1 / 255))
        self.register_buffer("offset", torch.zeros(shape))  # -mean x scale

    def forward(self, pixels: Tensor, dtype: torch.dtype) -> Tensor:
        """[N, *shape] uint8 -> the same in `dtype`."""
        offset, scale = self.offset.to(dtype), self.scale.to(dtype)
        if self.with_loops and kernels.takes_images(pixels, offset):
            return kernels.shifted_and_scaled(pixels, offset, scale)
        x = pixels.to(dtype)
        return torch.addcmul(offset, x, scale, out=x)

    def update(self, pixels: Tensor, mask: Tensor) -> None:
        """Merge a few of the frames [M, *shape] where `mask` [M] holds."""
        few = _spread(len(pixels), pixels.device)
        self.moments.update(pixels[few], mask[few])
        one_grey_level = 1.0  # the least that is worth seeing
        var = self.moments.var.mean()
        if self.moments.missed is not None:  # added pixels count by what they have seen, so that the scale never jumps
            var = (self.moments.var * self.moments.seen).sum() / self.moments.seen.sum().clamp(min=1)
        scale = (var + one_grey_level).rsqrt()
        self.scale.copy_(torch.where(self.moments.count > 0, scale, self.scale))  # else no frame has counted yet
        self.offset.copy_(-self.moments.mean * self.scale)


def _spread(num_frames: int, device: torch.device) -> Tensor:
    """Indices of FRAMES_PER_UPDATE of so many frames, or of all, that no regular layout of them favours.

    Multiples of the golden ratio: frames of [T, B] flattened at equal distances would all be of one trajectory.
    """
    if num_frames <= FRAMES_PER_UPDATE:
        return torch.arange(num_frames, device=device)
    return (torch.arange(FRAMES_PER_UPDATE, device=device).double() * _GOLDEN_RATIO % 1 * num_frames).long()


class ObsNormalizer(nn.Module):
    """Normalises observations by their keys; those that are not in `spaces` stay."""

    def __init__(self, spaces: Mapping[str, gym.spaces.Box]) -> None:
        super().__init__()
        normalizers = [(ImageNormalizer if is_image(box) else VectorNormalizer)(box.shape) for box in spaces.values()]
        # Not a ModuleDict: it does not take every key (some are names of its methods).
        self.keys = list(spaces)
        self.normalizers = nn.ModuleList(normalizers)

    def forward(self, obs: Mapping[str, Tensor], dtype: torch.dtype) -> dict[str, Tensor]:
        """{key: [N, ...]} -> the same; images in `dtype`, vectors in float32."""
        normal = {key: part(obs[key], dtype) for key, part in zip(self.keys, self.normalizers, strict=True)}
        return {**obs, **normal}

    @torch.no_grad()
    def update(self, obs: Mapping[str, Tensor], mask: Tensor) -> None:
        """Merge observations {key: [T, B, ...]} into the statistics, where `mask` [T, B] holds."""
        for key, part in zip(self.keys, self.normalizers, strict=True):
            part.update(obs[key].flatten(0, 1), mask.flatten())  # type: ignore[operator]  # both kinds have it


class ReturnScale(NamedTuple):
    """The statistics of `ReturnNormalizer` at one time. All are 0-dim, or of the shape of the values: see
    `sf.model.task_returns`."""

    mean: Tensor
    stddev: Tensor
    inverse: Tensor  # 1 / stddev, or 0 before the first statistics

    def normalize(self, value: Tensor) -> Tensor:
        return ((value - self.mean) * self.inverse).to(value.dtype)

    def denormalize(self, value: Tensor) -> Tensor:
        return (value * self.stddev + self.mean).to(value.dtype)


class ReturnNormalizer(nn.Module):
    """Maps returns to the scale in which the critic is trained, and back: PopArt (van Hasselt et al. 2016).

    Multiplying all rewards by a number changes nothing in the critic's scale. Before the first statistics every value
    is 0 in both scales. What a new network makes of an observation says nothing about returns, so it must not become
    part of the first value targets, which the statistics would remember.
    """

    def __init__(self) -> None:
        super().__init__()
        self.moments = RunningMoments(())

    @property
    def stddev(self) -> Tensor:
        """The standard deviation of returns, at least what float32 can tell apart. 0 before the first statistics."""
        rounding = _ROUNDING * self.moments.mean
        return torch.where(self.moments.count > 0, (self.moments.var + rounding.square()).sqrt(), 0.0)

    def scale(self) -> ReturnScale:
        """Returns the present statistics. It costs a dozen operations, so compute it once for several conversions."""
        stddev = self.stddev
        return ReturnScale(self.moments.mean, stddev, _inverse(stddev))

    def normalize(self, value: Tensor) -> Tensor:
        return self.scale().normalize(value)

    def denormalize(self, value: Tensor) -> Tensor:
        return self.scale().denormalize(value)

    @torch.no_grad()
    def update(self, returns: Tensor, mask: Tensor, head: nn.Linear) -> None:
        """Merge the value targets, in the scale of returns, for which `mask` of the same shape holds.

        The critic's last layer is rescaled so that its predictions in the scale of returns stay the same (equation 9).
        Without that, bootstrapped targets grow with the scale and the scale with them. The first statistics leave the
        layer as it is.
        """
        ratio, shift = self.merge(returns, mask)
        head.weight.mul_(ratio)
        head.bias.copy_(head.bias * ratio + shift)

    @torch.no_grad()
    def merge(self, returns: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Merge value targets. Returns what predictions have to be multiplied by, and then shifted by, to stay the same
        in the scale of returns. Both are 0-dim."""
        is_first = self.moments.count == 0
        mean, stddev = self.moments.mean.clone(), self.stddev  # before this batch
        self.moments.update(returns.flatten(), mask.flatten())
        inverse = _inverse(self.stddev)
        keeps = is_first | (inverse == 0)
        ratio = torch.where(keeps, 1.0, stddev * inverse)
        shift = torch.where(keeps, 0.0, (mean - self.moments.mean) * inverse)
        return ratio, shift


class SymlogReturns(nn.Module):
    """The critic predicts the symmetric logarithm of returns (Hafner et al. 2023, DreamerV3), in units of their
    typical size s, the geometric mean of their absolute values:

        symlog(x) = sign(x) ln(|x| / s + 1),   symexp(x) = s sign(x) (exp(|x|) - 1)

    Close to 0 it is as good as linear, and far from it large returns are as easy to predict as small ones. DreamerV3
    has s = 1, where returns far below 1 are too small to be learned. Before the first return that is not 0, every value
    is 0 in both scales.
    """

    def __init__(self) -> None:
        super().__init__()
        self.log_size = RunningMoments(())

    @property
    def scale(self) -> Tensor:
        """s. 0 before the first return that is not 0."""
        return torch.where(self.log_size.count > 0, self.log_size.mean.exp(), 0.0)

    def normalize(self, value: Tensor) -> Tensor:
        return (value.sign() * (value.abs() * _inverse(self.scale)).log1p()).to(value.dtype)

    def denormalize(self, value: Tensor) -> Tensor:
        return (value.sign() * value.abs().expm1() * self.scale).to(value.dtype)

    @torch.no_grad()
    def update(self, returns: Tensor, mask: Tensor, head: nn.Linear) -> None:
        """Merge the sizes of the value targets, in the scale of returns, for which `mask` of the same shape holds.

        Predictions move with s: no linear layer could keep them as they were.
        """
        self.log_size.update(returns.double().abs().log().flatten(), mask.flatten())  # ln 0 is left out there


class NoReturnNormalizer(nn.Module):
    """The critic is trained in the scale of returns."""

    def normalize(self, value: Tensor) -> Tensor:
        return value

    def denormalize(self, value: Tensor) -> Tensor:
        return value

    def update(self, returns: Tensor, mask: Tensor, head: nn.Linear) -> None:
        """There are no statistics."""


def _inverse(scale: Tensor) -> Tensor:
    """1 / scale, or 0 where the scale is 0."""
    return torch.where(scale > 0, scale.reciprocal(), 0.0)
