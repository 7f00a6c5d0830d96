"""Acting by a compiled program on a CPU, which a process beside the policy worker makes while it goes on without.

A policy worker spends most of its time between the operations of the network: in Python, and in PyTorch's way from one
operation to the next. A program has none of that (`sf.system.native.programs`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor

import sf.model
import sf.shared.rows
from sf.config import ModelConfig
from sf.envs import ActionSpec, EnvSpec
from sf.envs.spaces import space_json
from sf.model.acting import Acting, ActingHere, AnyActing, Saying, Way, agree_on, repeated, say_the_same
from sf.model.distributions import ActionDistribution
from sf.system import gpu
from sf.system.messages import say
from sf.system.native import kernels, programs
from sf.system.native.library import CompilerError
from sf.system.native.program_beside import BEGINS_AFTER_S, ProgramBeside
from sf.system.native.programs import Program


def acting_of(
    network: Any,
    model: ModelConfig,
    spec: EnvSpec,
    bfloat16: bool,
    device: str,
    begins_after_s: float | None = None,
) -> AnyActing:
    """Compiled, where `--compile` has it so, on a CPU that has a compiler.

    network: for inference, on `device`, of an actor that sees and does what `spec` says. bfloat16: of its trunk.
    begins_after_s: see `CompiledActing`.
    """
    action_spec = ActionSpec.of(spec.action_space)
    acting, dtype = Acting(network, action_spec, spec.optional_fields), _dtype(bfloat16)
    if not _can_be_compiled(model, device):
        return ActingHere(acting)
    noise = ActionDistribution.noise(action_spec, (programs.BATCH,), torch.device("cpu"))
    example = (*_example(network, spec.obs_space), *noise)
    made_from = repr((model, space_json.to_json(spec.obs_space), spec.action_space, spec.optional_fields, dtype))

    def agree(inputs: tuple[Any, ...], one: Way, other: Way) -> bool:
        return agree_on(inputs, one, other, action_spec, dtype)

    return CompiledActing(acting, example, made_from, agree, begins_after_s)


def saying_of(
    network: Any, model: ModelConfig, obs_space: gym.spaces.Dict, bfloat16: bool, device: str, what: str
) -> AnyActing:
    """`acting_of` for what a network only says, see `sf.model.acting.Saying`. what: it is, in a sentence."""
    saying, dtype = Saying(network), _dtype(bfloat16)
    if not _can_be_compiled(model, device):
        return ActingHere(saying)
    made_from = repr((model, space_json.to_json(obs_space), dtype))

    def agree(inputs: tuple[Any, ...], one: Way, other: Way) -> bool:
        return say_the_same(inputs, one, other, dtype)

    return CompiledActing(saying, _example(network, obs_space), made_from, agree, what=what)


def _dtype(bfloat16: bool) -> torch.dtype:
    return torch.bfloat16 if bfloat16 else torch.float32


def _can_be_compiled(model: ModelConfig, device: str) -> bool:
    return device == gpu.HOST and model.compile is not False and kernels.why_not() is None


def _example(network: Any, obs_space: gym.spaces.Dict) -> tuple[Any, ...]:
    batch = programs.BATCH
    boxes = cast("dict[str, gym.spaces.Box]", obs_space.spaces)
    return (
        {key: torch.from_numpy(np.zeros((batch, *box.shape), box.dtype)) for key, box in boxes.items()},
        torch.zeros(batch, network.state_size),
        torch.zeros(batch, dtype=torch.bool),
    )


class CompiledActing(AnyActing):
    """Stands for an `Acting` or a `Saying`, and computes the same: with a program where that is there."""

    def __init__(
        self,
        acting: Acting | Saying,
        example: tuple[Any, ...],
        made_from: str,
        agree: Callable[[tuple[Any, ...], Way, Way], bool],
        begins_after_s: float | None = None,
        what: str = "the policy",
    ) -> None:
        """example: inputs with a batch of `programs.BATCH`. made_from: all that the network was built from. agree:
        whether two ways to compute it do so on some inputs. begins_after_s: to make the program where it is not there;
        None: when it is time in a run; inf: it is taken where another process has made it. what: acts, in a sentence.
        """
        self._agree, self._what = agree, what
        self._acting = acting
        self._example = example
        if begins_after_s is None:
            begins_after_s = BEGINS_AFTER_S
        self._makes_it = begins_after_s < math.inf
        self._program: Program | None = None
        self._is_checked = False
        self._beside: ProgramBeside | None = None
        try:
            path = programs.path_of(acting, example, [made_from, *programs.code_of(sf.model, sf.shared.rows)])
            self._beside = ProgramBeside(path, self._followed, self._take, self._give_up, begins_after_s)
        except CompilerError as error:
            self._give_up(str(error))

    def __call__(self, *inputs: Any) -> tuple[Tensor, Tensor]:
        """See `Acting.forward`."""
        if self._program is not None and not self._is_checked:
            self._check(self._program, inputs)
        if self._program is None:
            return self._acting(*inputs)
        if len(inputs[1]) > 1:
            return self._run(self._program, inputs)
        answers, state = self._run(self._program, repeated(inputs, 2))  # one is no batch for PyTorch's compiler
        return answers[:1], state[:1]

    @property
    def is_settled(self) -> bool:
        """Whether the program is there, or will never be."""
        return self._beside is None or self._beside.is_over

    @property
    def has_program(self) -> bool:
        """Returns whether the program is there, also where its results have not been compared yet."""
        return self._program is not None

    def look(self) -> None:
        if self._beside is not None:
            self._beside.look()

    def close(self) -> None:
        if self._beside is not None:
            self._beside.close()

    def _followed(self) -> torch.export.ExportedProgram:
        return programs.followed(self._acting, self._example)

    def _take(self, path: Path) -> None:
        self._program = Program(path, self._acting)
        if self._beside is not None:  # it was not there from the start
            say(f"{self._what}'s step is compiled from here on; the next run of this network begins with that")

    def _give_up(self, why: str) -> None:
        say(f"{self._what}'s step is not compiled ({why}), so it runs with PyTorch's operations, which is slower")

    def _run(self, program: Program, inputs: tuple[Any, ...]) -> tuple[Tensor, Tensor]:
        obs, *others = inputs
        answers, state = program({key: obs[key] for key in self._example[0]}, *others)
        return answers, state

    def _check(self, program: Program, inputs: tuple[Any, ...]) -> None:
        """By the first inputs."""
        self._is_checked = True
        if not self._agree(inputs, self._acting, lambda *drawn: self._run(program, drawn)):
            self._program = None
            if self._makes_it:
                assert self._beside is not None
                self._beside.discard()
            self._give_up("its results differ from those of the network")
