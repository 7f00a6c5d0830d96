"""The learner's side of its gradient workers: it cuts a minibatch into parts, and joins what comes of them.

Only the network is computed in parts. What it makes of them is joined before the loss, so targets, masks, statistics
and clipping are those of the whole minibatch, and gradients agree with those of one process within rounding.
"""

from __future__ import annotations

import functools
import math
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from sf.config import Config
from sf.envs import ActionSpec, EnvSpec
from sf.learner.gradients.share import Share
from sf.learner.gradients.worker import BACKWARD, Forward, Inputs, SharedPart, Sizes, gradient_worker
from sf.model.actor_critic import UnrollOutput
from sf.model.building import build_model
from sf.model.inference import write_flat
from sf.system.arrays import Field, SharedArrays
from sf.system.messages import say

_ROUNDING = 1e-6
_MOST_DEATHS = 10  # of workers that are replaced


class LostPart(NamedTuple):
    """Holds what a worker that has died was to go backward from: its inputs, and the gradients of their output."""

    inputs: Inputs
    output_gradients: tuple[Tensor, Tensor]


class GradientWorkers:
    """Lets other processes compute parts of the network, as far as that pays.

    If one dies, the learner computes its part, and a new one is started unless too many have died.
    """

    def __init__(
        self,
        count: int,
        config: Config,
        spec: EnvSpec,
        num_weights: int,
        state_size: int,
        bfloat16: bool,
        policy_id: int = 0,
        teams: Sequence[int] = (),
    ) -> None:
        """Forks: the calling process has computed nothing yet, so it has no other threads.

        num_weights: W, of parameters and buffers. state_size: S, of a recurrent state. teams: as for `Updater`.
        """
        self._num_together = max(1, len(teams))
        most = count / (count + 1)
        self._share = Share(most)
        self._fixed_share = None if config.sampler.async_rl else most  # so that every run is the same
        self._sizes = Sizes.of_share(config, count + 1, self._num_together)
        arrays = SharedArrays([Field("weights", (num_weights,), np.float32)], name="sf-weights")
        self._weights = torch.from_numpy(arrays["weights"])

        def build() -> nn.Module:
            return build_model(config.model, spec.obs_space, ActionSpec.of(spec.action_space), teams)

        self._workers = []
        for idx in range(count):
            torch.manual_seed(config.run.seed + policy_id + idx + 1)  # of the worker; the learner seeds its own later
            part = SharedPart(spec, self._sizes, state_size, num_weights)
            self._workers.append(_Worker(f"gradients-{policy_id}-{idx}", build, self._weights, part, bfloat16))
            self._workers[-1].start()
        self._at_work: list[_Worker] = []
        self._is_cut_by_rows = False  # else by columns
        self._num_deaths = 0
        self._waited_s = 0.0

    @property
    def share(self) -> float:
        """Of a minibatch, that the workers get."""
        if not self._workers:
            return 0.0
        return self._share.value if self._fixed_share is None else self._fixed_share

    def begin(self, model: Any, inputs: Inputs) -> list[Inputs]:
        """Give each worker its part of the inputs. Returns all parts, of which the first is the learner's own.

        Call `outputs` and `joined` next. Where gradients are wanted, call `add_gradients` after the backward pass.
        """
        self._is_cut_by_rows = inputs.first.shape[1] == self._num_together and not model.state_size
        parts = self._cut(inputs)
        self._at_work = self._workers[: len(parts) - 1]
        if self._at_work:
            write_flat(model, self._weights)
        for worker, part in zip(self._at_work, parts[1:], strict=True):
            worker.begin(part)
        return parts

    def outputs(self) -> list[UnrollOutput | None]:
        """Wait for the outputs of the workers' parts, and return them; None for a worker that has died."""
        return [self._timed(worker.output) for worker in self._at_work]

    def joined(self, outputs: list[UnrollOutput]) -> UnrollOutput:
        """Returns the output of all parts together."""
        if len(outputs) == 1:
            return outputs[0]
        if self._is_cut_by_rows:  # the last row of a part is the first of the next
            values = [*(output.value[:-1] for output in outputs[:-1]), outputs[-1].value]
            return UnrollOutput(torch.cat([output.params for output in outputs]), torch.cat(values))
        return UnrollOutput(*(torch.cat(each, dim=1) for each in zip(*outputs, strict=True)))

    def add_gradients(self, parameters: list[nn.Parameter]) -> list[LostPart]:
        """Add the gradients of the workers' parts to those of the parameters. Returns the parts that are missing."""
        lost = []
        for worker in self._at_work:
            part = self._timed(worker.add_gradients, parameters)
            if part is not None:
                lost.append(part)
            if worker.is_gone:
                self._replace(worker)
        self._at_work = []
        return lost

    def measured(self, num_steps: int, busy_s: float, for_batch_s: float) -> None:
        """An iteration is done: its optimiser steps, the seconds that they took, and those of waiting for its data."""
        self._share.measured(num_steps, busy_s, self._waited_s, for_batch_s)
        self._waited_s = 0.0

    def close(self) -> None:
        for worker in self._workers:
            worker.end()
        self._workers = []

    def _replace(self, worker: _Worker) -> None:
        self._num_deaths += 1
        if self._num_deaths > _MOST_DEATHS:
            self._workers.remove(worker)
            say(f"a gradient worker died, the {self._num_deaths}th: the learner does its part from here on")
            return
        worker.start(num_threads=1)  # in a fork of this process, whose other threads that one has not
        say("a gradient worker died: the learner did its part, and has started a new one")

    def _timed(self, work: Callable[..., Any], *args: Any) -> Any:
        began = time.perf_counter()
        try:
            return work(*args)
        finally:
            self._waited_s += time.perf_counter() - began

    def _cut(self, inputs: Inputs) -> list[Inputs]:
        """The learner's part, then those of as many workers as it is enough for."""
        num_rows, num_columns, together = *inputs.first.shape, self._num_together
        by_rows, sizes, count = self._is_cut_by_rows, self._sizes, len(self._workers)
        whole = num_rows - 1 if by_rows else num_columns // together
        most = min(sizes.num_columns, sizes.num_rows // num_rows) // together
        if by_rows:
            most = sizes.num_rows // together - 1
        each = min(math.floor(whole * self.share / count + _ROUNDING), most) if count else 0
        if not each:
            return [inputs]
        ends = [whole - (count - idx) * each for idx in range(count + 1)]
        cut, times = (_rows, 1) if by_rows else (_columns, together)
        return [cut(inputs, begin * times, end * times) for begin, end in zip([0, *ends[:-1]], ends, strict=True)]


def _rows(inputs: Inputs, begin: int, end: int) -> Inputs:
    """With the row after them, which ends a trajectory."""
    rows = slice(begin, end + 1)
    return Inputs({key: value[rows] for key, value in inputs.obs.items()}, inputs.state, inputs.first[rows])


def _columns(inputs: Inputs, begin: int, end: int) -> Inputs:
    columns = slice(begin, end)
    obs = {key: value[:, columns] for key, value in inputs.obs.items()}
    return Inputs(obs, inputs.state[columns], inputs.first[:, columns])


class _Worker:
    """One worker. is_gone: its process has died; what that was to do is done by the caller."""

    def __init__(
        self, name: str, build: Callable[[], nn.Module], weights: Tensor, part: SharedPart, bfloat16: bool
    ) -> None:
        self.is_gone = True
        self._part = part
        self._body = functools.partial(
            gradient_worker, name, build=build, weights=weights, part=part, bfloat16=bfloat16
        )
        self._inputs: Inputs | None = None
        self._with_gradients = False
        self._output_gradients: tuple[Tensor, Tensor] | None = None
        self._connection: Connection
        self._pid: int

    def start(self, num_threads: int | None = None) -> None:
        """num_threads: of the process, if not as many as this one has."""
        self._inputs = self._output_gradients = None
        self._connection, other_end = multiprocessing.Pipe()
        creator = os.getpid()
        self._pid = os.fork()
        if self._pid == 0:
            self._connection.close()
            self._body(connection=other_end, creator=creator, num_threads=num_threads)
        other_end.close()
        self.is_gone = False

    def begin(self, inputs: Inputs) -> None:
        self._inputs, self._with_gradients = inputs, torch.is_grad_enabled()
        num_rows, num_columns = inputs.first.shape
        shared = self._part.inputs(num_rows, num_columns)
        for key, value in inputs.obs.items():
            shared.obs[key].copy_(value)
        shared.state.copy_(inputs.state)
        shared.first.copy_(inputs.first)
        self._send(Forward(num_rows, num_columns, self._with_gradients))

    def output(self) -> UnrollOutput | None:
        """Wait for the output of its part, and return it; None if it has died."""
        assert self._inputs is not None
        self._receive()
        if self.is_gone:
            return None
        output = self._part.output(*self._inputs.first.shape)
        if not self._with_gradients:
            return UnrollOutput(*(tensor.clone() for tensor in output))
        anchor = torch.zeros((), requires_grad=True)
        return UnrollOutput(*_Elsewhere.apply(self, anchor, *output))

    def take_gradients_of_output(self, params: Tensor, value: Tensor) -> None:
        """Called in the backward pass, before that of the learner's own part."""
        assert self._inputs is not None
        self._output_gradients = params, value
        pairs = zip(self._part.gradients_of_output(*self._inputs.first.shape), (params, value), strict=True)
        for shared, gradient in pairs:
            shared.copy_(gradient)
        self._send(BACKWARD)

    def add_gradients(self, parameters: list[nn.Parameter]) -> LostPart | None:
        """Wait for the gradients and add them; if it has died, return its part. Does nothing if the learner computed
        the output itself."""
        if self._output_gradients is None:
            return None
        assert self._inputs is not None
        lost = LostPart(self._inputs, self._output_gradients)
        self._inputs = self._output_gradients = None
        self._receive()
        if self.is_gone:
            return lost
        for parameter, gradient in zip(parameters, self._part.gradients(parameters), strict=True):
            if parameter.grad is not None:
                parameter.grad += gradient
            elif gradient.any():  # else it may be frozen, and must not become a part of the optimiser's state
                parameter.grad = gradient.clone()
        return None

    def end(self) -> None:
        self._connection.close()
        with suppress(ChildProcessError, ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)

    def _send(self, order: Forward | None) -> None:
        if not self.is_gone:
            try:
                self._connection.send(order)
            except OSError:
                self._leave()

    def _receive(self) -> None:
        if not self.is_gone:
            try:
                self._connection.recv()
            except (EOFError, OSError):
                self._leave()

    def _leave(self) -> None:
        self.is_gone = True
        self.end()


class _Elsewhere(torch.autograd.Function):
    """The output of a part that a worker computes, in the graph of the learner."""

    @staticmethod
    def forward(ctx: Any, worker: _Worker, anchor: Tensor, params: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """anchor: needs a gradient, which makes the output need one."""
        ctx.worker = worker
        return params.clone(), value.clone()

    @staticmethod
    def backward(ctx: Any, params: Tensor, value: Tensor) -> tuple[None, ...]:
        ctx.worker.take_gradients_of_output(params, value)
        return None, None, None, None
