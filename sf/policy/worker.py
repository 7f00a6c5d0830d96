"""The policy worker: computes actions for all waiting groups in one forward pass, and keeps nothing of its own.

Consumes   requests (group indices) of its share of the groups; the latest weights.
Produces   action, log-probability, value and policy version in the slots' rows; answers (group indices) to the inboxes.
Waits for  a request; in synchronous mode, for the requests of all groups, so that batches are the same in every run.
Unblocked  by a rollout worker, or by STOP among the requests.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from multiprocessing.connection import Connection

import numpy as np
import torch
from torch import Tensor

from sf.channels import PolicyChannel
from sf.config import ModelConfig
from sf.counters import CounterRow
from sf.envs import ActionSpec, EnvSpec
from sf.memory import SharedArrays
from sf.model.distributions import ActionDistribution
from sf.model.inference import inference_model, load_flat
from sf.policy_memory import PolicyMemory, PolicyMemorySpec
from sf.processes import Reports
from sf.queues import StopRequested
from sf.slots import OBS
from sf.torch_runtime import configure


@dataclass(frozen=True)
class PolicyWorkerArgs:
    """Everything a policy worker needs to know."""

    spec: EnvSpec
    model: ModelConfig
    bfloat16: bool
    synchronous: bool
    num_threads: int
    seed: int
    idx: int  # of this policy worker
    rollout: int
    memory: PolicyMemorySpec
    learner: Connection  # where the memory comes from
    rows: SharedArrays  # of the slots
    channel: PolicyChannel
    counters: CounterRow


def policy_worker(reports: Reports, args: PolicyWorkerArgs) -> None:
    """Body of the process."""
    configure(args.memory.device, args.num_threads, deterministic=args.synchronous)
    try:
        policy = _Policy(args)
    except EOFError:
        return  # the learner ended before it shared its memory: the parent hears why from the learner
    channel, counters = args.channel, args.counters
    at_least = channel.num_groups if args.synchronous else 1
    reports.send("ready")
    while True:
        waiting_since = time.perf_counter()
        counters.waiting()
        try:
            groups = channel.take(at_least)
        except StopRequested:
            return
        counters.working()
        busy_since = time.perf_counter()
        numbers = channel.numbers(groups)
        slots, rows, numbers_of_actors = channel.rows(groups, numbers)
        if len(slots):  # else the request was one of a worker that has died since
            policy.act(slots, rows, numbers_of_actors)
        channel.answer(groups, numbers)
        now = time.perf_counter()
        counters.add(
            steps=len(slots),
            calls=1,
            wait_s=busy_since - waiting_since,
            busy_s=now - busy_since,
        )


class _Policy:
    """The network with the rows it reads and writes."""

    def __init__(self, args: PolicyWorkerArgs) -> None:
        device = args.memory.device
        self._device = torch.device(device)
        self._action_spec = ActionSpec.of(args.spec.action_space)
        self._model = inference_model(
            args.model,
            args.spec.obs_space,
            self._action_spec,
            "bfloat16" if args.bfloat16 else "float32",
            device,
        )
        self._memory = PolicyMemory.attach(args.memory, args.learner)
        self._weights = torch.empty(args.memory.shapes["weights"][1], device=device)
        self._version = 0
        self._generator = torch.Generator(device)
        self._seed = (args.seed, args.idx)
        self._rows = args.rows
        self._rows_per_slot = args.rollout + 1
        self._has_state = args.memory.shapes["actor_state"][-1] > 0
        self._obs = _ObsGather(args.rows, args.channel.num_groups * args.channel.actors_per_group, self._device)

    def act(self, slots: np.ndarray, rows: np.ndarray, numbers: np.ndarray) -> None:
        """Write the actions of N actors into their `rows` [N] of `slots` [N]. numbers: [N] of the requests."""
        actors = self._index(self._rows["actor"][slots])  # [N]
        self._refresh_weights()
        with torch.inference_mode():
            obs = self._obs.gather(slots.astype(np.int64) * self._rows_per_slot + rows)
            first = torch.from_numpy(self._rows["first"][slots, rows]).to(self._device)
            state = self._state_before(actors, numbers, slots, rows, first)
            out = self._model.step(obs, state, first)
            distribution = ActionDistribution(self._action_spec, out.params)
            discrete, continuous = distribution.sample(self._generator)
            log_prob = distribution.log_prob(discrete, continuous)
            if self._has_state:
                self._memory.actor_state[self._index(numbers % 2), actors] = out.state
            answers = _to_host(discrete, continuous, log_prob, out.value)
        for name, answer in zip(("discrete", "continuous", "log_prob", "value"), answers, strict=True):
            self._rows[name][slots, rows] = answer
        self._rows["policy_version"][slots, rows] = self._version

    def _refresh_weights(self) -> None:
        if self._memory.latest_version != self._version:
            self._version = self._memory.read(self._weights)
            load_flat(self._model, self._weights)
            # By version, so that a resumed synchronous run draws what it would have drawn without the stop.
            self._generator.manual_seed(_one_number((*self._seed, self._version)))

    def _state_before(
        self, actors: Tensor, numbers: np.ndarray, slots: np.ndarray, rows: np.ndarray, first: Tensor
    ) -> Tensor:
        """The recurrent state before this row [N, S]; kept beside the slot where the slot begins here."""
        if not self._has_state:
            return self._memory.actor_state.new_empty(len(actors), 0)
        state = self._memory.actor_state[self._index((numbers - 1) % 2), actors]
        state = torch.where(first.unsqueeze(1), 0.0, state)
        begins = np.flatnonzero(rows == 0)
        if len(begins) > 0:
            self._memory.slot_state[self._index(slots[begins])] = state[self._index(begins)]
        return state

    def _index(self, positions: np.ndarray) -> Tensor:
        return torch.from_numpy(positions.astype(np.int64)).to(self._device)


def _one_number(seed: tuple[int, ...]) -> int:
    return int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0] >> np.uint64(1))  # torch takes 63 bits


def _to_host(discrete: Tensor, continuous: Tensor, log_prob: Tensor, value: Tensor) -> tuple[np.ndarray, ...]:
    """The four answers [N, D] int32, [N, C], [N], [N] float32 in one transfer: floats travel as their bits."""
    floats = torch.cat((continuous, log_prob.unsqueeze(1), value.unsqueeze(1)), dim=1)
    packed = torch.cat((discrete, floats.view(torch.int32)), dim=1).cpu().numpy()
    num_discrete = discrete.shape[1]
    host_floats = packed[:, num_discrete:].view(np.float32)
    return packed[:, :num_discrete], host_floats[:, :-2], host_floats[:, -2], host_floats[:, -1]


class _ObsGather:
    """Collects the observations of a batch into one tensor on the device, through pinned memory with a GPU."""

    def __init__(self, rows: SharedArrays, max_actors: int, device: torch.device) -> None:
        self._device = device
        self._all = {
            key: torch.from_numpy(array).flatten(0, 1)  # [num_slots * (T+1), ...]
            for key, array in rows.named(OBS).items()
        }
        self._staging = {
            key: torch.empty((max_actors, *rows.shape[1:]), dtype=rows.dtype, pin_memory=device.type == "cuda")
            for key, rows in self._all.items()
        }

    def gather(self, positions: np.ndarray) -> dict[str, Tensor]:
        """positions: [N] rows of [num_slots * (T+1)]. The result is overwritten by the next call.

        The pinned memory may be reused then: every batch ends with a transfer that waits for all that came before.
        """
        index = torch.from_numpy(positions)
        batch = {}
        for key, rows in self._all.items():
            staged = self._staging[key][: len(index)]
            torch.index_select(rows, 0, index, out=staged)
            batch[key] = staged.to(self._device, non_blocking=True)
        return batch
