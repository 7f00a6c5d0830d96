"""The optimiser step by a compiled program on a CPU, which a process beside the learner makes while it goes on without.

A step of a small network on a few hundred samples is some hundreds of operations of a few microseconds: most of its
time goes by between them, in Python and in PyTorch's way from one to the next. A program has none of that
(`sf.system.native.programs`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import torch
import torch.utils._pytree as pytree
from torch import Tensor

import sf.learner
import sf.model
from sf.config import Config, LearnerConfig
from sf.envs import ActionSpec
from sf.envs.spaces import space_json
from sf.learner.batches.batch import Batch
from sf.learner.batches.minibatches import Cut, Minibatch, Moments, Targets
from sf.learner.compiled.faster_step import FasterStep, Take
from sf.learner.compiled.outcome import TOLERANCE, Outcome, Trial, Written, trained
from sf.learner.compiled.training_step import MIN_STEPS, Fixed, StepInputs, followed, results_of, tensors_of
from sf.learner.gradients.share import Threads
from sf.learner.loss.iteration import is_normalized_at_once
from sf.learner.loss.numbers import LossNumbers
from sf.learner.optimizer.optimizer import Optimizer
from sf.system.messages import say
from sf.system.native import programs
from sf.system.native.library import CompilerError
from sf.system.native.program_beside import BEGINS_AFTER_S, ProgramBeside

_TIMES = 3  # that both ways are timed; the best counts

Step = Callable[[], dict[str, Tensor]]


def is_for(config: LearnerConfig, has_memory: bool) -> bool:
    """Whether the steps of such a learner can be programs: several in an iteration, on single steps, by Adam alone."""
    is_of_steps = config.shuffle_steps and not has_memory and config.steps_per_iteration > 1
    return is_of_steps and config.optimizer == "adam"


class CompiledStep(FasterStep):
    """Takes optimiser steps by a program, where that is there, agrees with the learner's own step, and is faster.

    Call `look` now and then: it sees to the program. A learner of another network needs another one of these.
    """

    def __init__(
        self,
        config: Config,
        obs_space: gym.spaces.Dict,
        action_spec: ActionSpec,
        bfloat16: bool,
        example: Batch,
        most_threads: int = 1,
        begins_after_s: float | None = None,
        teams: Sequence[int] = (),
    ) -> None:
        """example: of an iteration of any size. most_threads: that there are cores for.
        begins_after_s: to make the program where it is not there; None: when it is time in a run. teams: as for
        `Updater`."""
        self._teams, self._num_together = tuple(teams), max(1, len(teams))
        self._config, self._obs_space = config, obs_space
        self._config_seen, self._has_settings = config.learner, True
        self._fixed = Fixed(config.learner, action_spec, bfloat16)
        self._example = example
        # Before the policy worker's program, which gains less.
        self._begins_after_s = BEGINS_AFTER_S / 2 if begins_after_s is None else begins_after_s
        self._network: Any = None
        self._optimizer: Optimizer
        self._beside: ProgramBeside | None = None
        self._runner: Any = None
        self._is_tried = False
        self._threads = Threads(most_threads)
        self._leaves: tuple[Minibatch, list[Tensor]] | None = None  # of the iteration that was trained on last

    def serve(self, network: Any, optimizer: Optimizer) -> None:
        is_first = self._network is None
        self._network, self._optimizer, self._leaves = network, optimizer, None
        if not is_first:
            return
        try:
            path = self._path_of_program()
            self._beside = ProgramBeside(path, self._followed, self._take, self._give_up, self._begins_after_s)
        except CompilerError as error:
            self._give_up(str(error))

    @property
    def is_settled(self) -> bool:
        """Whether the program is there, or will never be."""
        return self._beside is None or self._beside.is_over

    @property
    def has_program(self) -> bool:
        """Returns whether the program is there, also where it has not been tried yet."""
        return self._runner is not None

    @property
    def is_at_work(self) -> bool:
        # Not where evolution has changed what the program has as a constant.
        return self._is_tried and self._runner is not None and self._has_settings

    def measured(self, num_steps: int, busy_s: float, for_batch_s: float) -> None:
        self._threads.measured(num_steps, busy_s, for_batch_s)

    def look(self) -> None:
        if self._beside is not None:
            self._beside.look()

    def close(self) -> None:
        if self._beside is not None:
            self._beside.close()

    def takes(self, cut: Cut, config: LearnerConfig) -> bool:
        if self._runner is None or cut.at is None or cut.whole.targets is None:
            return False
        if len(cut.at) < MIN_STEPS * self._num_together:
            return False
        if config is not self._config_seen:
            self._config_seen = config
            self._has_settings = self._fixed._replace(config=config).words() == self._fixed.words()
            if not self._has_settings:
                self._threads.rest()
        return self._has_settings

    def step(self, cut: Cut, numbers: LossNumbers, take: Take) -> dict[str, Tensor]:
        if self._is_tried:
            return self._run(cut, numbers)
        return self._try(cut, numbers, lambda: take(cut.taken(), None))

    def _run(self, cut: Cut, numbers: LossNumbers) -> dict[str, Tensor]:
        assert cut.at is not None
        if self._leaves is None or self._leaves[0] is not cut.whole:
            inputs = self._inputs(self._network, self._optimizer, cut.whole)
            self._leaves = cut.whole, pytree.tree_leaves((inputs.weights, inputs.moments, inputs.whole))
        rates = torch.tensor((self._optimizer.learning_rate, *numbers.flat()), dtype=torch.float64)
        (results,) = self._runner.run([*self._leaves[1], cut.at.view(-1, self._num_together), rates])
        return dict(zip(results_of(self._config.learner), results.unbind(), strict=True))

    def _try(self, cut: Cut, numbers: LossNumbers, own: Step) -> dict[str, Tensor]:
        """Both ways, from the same weights. The program stays if it agrees and is faster."""
        trial = Trial(self._network, self._optimizer)
        seconds: dict[Step, float] = {}
        outcomes: dict[Step, Outcome] = {}

        def by_program() -> dict[str, Tensor]:
            return self._run(cut, numbers)

        def timed(way: Step) -> dict[str, Tensor]:
            begun_at = time.perf_counter()
            results = way()
            took = time.perf_counter() - begun_at
            seconds[way] = min(took, seconds.get(way, took))
            return results

        why_not = ""
        for _ in range(_TIMES):
            outcomes[own] = trial.take(lambda: timed(own))
            try:
                outcomes[by_program] = trial.take(lambda: timed(by_program))
            except RuntimeError as error:
                why_not = f"it fails: {next(iter(str(error).splitlines()), type(error).__name__)}"
                break
        self._is_tried = True
        tolerance = TOLERANCE[self._fixed.bfloat16]
        if not why_not and not trial.agree(outcomes[by_program], outcomes[own], tolerance):
            why_not = "its results differ from those of the network"
        if why_not:
            assert self._beside is not None
            self._beside.discard()
        elif not _is_faster(seconds[by_program], seconds[own]):
            why_not = "a program takes no less time"
        if why_not:
            self._give_up(why_not)
        else:
            times = seconds[own] / seconds[by_program]
            say(f"the learner's step is compiled from here on, which is {times:.1f} times as fast")
        return trial.keep(outcomes[own if why_not else by_program])

    def _inputs(self, network: Any, optimizer: Optimizer, whole: Minibatch) -> StepInputs:
        """Without what changes from one step to the next."""
        return StepInputs(
            *Written.of(network, optimizer),
            tensors_of(whole),
            at=torch.arange(MIN_STEPS * self._num_together).view(-1, self._num_together),
            rates=torch.zeros(1 + len(LossNumbers.of(self._config.learner).flat()), dtype=torch.float64),
        )

    def _path_of_program(self) -> Path:
        shapes = [f"{tuple(tensor.shape[2:])} {tensor.dtype}" for tensor in self._example.tensors()]
        config = self._config.learner
        way = config.normalize_advantages, config.normalize_advantages_over
        made_from = [
            repr((self._config.model, space_json.to_json(self._obs_space), way)),
            self._fixed.words(),
            str(self._teams),
            *shapes,
            *trained(self._network),
            *programs.code_of(sf.model, sf.learner, sf.shared.rows),
        ]
        return programs.path_of(self._network, (), made_from)

    def _followed(self) -> torch.export.ExportedProgram:
        return followed(self._network, self._fixed, self._example_inputs())

    def _take(self, path: Path) -> None:
        self._runner = programs.load(path)

    def _example_inputs(self) -> StepInputs:
        """In the process that makes the program. Each is a tensor of its own: two that are one would stay one."""
        batch = self._example
        proximal_log_prob, value, advantage = (torch.zeros_like(batch.reward) for _ in range(3))
        has_moments = is_normalized_at_once(self._config.learner)
        moments = Moments(*torch.zeros(len(Moments._fields))) if has_moments else None
        whole = Minibatch(batch, batch.valid.clone(), proximal_log_prob, Targets(value, advantage), moments)
        return self._inputs(self._network, self._optimizer, whole)

    def _give_up(self, why: str) -> None:
        self._runner = None
        say(f"the learner's step is not compiled ({why}), so it runs with PyTorch's operations")


def _is_faster(seconds: float, than: float) -> bool:
    return seconds < than
