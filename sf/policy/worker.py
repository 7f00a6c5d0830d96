"""The policy worker: computes actions for all waiting groups in one forward pass, and keeps nothing of its own.

Consumes   requests (group indices) of its share of the groups; the latest weights.
Produces   action, log-probability, value and policy version in the slots' rows; answers (group indices) to the inboxes.
Waits for  a request; in synchronous mode, for the requests of all groups, so that batches are the same in every run.
Unblocked  by a rollout worker, or by a stop.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from sf import gpu
from sf.arrays import SharedArrays
from sf.config import ModelConfig
from sf.counters import CounterRow
from sf.envs import ActionSpec, EnvSpec
from sf.model.acting import Acting, Answers
from sf.model.compiled_acting import AnyActing, CompiledActing, acting_of
from sf.model.distributions import ActionDistribution
from sf.model.inference import Flat, inference_model
from sf.processes.reports import Ready, Reports
from sf.processes.torch_runtime import configure
from sf.queues import StopRequested
from sf.requests import PolicyChannel
from sf.rows import OBS, Turns
from sf.weights import SharedWeights, SharedWeightsSpec

_LARGE = 2048  # bytes of an observation


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
    weights: SharedWeightsSpec
    learner: Connection  # where the weights come from
    rows: SharedArrays  # of the slots
    channel: PolicyChannel
    counters: CounterRow


def policy_worker(reports: Reports, args: PolicyWorkerArgs) -> None:
    """Body of the process."""
    configure(args.weights.device, args.num_threads, deterministic=args.synchronous)
    try:
        policy = _Policy(args, reports)
    except EOFError:
        return  # the learner ended before it shared its weights: the parent hears why from the learner
    channel, counters = args.channel, args.counters
    at_least = channel.num_groups if args.synchronous else 1
    reports.send(Ready())
    while True:
        waiting_since = time.perf_counter()
        counters.waiting()
        try:
            groups = channel.take(at_least)
        except StopRequested:
            policy.close()
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

    def __init__(self, args: PolicyWorkerArgs, reports: Reports) -> None:
        self._shared = SharedWeights.attach(args.weights, args.learner)
        self._device = gpu.torch_device(args.weights.device)
        self._action_spec = ActionSpec.of(args.spec.action_space)
        self._model = inference_model(
            args.model,
            args.spec.obs_space,
            self._action_spec,
            "bfloat16" if args.bfloat16 else "float32",
            self._device,
        )
        self._acting = self._acting_of(args, reports)
        self._weights = torch.empty(args.weights.num_weights + 1, device=self._device)
        self._flat = Flat(self._model, self._weights[:-1])
        self._version = 0
        self._generator = torch.Generator(self._device)
        self._seed = (args.seed, args.idx)
        self._rows = args.rows
        self._channel = args.channel
        self._rows_per_slot = args.rollout + 1
        max_actors = args.channel.num_groups * args.channel.actors_per_group
        self._obs = _ObsGather(args.rows, max_actors, args.weights.device)
        self._states = _States(self._shared, max_actors)
        self._turns = None if self._model.state_size else Turns.where_there_are(args.rows)
        self._answers = _Answers(self._action_spec, max_actors, args.weights.device)

    def act(self, slots: np.ndarray, rows: np.ndarray, numbers: np.ndarray) -> None:
        """Write the actions of N actors into their `rows` [N] of `slots` [N]. numbers: [N] of the requests."""
        self._refresh_weights()
        if self._turns is not None:
            acts = self._turns.whose(slots, rows)
            waits = ~acts
            self._write(slots[waits], rows[waits], numbers[waits], (0, 0.0, 0.0, 0.0))
            slots, rows, numbers = slots[acts], rows[acts], numbers[acts]
        if len(slots):
            self._compute(slots, rows, numbers)

    def _acting_of(self, args: PolicyWorkerArgs, reports: Reports) -> AnyActing:
        """Not compiled in synchronous mode: nobody knows when the program is there, so two runs would not be the
        same."""
        if args.synchronous and args.weights.device == gpu.HOST:
            return Acting(self._model, self._action_spec)

        def say(text: str) -> None:
            if args.idx == 0:  # the others would say the same
                reports.say(text)

        return acting_of(self._model, args.model, args.spec, args.bfloat16, args.weights.device, say)

    def close(self) -> None:
        if isinstance(self._acting, CompiledActing):
            self._acting.close()

    def _compute(self, slots: np.ndarray, rows: np.ndarray, numbers: np.ndarray) -> None:
        """As `act`, of actors for whom the network decides."""
        actors = self._rows["actor"][slots]  # [N]
        first = self._rows["first"][slots, rows]  # [N]
        if isinstance(self._acting, CompiledActing):
            self._acting.look()
        with torch.inference_mode():
            obs = self._obs.gather(slots.astype(np.int64) * self._rows_per_slot + rows)
            state = self._states.before(actors, numbers, first)
            self._states.keep(slots, rows)
            noise = ActionDistribution.noise(self._action_spec, (len(slots),), self._device, self._generator)
            packed, state = self._acting(obs, state, self._states.first(first), *noise)
            self._states.send(state)
            answers = self._answers.receive(packed)
        self._states.write(actors, numbers)
        self._write(slots, rows, numbers, answers)

    def _write(self, slots: np.ndarray, rows: np.ndarray, numbers: np.ndarray, answers: tuple[Any, ...]) -> None:
        """answers: discrete and continuous actions, log-probability, value: arrays [N, ...], or numbers for all."""
        asked = self._channel.still_asked(self._rows["actor"][slots], numbers)
        slots, rows = slots[asked], rows[asked]
        for name, answer in zip(("discrete", "continuous", "log_prob", "value"), answers, strict=True):
            self._rows[name][slots, rows] = answer[asked] if isinstance(answer, np.ndarray) else answer
        self._rows["policy_version"][slots, rows] = self._version

    def _refresh_weights(self) -> None:
        if self._shared.latest_version != self._version:
            self._version = self._shared.read(self._weights)
            self._flat.load()
            # By version, so that a resumed synchronous run draws what it would have drawn without the stop.
            self._generator.manual_seed(_one_number((*self._seed, self._version)))


def _one_number(seed: tuple[int, ...]) -> int:
    return int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0] >> np.uint64(1))  # torch takes 63 bits


class _Answers:
    """Brings the answers of a batch to the host in one transfer.

    The thread sleeps until they are there, and with them all that was queued before.
    """

    def __init__(self, action_spec: ActionSpec, max_actors: int, device: str) -> None:
        self._device = device
        self._num_discrete = len(action_spec.discrete_sizes)
        width = self._num_discrete + action_spec.num_continuous + 2
        self._host = gpu.page_locked((max_actors, width), torch.int32, device)

    def receive(self, packed: Tensor) -> Answers:
        """What `Acting` gives, on the host, overwritten by the next call."""
        host = self._host[: len(packed)]
        gpu.copy(host, packed, self._device).wait()
        return Answers.of(host.numpy(), self._num_discrete)


class _States:
    """The recurrent states of a batch, between shared RAM and the device. See `SharedWeights` for the two copies."""

    def __init__(self, shared: SharedWeights, max_actors: int) -> None:
        self._shared = shared
        self._device = shared.device
        num_copies, num_actors, state_size = shared.actor_state.shape
        self._all = shared.actor_state.view(num_copies * num_actors, state_size)
        self._num_actors = num_actors
        self._before = gpu.page_locked((max_actors, state_size), torch.float32, shared.device)
        self._after = gpu.page_locked((max_actors, state_size), torch.float32, shared.device)
        self._first = gpu.page_locked((max_actors,), torch.bool, shared.device)

    def first(self, first: np.ndarray) -> Tensor:
        """The same [N] in page-locked memory, overwritten by the next call."""
        out = self._first[: len(first)]
        out.numpy()[:] = first
        return out

    def before(self, actors: np.ndarray, numbers: np.ndarray, first: np.ndarray) -> Tensor:
        """The states [N, S] that requests `numbers` of `actors` begin with; zero where `first` [N]. Overwritten by the
        next call."""
        state = self._before[: len(actors)]
        if state.shape[1]:
            torch.index_select(self._all, 0, self._positions(actors, numbers - 1), out=state)
            state.numpy()[first] = 0.0
        return state

    def keep(self, slots: np.ndarray, rows: np.ndarray) -> None:
        """Beside each of `slots` [N] that begins with this row, the state that `before` has just given."""
        begins = np.flatnonzero(rows == 0)
        if self._all.shape[1] and len(begins):
            self._shared.slot_state.numpy()[slots[begins]] = self._before.numpy()[begins]

    def send(self, state: Tensor) -> None:
        """Queue the transfer of the new states [N, S] to the host."""
        gpu.copy(self._after[: len(state)], state, self._device)

    def write(self, actors: np.ndarray, numbers: np.ndarray) -> None:
        """What was sent has arrived: it is where the next requests of `actors` look for it."""
        if self._all.shape[1]:
            self._all.index_copy_(0, self._positions(actors, numbers), self._after[: len(actors)])

    def _positions(self, actors: np.ndarray, numbers: np.ndarray) -> Tensor:
        """Rows of the copy that `numbers` write."""
        return torch.from_numpy(numbers % 2 * self._num_actors + actors)


class _ObsGather:
    """Collects the observations of a batch: a GPU reads large ones where they are, small ones are copied for it."""

    def __init__(self, rows: SharedArrays, max_actors: int, device: str) -> None:
        self._device = device
        self._index = gpu.page_locked((max_actors,), torch.int64, device)
        self._staged: dict[str, tuple[Tensor, Tensor]] = {}  # all rows [num_slots * (T+1), ...], and those of a batch
        self._mapped: dict[str, _Rows] = {}
        for key, array in rows.named(OBS).items():
            all_rows = torch.from_numpy(array).flatten(0, 1)
            is_large = device != gpu.HOST and all_rows[0].nbytes >= _LARGE
            mapped = gpu.mapped(array, device) if is_large else None
            if mapped is not None:
                self._mapped[key] = _Rows.of(mapped.flatten(0, 1))
            else:
                batch = gpu.page_locked((max_actors, *all_rows.shape[1:]), all_rows.dtype, device)
                self._staged[key] = all_rows, batch

    def gather(self, positions: np.ndarray) -> dict[str, Tensor]:
        """positions: [N] rows of [num_slots * (T+1)]. What is on the host is overwritten by the next call.

        It may be then, and so may the rows: every batch ends with a transfer that waits for all that came before.
        """
        index, batch = torch.from_numpy(positions), {}
        for key, (rows, staged) in self._staged.items():
            batch[key] = torch.index_select(rows, 0, index, out=staged[: len(index)])
        if self._mapped:
            there = self._index[: len(index)].copy_(index).to(gpu.torch_device(self._device), non_blocking=True)
            batch |= {key: rows.taken(there) for key, rows in self._mapped.items()}
        return batch


class _Rows(NamedTuple):
    """Rows in memory that a GPU reads over the bus, eight bytes at a time where that goes.

    numbers: [num_rows, ...], of `dtype` and [num_rows, *shape] in truth.
    """

    numbers: Tensor
    shape: torch.Size
    dtype: torch.dtype

    @classmethod
    def of(cls, rows: Tensor) -> _Rows:
        flat = rows.flatten(1)
        is_even = flat[0].nbytes % 8 == 0
        return cls(flat.view(torch.int64) if is_even else flat, rows.shape[1:], rows.dtype)

    def taken(self, index: Tensor) -> Tensor:
        """Those at `index` [N], in memory of the GPU: [N, *shape]."""
        return self.numbers.index_select(0, index).view(self.dtype).view(-1, *self.shape)
