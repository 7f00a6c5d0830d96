"""A run of one process (`--serial true`), for a debugger: each part does its work when another one waits for it.

The learner is the outermost part. Where it waits for samples, the rollout worker steps its environments, and where all
of them wait for actions, the policy worker computes these. So a breakpoint in an environment, in a network or in a loss
shows all that has led to it in one stack. The weights are those of a synchronous run with one worker, to the bit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection

import torch

from sf.envs.remarks import handed_to
from sf.envs.seeding import seed_process
from sf.learner.worker import Learner
from sf.policy.worker import PolicyWorker
from sf.rollout.worker import RolloutWorker
from sf.run.children.roles.learner import LEARNER
from sf.run.children.roles.policy import POLICY
from sf.run.children.roles.role import Start
from sf.run.children.roles.rollout import ROLLOUT
from sf.run.learner_orders import LearnerOrders
from sf.run.memory import RunMemory
from sf.shared.queues import LocalQueue
from sf.system.processes.reports import Report, Reports
from sf.system.processes.stopping import Signals
from sf.system.processes.torch_runtime import configure


class Paused(Exception):  # noqa: N818  it is no error
    """The learner waits for samples, and the run has something else to do meanwhile."""


@dataclass(frozen=True)
class Part:
    """Stands for what would be a child process."""

    role: str
    idx: int = 0
    error: None = None

    @property
    def name(self) -> str:
        return f"{self.role}-{self.idx}"

    def cause_of_death(self) -> str:
        return "ended"


Event = tuple[Part, Report]


class _LocalReports(Reports):
    def __init__(self, part: Part, events: list[Event]) -> None:
        self._part = part
        self._events = events

    def send(self, report: Report) -> None:
        self._events.append((self._part, report))


class SerialSupervisor:
    """Does for `sf.run.lifetime.Run` what `Supervisor` does with child processes.

    failure: stays None. What a part raises is raised by `start` and `receive`.
    """

    def __init__(self, memory: RunMemory, learner_orders: LearnerOrders) -> None:
        self.failure: Exception | None = None
        self.is_finished = False
        self._memory = memory
        self._learner_orders = learner_orders
        self._resumed_steps: Sequence[int] = [0]
        self._events: list[Event] = []
        self._open = ExitStack()
        self._learner: Learner | None = None
        self._rollout: RolloutWorker | None = None
        self._policy: PolicyWorker | None = None
        self._is_due: Callable[[], bool] = lambda: False  # that the learner's wait is broken off

    @property
    def is_under_way(self) -> bool:
        return self._policy is not None

    def resume(self, env_steps: Sequence[int]) -> None:
        """See `Supervisor.resume`."""
        self._resumed_steps = env_steps

    def start(self, is_interrupted: Callable[[], bool]) -> None:
        """Make the environments, the learner, and the network that acts."""
        memory, plan = self._memory, self._memory.plan
        learner_args = LEARNER.arguments(self._start())
        configure(learner_args.weights.device, plan.learner_threads, deterministic=True, has_fixed_shapes=True)
        rollout_args = ROLLOUT.arguments(self._start())
        reports = self._reports("rollout")
        seed_process(rollout_args.seed, *rollout_args.seed_key, *rollout_args.channel.groups)
        self._open.enter_context(handed_to(reports.remark))
        self._rollout = RolloutWorker(reports, rollout_args)
        self._open.callback(self._rollout.close)
        self._learner = Learner(self._reports("learner"), learner_args)
        with torch.random.fork_rng():  # the learner's generator is its own
            start = self._start()._replace(weights=self._learner.weights)
            self._policy = PolicyWorker(POLICY.arguments(start))
        self._open.callback(self._policy.close)
        (full,) = memory.pool.full
        assert isinstance(full, LocalQueue)
        full.refill = self._sample

    def receive(self, wakeup: Connection, timeout_s: float) -> Iterable[Event]:
        """Collect and train until `wakeup` has something or the time is up, at most an iteration."""
        assert self._learner is not None
        ends_at = time.monotonic() + timeout_s
        self._is_due = lambda: time.monotonic() > ends_at or wakeup.poll()
        try:
            if not self._learner.iterate():
                self._end()
        except Paused:
            pass
        return self._pop_events()

    def stop(self, signals: Signals, is_optional_awaited: Callable[[], bool] = lambda: False) -> Iterator[Event]:
        """Save, and close the environments. Yields the last reports."""
        self._memory.stop.set(by_signal=signals.first is not None)
        self._end()
        yield from self._pop_events()

    def end_if(self, why: str | None) -> None:
        assert why is None, why

    def cut_off(self, why: str) -> None:
        raise AssertionError(why)  # there are no other ranks

    def kill_unsaved(self) -> None:
        """Another run has the directory by now: `stop` saves nothing."""
        self._learner = None

    def _sample(self) -> None:
        """Do what the learner waits for: a step of some environments, or their actions."""
        if self._is_due():
            raise Paused
        assert self._rollout is not None
        assert self._policy is not None
        if self._memory.channels.inboxes[0].has_messages():
            self._rollout.step()
        else:
            with _threads(self._memory.plan.policy_threads):
                self._policy.step()

    def _end(self) -> None:
        learner, self._learner = self._learner, None
        with self._open:
            if learner is not None:
                learner.end()
                self.is_finished = True

    def _start(self) -> Start:
        steps, hyperparameters = self._resumed_steps, self._learner_orders.hyperparameters
        return Start(0, 0, self._memory, self._learner_orders.links, steps, hyperparameters)

    def _reports(self, role: str) -> Reports:
        return _LocalReports(Part(role), self._events)

    def _pop_events(self) -> list[Event]:
        events, self._events[:] = list(self._events), []
        return events


@contextmanager
def _threads(number: int) -> Iterator[None]:
    """Torch uses so many threads while this is open: sums depend on it in their last bit."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
