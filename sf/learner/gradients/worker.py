"""A gradient worker: a process beside a learner that computes a part of each minibatch, forward and backward.

Consumes   a part of a minibatch, then the gradients of what the network made of it.
Produces   what the network makes of it, then gradients of the weights, which the learner adds to its own.
Waits for  a word of the learner, over a socket.
Unblocked  by the learner, or by its end.

The learner forks it before it computes anything, and so has no other threads; or later, in the place of one that died.
It knows nothing of losses: those need the whole minibatch.
"""

from __future__ import annotations

import math
import os
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, NoReturn, cast

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor, nn

from sf.config import Config
from sf.envs import ActionSpec, EnvSpec
from sf.model.actor_critic import UnrollOutput
from sf.model.inference import load_flat
from sf.shared.rows import OBS
from sf.system.arrays import Field, SharedArrays
from sf.system.processes.child import set_name
from sf.system.processes.creator import die_with_creator


class Inputs(NamedTuple):
    """Of `ActorCritic.unroll`: obs {key: [R, C, ...]}, state [C, S], first [R, C] bool. R counts the last row, too."""

    obs: Mapping[str, Tensor]
    state: Tensor
    first: Tensor


@dataclass(frozen=True)
class Sizes:
    """Of the largest part: num_rows over all of its columns, num_columns."""

    num_rows: int
    num_columns: int

    @classmethod
    def of_share(cls, config: Config, num_shares: int, num_together: int = 1) -> Sizes:
        """For a minibatch that is cut into so many parts, of trajectories or of single steps, of which so many stay
        together."""
        num_steps, num_batches = config.rollout, config.learner.num_batches_per_epoch
        columns = math.ceil(math.ceil(config.trajectories_per_iteration / num_batches) / num_shares)
        single_steps = math.ceil(math.ceil(config.trajectories_per_iteration * num_steps / num_batches) / num_shares)
        return cls(max(columns * (num_steps + 1), single_steps + num_together), max(columns, num_together))


class SharedPart:
    """The memory. The learner fills in the inputs, the worker the output; then the learner the gradients of the output,
    and the worker those of the weights."""

    def __init__(self, spec: EnvSpec, sizes: Sizes, state_size: int, num_weights: int) -> None:
        """num_weights: of parameters and buffers."""
        action = ActionSpec.of(spec.action_space)
        rows, num_params = sizes.num_rows, sum(action.discrete_sizes) + 2 * action.num_continuous
        boxes = cast("dict[str, gym.spaces.Box]", dict(spec.obs_space.items()))
        fields = [
            *(Field(OBS + key, (rows, *box.shape), box.dtype) for key, box in boxes.items()),
            Field("state", (sizes.num_columns, state_size), np.float32),
            Field("first", (rows,), np.bool_),
            *(Field(name, (rows, num_params), np.float32) for name in ("params", "d_params")),
            *(Field(name, (rows,), np.float32) for name in ("value", "d_value")),
            Field("gradients", (num_weights,), np.float32),
        ]
        arrays = SharedArrays(fields, name="sf-gradients")  # keeps the mapping alive
        self._obs = {key: torch.from_numpy(array) for key, array in arrays.named(OBS).items()}
        self._tensors = {field.name: torch.from_numpy(arrays[field.name]) for field in fields}

    def inputs(self, num_rows: int, num_columns: int) -> Inputs:
        return Inputs(
            {key: _shaped(rows, num_rows, num_columns) for key, rows in self._obs.items()},
            self._tensors["state"][:num_columns],
            _shaped(self._tensors["first"], num_rows, num_columns),
        )

    def output(self, num_rows: int, num_columns: int) -> UnrollOutput:
        return self._of_output("params", "value", num_rows, num_columns)

    def gradients_of_output(self, num_rows: int, num_columns: int) -> UnrollOutput:
        return self._of_output("d_params", "d_value", num_rows, num_columns)

    def gradients(self, parameters: list[torch.nn.Parameter]) -> list[Tensor]:
        """Of the weights, in the shapes of the parameters."""
        sizes = [parameter.numel() for parameter in parameters]
        parts = self._tensors["gradients"][: sum(sizes)].split(sizes)
        return [part.view(parameter.shape) for part, parameter in zip(parts, parameters, strict=True)]

    def _of_output(self, params: str, value: str, num_rows: int, num_columns: int) -> UnrollOutput:
        return UnrollOutput(
            _shaped(self._tensors[params], num_rows - 1, num_columns),
            _shaped(self._tensors[value], num_rows, num_columns),
        )


def _shaped(rows: Tensor, num_rows: int, num_columns: int) -> Tensor:
    return rows[: num_rows * num_columns].unflatten(0, (num_rows, num_columns))


BACKWARD = None
"""An order to compute the gradients of the weights from those of the output."""


class Forward(NamedTuple):
    """Compute the output of so many rows and columns, with the weights as they are in memory now."""

    num_rows: int
    num_columns: int
    with_gradients: bool  # they will be wanted next


def gradient_worker(
    name: str,
    *,
    connection: Connection,
    creator: int,
    num_threads: int | None,
    build: Callable[[], nn.Module],
    weights: Tensor,
    part: SharedPart,
    bfloat16: bool,
) -> NoReturn:
    """Body of the process.

    creator: its pid. num_threads: None for as many as the learner has. weights: flat [W], shared, which the learner
    writes before each step.
    """
    status = 1
    try:
        die_with_creator()
        set_name(name)
        if num_threads is not None:
            torch.set_num_threads(num_threads)
        if os.getppid() == creator:
            with suppress(EOFError, OSError):  # the learner has gone
                _serve(connection, build, weights, part, bfloat16)
            status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _serve(
    connection: Connection, build: Callable[[], nn.Module], weights: Tensor, part: SharedPart, bfloat16: bool
) -> None:
    order = connection.recv()  # before it builds anything: most workers are never needed
    model: Any = build()
    parameters = list(model.parameters())
    while True:
        assert isinstance(order, Forward)
        shape = order.num_rows, order.num_columns
        load_flat(model, weights)
        with torch.set_grad_enabled(order.with_gradients), torch.autocast("cpu", torch.bfloat16, enabled=bfloat16):
            output = model.unroll(*part.inputs(*shape))
        for found, shared in zip(output, part.output(*shape), strict=True):
            shared.copy_(found.detach())
        connection.send(None)
        if order.with_gradients:
            assert connection.recv() is BACKWARD
            for parameter in parameters:
                parameter.grad = None
            torch.autograd.backward(list(output), list(part.gradients_of_output(*shape)))
            for shared, parameter in zip(part.gradients(parameters), parameters, strict=True):
                shared.copy_(parameter.grad) if parameter.grad is not None else shared.zero_()
            connection.send(None)
        del output
        order = connection.recv()
