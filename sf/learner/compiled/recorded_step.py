"""The optimiser step on a GPU by recorded kernels (a CUDA graph), which the host queues all at once.

A step is some hundreds of kernels. To queue them one by one from Python takes the host 5 to 20 ms, and the GPU a tenth
to a quarter of that.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import Tensor

from sf.config import LearnerConfig
from sf.envs.spaces.actions import ACTION_MASK
from sf.learner.batches.minibatches import Cut, Minibatch
from sf.learner.compiled.faster_step import FasterStep, Take
from sf.learner.compiled.outcome import TOLERANCE, Trial, Written
from sf.learner.loss.numbers import LossNumbers, without_numbers
from sf.learner.optimizer.optimizer import Optimizer
from sf.system import gpu
from sf.system.messages import say

_MOST = 4  # recordings at a time: each keeps the activations of its step
_IDLE = 1_000  # optimiser steps after which one that none of them took may give way


def is_for(config: LearnerConfig) -> bool:
    """Whether the steps of such a learner can be recorded. Muon's learning rate is no number on the device."""
    return config.optimizer == "adam"


class RecordedStep(FasterStep):
    """Takes optimiser steps by recordings, one for each size of a minibatch.

    In games by turns no two minibatches have the same number of decisions: they are filled up to the next of a few
    sizes, by samples that do not count. Sizes change as the games grow longer, so a recording that is out of use gives
    way to the next.
    """

    def __init__(self, bfloat16: bool) -> None:
        """bfloat16: whether the network runs in it."""
        self._bfloat16 = bfloat16
        self._network: Any = None
        self._optimizer: Optimizer
        self._config: LearnerConfig | None = None  # that the recordings are for
        self._settings = ""
        self._recorded: dict[str, _Recorded] = {}
        self._has_no_memory: set[str] = set()  # of the GPU left for it
        self._has_said_so = False
        self._num_steps = 0
        self._last_used: dict[str, int] = {}  # at which of the steps, by what is recorded
        self._is_given_up = False

    def serve(self, network: Any, optimizer: Optimizer) -> None:
        self._network, self._optimizer = network, optimizer
        self._forget()

    def takes(self, cut: Cut, config: LearnerConfig) -> bool:
        if self._is_given_up:
            return False
        if config is not self._config:
            settings, self._config = without_numbers(config), config
            if settings != self._settings:
                self._settings = settings
                self._forget()
        self._num_steps += 1
        kind = _kind(cut)
        return kind in self._recorded or (self._has_room() and kind not in self._has_no_memory)

    def step(self, cut: Cut, numbers: LossNumbers, take: Take) -> dict[str, Tensor]:
        """See `FasterStep.step`. take: is what is recorded. The first time of each size, both are compared."""
        kind = _kind(cut)
        self._last_used[kind] = self._num_steps
        recorded = self._recorded.get(kind)
        if recorded is None or not recorded.goes_on(cut.whole, self._network, self._optimizer):
            if recorded is not None:  # what all of them write is elsewhere now
                self._forget()
            return self._record(kind, cut, numbers, take)
        return recorded(cut, numbers)

    def _has_room(self) -> bool:
        """For one more recording. One that is out of use goes for it, and may leave memory for those that had none."""
        if self._recorded and (self._has_no_memory or len(self._recorded) == _MOST):
            oldest = min(self._recorded, key=self._last_used.__getitem__)
            if self._num_steps - self._last_used[oldest] > _IDLE:
                del self._recorded[oldest]
                self._has_no_memory.clear()
        return len(self._recorded) < _MOST

    def _forget(self) -> None:
        self._recorded.clear()
        self._has_no_memory.clear()

    def _record(self, kind: str, cut: Cut, numbers: LossNumbers, take: Take) -> dict[str, Tensor]:
        """And take a step of it, if it agrees with the step without a recording."""
        trial = Trial(self._network, self._optimizer)
        flat = torch.tensor(numbers.flat(), device=cut.whole.mask.device)
        own, why = (
            trial.take(lambda: take(cut.taken(), LossNumbers.from_flat(flat))),
            "its results differ from those of the network",
        )
        try:
            trial.undo()
            recorded = _Recorded(self._network, self._optimizer, cut, take, len(flat))
            found = trial.take(lambda: recorded(cut, numbers))
            if trial.agree(found, own, TOLERANCE[self._bfloat16]):
                self._recorded[kind] = recorded
                return trial.keep(found)
        except torch.OutOfMemoryError:  # the recordings that are there stay
            self._has_no_memory.add(kind)
            if not self._has_said_so:
                say(f"no memory is left on the GPU to record the learner's step for minibatches of {kind}")
            self._has_said_so = True
            return trial.keep(own)
        except RuntimeError as error:
            why = str(error).splitlines()[0]
        self._is_given_up = True
        self._recorded.clear()
        say(f"the learner's step is not recorded for the GPU ({why}), so it runs kernel by kernel, which is slower")
        return trial.keep(own)


