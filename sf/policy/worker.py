"""The policy worker: computes actions for all waiting groups in one forward pass, and keeps nothing of its own.

Consumes   requests (group indices) of its share of the groups; the latest weights.
Produces   action, log-probability, value and policy version in the slots' rows; answers (group indices) to the inboxes.
Waits for  a request; in synchronous mode, for the requests of all groups, so that batches are the same in every run.
           Searches ask unequally often, so there each request is a batch of its own.
Unblocked  by a rollout worker, or by a stop.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import Any

import gymnasium as gym
import numpy as np
import torch

from sf.config import ModelConfig
from sf.config.flags.model import is_hidden
from sf.envs import ActionSpec, EnvSpec
from sf.model.acting import Acting, ActingHere, AnyActing
from sf.model.compiled_acting import acting_of
from sf.model.inference import Flat, inference_model
from sf.policy.inference_batch import InferenceBatch
from sf.policy.lessons import Lessons
from sf.shared.counters import CounterRow
from sf.shared.policy_view import widened
from sf.shared.queues import StopRequested
from sf.shared.recurrent_states import RecurrentStates
from sf.shared.requests import PolicyChannel
from sf.shared.rows import TurnMask, answered_fields
from sf.shared.teaching import Teaching
from sf.shared.weights import SharedWeights, SharedWeightsSpec
from sf.system import gpu
from sf.system.arrays import SharedArrays
from sf.system.messages import nobody, said_to
from sf.system.processes.reports import Ready, Reports
from sf.system.processes.torch_runtime import configure


@dataclass(frozen=True)
class PolicyWorkerArgs:
    """Everything a policy worker needs to know."""

    spec: EnvSpec  # of the policy
    model: ModelConfig
    bfloat16: bool
    synchronous: bool
    searches: bool  # requests are about the leaves of searches
    num_threads: int
    seed: int
    idx: int  # of this policy worker
    weights: SharedWeightsSpec
    learner: Connection | SharedWeights  # where the weights come from: the weights themselves in a run of one process
    states: RecurrentStates
    rows: SharedArrays  # of the slots
    channel: PolicyChannel
    counters: CounterRow
    policy_id: int
    teaching: Teaching | None  # where the run has teachers
    teachers: Any  # `sf.evaluation.play.teachers.Teachers`, or None
    num_actors: int  # of the run


def policy_worker(reports: Reports, args: PolicyWorkerArgs) -> None:
    """Body of the process. The first of them tells the user what is true of all."""
    with nullcontext() if args.idx == 0 else said_to(nobody):
        _answer_requests(reports, args)


def _answer_requests(reports: Reports, args: PolicyWorkerArgs) -> None:
    configure(args.weights.device, args.num_threads, deterministic=args.synchronous)
    try:
        worker = PolicyWorker(args)
    except EOFError:
        return  # the learner ended before it shared its weights: the parent hears why from the learner
    reports.send(Ready())
    try:
        while True:
            worker.step()
    except StopRequested:
        worker.close()


class PolicyWorker:
    """A policy worker without the loop around it."""

    def __init__(self, args: PolicyWorkerArgs) -> None:
        self._policy = _Policy(args)
        self._channel = args.channel
        self._counters = args.counters
        self._at_least = args.channel.num_groups if args.synchronous and not args.searches else 1
        self._is_apart = args.synchronous and args.searches

    def step(self) -> None:
        """Wait for requests, and answer them. Raises StopRequested."""
        self._counters.waiting()
        groups = self._channel.take(self._at_least)
        self._counters.working()
        for together in np.split(groups, len(groups)) if self._is_apart else [groups]:
            self._answer(together)

    def _answer(self, groups: np.ndarray) -> None:
        channel, counters = self._channel, self._counters
        numbers = channel.numbers(groups)
        slots, rows, numbers_of_actors = channel.rows(groups, numbers)
        if len(slots):  # else the request was one of a worker that has died since
            self._policy.act(slots, rows, numbers_of_actors)
        channel.answer(groups, numbers)
        counters.add(steps=len(slots), calls=1)

    def close(self) -> None:
        self._policy.close()


class _Policy:
    """The network with the rows it reads and writes."""

    def __init__(self, args: PolicyWorkerArgs) -> None:
        here = args.learner
        self._shared = here if isinstance(here, SharedWeights) else SharedWeights.attach(args.weights, here)
        self._device = gpu.torch_device(args.weights.device)
        self._action_spec = ActionSpec.of(args.spec.action_space)
        self._model = inference_model(
            args.model,
            args.spec.obs_space,
            self._action_spec,
            "bfloat16" if args.bfloat16 else "float32",
            self._device,
        )
        self._batch = self._batch_of(args)
        self._weights = torch.empty(args.weights.num_weights + 1, device=self._device)
        self._flat = Flat(self._model, self._weights[:-1])
        self._version = 0
        self._seed = (args.seed, args.idx)
        self._rows = args.rows
        self._channel = args.channel
        self._of_waiting = {
            field.name: np.zeros((), field.dtype) for field in answered_fields(args.spec.optional_fields)
        }
        self._lessons: Lessons | None = None
        if args.teaching is not None:
            device = str(self._device)
            compiles = args.model.compile is not False and not args.synchronous
            teacher = args.teachers.here(args.num_actors, args.seed, device, args.bfloat16, compiles)
            self._lessons = Lessons(teacher, args.teaching, args.policy_id, args.spec, args.rows, self._seed)
        self._turns = None
        if not self._model.state_size:
            self._turns = TurnMask.from_rows(args.rows, self._action_spec.num_continuous)

    def act(self, slots: np.ndarray, rows: np.ndarray, numbers: np.ndarray) -> None:
        """Write the actions of N actors into their `rows` [N] of `slots` [N]. numbers: [N] of the requests."""
        self._refresh_weights()
        if self._turns is not None:
            acts = self._turns.acts(slots, rows)
            waits = ~acts
            self._write(slots[waits], rows[waits], numbers[waits], self._of_waiting)
            slots, rows, numbers = slots[acts], rows[acts], numbers[acts]
        if len(slots):
            actors = self._rows["actor"][slots]  # [N]
            first = self._rows["first"][slots, rows]  # [N]
            answers: Mapping[str, np.ndarray] = self._batch.decide(slots, rows, actors, numbers, first)
            if self._lessons is not None:
                answers = self._lessons.added_to(answers, slots, rows, actors, first)
            self._write(slots, rows, numbers, answers)

    def _batch_of(self, args: PolicyWorkerArgs) -> InferenceBatch:
        """Returns the batch. On a CPU in synchronous mode nothing is compiled: a program is there at another time in
        each run, so two runs would not be the same."""
        device, is_on_host = args.weights.device, args.weights.device == gpu.HOST
        seen = args.spec
        acting: AnyActing = ActingHere(Acting(self._model, self._action_spec, seen.optional_fields))
        if args.model.has_central_critic:
            seen = replace(seen, obs_space=seen.actor_obs_space)
        else:
            shown = {key: box for key, box in seen.obs_space.items() if not is_hidden(key, args.model.teacher_obs)}
            seen = replace(seen, obs_space=gym.spaces.Dict(shown))
        if is_on_host and not args.synchronous:
            acting = acting_of(self._model, args.model, seen, args.bfloat16, device)
        max_actors = args.channel.num_groups * args.channel.actors_per_group
        batch = InferenceBatch(acting, seen, args.rows, args.states, max_actors, device)
        if not is_on_host and args.model.compile is not False:
            batch.record(torch.bfloat16 if args.bfloat16 else torch.float32)
        return batch

    def close(self) -> None:
        self._batch.close()
        if self._lessons is not None:
            self._lessons.close()

    def _write(
        self, slots: np.ndarray, rows: np.ndarray, numbers: np.ndarray, answers: Mapping[str, np.ndarray]
    ) -> None:
        """answers: the fields that the network computes, by name, each [N, ...], or [] for all actors."""
        asked = self._channel.still_asked(self._rows["actor"][slots], numbers)
        slots, rows = slots[asked], rows[asked]
        for name, answer in answers.items():
            field = self._rows[name]
            field[slots, rows] = widened(answer, field.shape[2:])[asked] if answer.ndim else answer
        self._rows["policy_version"][slots, rows] = self._version

    def _refresh_weights(self) -> None:
        if self._shared.latest_version != self._version:
            self._version = self._shared.read(self._weights)
            self._flat.load()
            # By version, so that a resumed synchronous run draws what it would have drawn without the stop.
            drawn = np.random.SeedSequence((*self._seed, self._version)).generate_state(1, np.uint64)
            self._batch.generator.manual_seed(int(drawn[0] >> np.uint64(1)))  # torch takes 63 bits
            if self._lessons is not None:
                self._lessons.begin_version(self._version)
