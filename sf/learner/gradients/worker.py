"""A gradient worker: a process beside a learner that computes a part of each minibatch, forward and backward.

Consumes   a part of a minibatch, then the gradients of what the network made of it.
Produces   what the network makes of it, then gradients of the weights, which the learner adds to its own.
Waits for  a word of the learner, over a socket.
Unblocked  by the learner, or by its end.

The learner forks it before it computes anything, and so has no other threads; or later, in the place of one that died.
It knows nothing of losses: those need the whole minibatch.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, NoReturn

import torch
from torch import Tensor, nn

from sf.learner.gradients.memory import SharedPart
from sf.model.inference import load_flat
from sf.processes.child import set_name
from sf.processes.creator import die_with_creator


class Forward(NamedTuple):
    """Compute the output of so many rows and columns, with the weights as they are in memory now."""

    num_rows: int
    num_columns: int
    with_gradients: bool  # they will be wanted next


class Backward(NamedTuple):
    """Compute the gradients of the weights from those of the output."""


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
            assert isinstance(connection.recv(), Backward)
            for parameter in parameters:
                parameter.grad = None
            torch.autograd.backward(list(output), list(part.gradients_of_output(*shape)))
            for shared, parameter in zip(part.gradients(parameters), parameters, strict=True):
                shared.copy_(parameter.grad) if parameter.grad is not None else shared.zero_()
            connection.send(None)
        del output
        order = connection.recv()