class _Recorded:
    """For minibatches of one size, of one network. Its inputs stay where they are: those of a step are copied there."""

    def __init__(self, network: Any, optimizer: Optimizer, like: Cut, take: Take, num_numbers: int) -> None:
        self._places = _places(network, optimizer)
        self._whole = _copied(like.whole)
        self._at = None if like.at is None else like.at.new_zeros(_size_for(like))
        self._counts: Tensor | None = None  # [M], which samples do
        if self._at is not None and _is_of_turns(like):
            self._counts = torch.zeros_like(self._at, dtype=torch.bool)
        self._numbers = torch.zeros(num_numbers, device=like.whole.mask.device)
        self._inputs = _tensors(self._whole)
        self._last: Minibatch | None = None  # whose numbers the inputs have

        def step() -> tuple[Tensor]:
            part = Cut(self._whole, self._at).taken()
            if self._counts is not None:
                part = part._replace(mask=part.mask & self._counts[:, None])
            results = take(part, LossNumbers.from_flat(self._numbers))
            self._names = list(results)
            return (torch.stack([result.float() for result in results.values()]),)

        optimizer.zero_grad()  # so that gradients are of the recording
        self._recording = gpu.Recording(step)
        if not self._is_where_it_was(network, optimizer):
            raise RuntimeError("a step of the network puts other tensors in the place of its weights or buffers")

    def goes_on(self, whole: Minibatch, network: Any, optimizer: Optimizer) -> bool:
        """Whether what it writes is where it was: a checkpoint that is loaded before an iteration brings other
        tensors."""
        return whole is self._last or self._is_where_it_was(network, optimizer)

    def _is_where_it_was(self, network: Any, optimizer: Optimizer) -> bool:
        return self._places == _places(network, optimizer)

    def __call__(self, cut: Cut, numbers: LossNumbers) -> dict[str, Tensor]:
        if cut.whole is not self._last:
            for mine, given in zip(self._inputs, _tensors(cut.whole), strict=True):
                mine.copy_(given)
            self._last = cut.whole
        if self._at is not None and cut.at is not None:
            self._at[: len(cut.at)].copy_(cut.at)
            if self._counts is not None:
                self._counts.fill_(False)[: len(cut.at)] = True
        self._numbers.copy_(torch.tensor(numbers.flat()))
        (results,) = self._recording.replay()
        return dict(zip(self._names, results.clone().unbind(), strict=True))


def _kind(cut: Cut) -> str:
    """The same for minibatches of the same shapes."""
    num_steps, num_trajectories = cut.whole.mask.shape
    of_whole = f"{num_steps} steps of {num_trajectories} trajectories"
    return of_whole if cut.at is None else f"{_size_for(cut)} of {of_whole}"


def _size_for(cut: Cut) -> int:
    """Of the minibatch in its recording; 0 for a whole iteration."""
    num = 0 if cut.at is None else len(cut.at)
    if not num or not _is_of_turns(cut):
        return num
    apart = max(8, 1 << (num.bit_length() - 4 if num >= 16 else 0))  # an eighth of a power of two
    return -(-num // apart) * apart


def _is_of_turns(cut: Cut) -> bool:
    """Whether it is of single steps without those in which an agent waits for its turn."""
    return cut.whole.targets is not None and ACTION_MASK in cut.whole.batch.obs


def _places(network: Any, optimizer: Optimizer) -> list[int]:
    return [tensor.data_ptr() for tensor in Written.of(network, optimizer).tensors()]


def _tensors(whole: Minibatch) -> list[Tensor]:
    parts = (whole.targets, whole.advantage_moments, whole.priorities)
    of_parts = [tensor for part in parts if part is not None for tensor in part]
    return [*whole.batch.tensors(), whole.mask, whole.proximal_log_prob, *of_parts]


def _copied(whole: Minibatch) -> Minibatch:
    """In memory of its own, where no two tensors are one."""
    copied: Minibatch = pytree.tree_map_only(Tensor, torch.clone, whole)  # all but the batch, which is no tuple
    return copied._replace(batch=whole.batch.map(torch.clone))
