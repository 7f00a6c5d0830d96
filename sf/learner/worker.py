"""Trains on whole trajectories and publishes weights. The learner is the only process that changes them.

Consumes   filled slots.
Produces   free slots, published weights, training metrics, checkpoints, and its state for a successor.
Waits for  a batch of filled slots, or with a buffer of games for games enough. Before every minibatch it looks at the
           stop flag.
Unblocked  by rollout workers, or by a stop.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from sf.envs import ActionSpec
from sf.learner.args import LearnerArgs
from sf.learner.batches.batch import Batch
from sf.learner.batches.choice import make_games_loader, make_loader
from sf.learner.batches.loaders import Loader
from sf.learner.callback import IterationCallback
from sf.learner.checkpoints.saver import Saver
from sf.learner.compiled import compiled_step, recorded_step
from sf.learner.compiled.compiled_step import CompiledStep
from sf.learner.compiled.faster_step import FasterStep
from sf.learner.compiled.recorded_step import RecordedStep
from sf.learner.demonstrations.cloning import Cloning
from sf.learner.demonstrations.sampler import DemonstrationSampler
from sf.learner.divergence import Rollback
from sf.learner.gradients.workers import GradientWorkers
from sf.learner.orders import Orders
from sf.learner.pace import Pace
from sf.learner.state import LearnerState
from sf.learner.trial import iteration_seconds
from sf.ranks.agreement import Agreement, RankStatus
from sf.ranks.ranks import join, said_where_others_end
from sf.shared.counters import CounterRow
from sf.shared.weights import PolicyWorkers, SharedWeights
from sf.storage.demonstrations.demonstrated_rows import DemonstratedRows
from sf.system import gpu
from sf.system.messages import say
from sf.system.native import kernels
from sf.system.processes.child import FinalError, end_with_error
from sf.system.processes.reports import HasWeights, LearnerFinished, LearnerReady, RankWaits, Reports, Saving, Trained
from sf.system.processes.torch_runtime import configure

_REPORT_EVERY_S = 1.0
_FINISH_ITERATION_WITHIN_S = 2.0  # after a stop, in synchronous mode
_CUT_IN_SYNCHRONOUS_MODE = (
    "the stop came in the middle of a long iteration, which ends there: resumed, this run is not equal to the bit to "
    "one that was not stopped"
)


def learner(reports: Reports, args: LearnerArgs) -> None:
    """Runs the process, which ends by itself when the run has all its env steps."""
    args.counters.working()
    configure(args.weights.device, args.num_threads, not args.config.sampler.async_rl, has_fixed_shapes=True)
    trains = Learner(reports, args)
    try:
        while trains.iterate():
            pass
    except Exception as error:
        if args.place.is_alone:
            raise
        end_with_error(reports, error)  # threads of torch.distributed may wait for other ranks for ever
    trains.end()


class Learner:
    """A learner without the loop around it.

    weights: that it publishes.
    """

    def __init__(self, reports: Reports, args: LearnerArgs) -> None:
        config, compresses = args.config, args.config.ranks.compress_gradients
        device = gpu.torch_device(args.weights.device)
        self._reports, self._args, self._counters = reports, args, args.counters
        self._pace = Pace(config.learner)

        # The order matters.
        self.weights = SharedWeights.create(args.weights)
        gradient_workers = _gradient_workers(args)  # forked, so before anything starts threads
        ranks = join(args.place, device, args.policy_id, compresses)  # so that the others notice if the trial fails
        torch.manual_seed(config.run.seed + args.policy_id)  # after the gradient workers, which have seeds of their own
        if args.predecessor_env_steps is None:  # the trial finds mistakes in a network before it is compiled
            _say_if_any(self._pace.warning(iteration_seconds(args, args.states.size)))
        faster_step = _faster_step(args, state_size=args.states.size)
        self._state = state = LearnerState(args, self.weights.latest_version, gradient_workers, ranks, faster_step)
        self._saver = Saver(args, state, reports)  # before a step, to know which version is saved
        demonstrations = _demonstrations(args, state)
        if demonstrations is not None and Cloning.is_due(args, state):
            Cloning(args, state, demonstrations).run(self._saver.write_what_is_due)
            self._saver.save()
        state.publish(self.weights)  # before the policy workers have the weights, and act by them
        self._policy_workers = None
        if args.policy_workers is not None:
            self._policy_workers = PolicyWorkers(self.weights, args.policy_workers, reports)
        # It takes samples from here on.
        if state.games is None:
            self._loader = make_loader(args, self.weights, demonstrations)
        else:
            self._loader = make_games_loader(args, state.games, lambda: state.updater.version)
        reports.send(LearnerReady(state.env_steps, state.seconds_before, state.lost_steps, state.weights_event))

        if state.lost_steps:
            self._saver.remember_if_due()  # a successor that comes before the first iteration must not count them again
        self._helpers = gradient_workers, faster_step
        self._orders, self._rollback = Orders(args, state, self._saver), Rollback(args, state, self._saver, reports)
        self._agreement = Agreement(ranks, lambda: _held_up(self._counters, self._loader))
        self._callback = _Callback(args, self.weights, state, self._pace, self._agreement)
        self._agreed, self._last_s = RankStatus(env_steps=0, goes_on=True), 0.0
        self._reported_at = time.perf_counter()

    def iterate(self) -> bool:
        """Wait for a batch, and train on it. Returns False if the run has its env steps, or is asked to stop."""
        if self._state.is_finished:
            return False
        with said_where_others_end(self._state.ranks), _said_where_nothing_fits(self._args, self._state):
            return self._iterate()

    def _iterate(self) -> bool:
        args, config, state, counters = self._args, self._args.config.learner, self._state, self._counters
        waiting_since = time.perf_counter()
        counters.waiting()
        batch = None if args.stop.is_set() else self._loader.next()
        own = _own_status(args, state, self._orders, self._loader, batch, self._last_s)
        self._agreed = agreed = self._agreement.reach(own)
        counters.working()
        busy_since = time.perf_counter()
        if batch is None or not agreed.goes_on:
            return False
        if agreed.has_orders and self._orders.carry_out():
            state.publish(self.weights)
            self._reports.send(HasWeights(state.weights_event))
        self._pace.begin(busy_since)
        annealing = state.annealing
        annealed = {} if annealing is None else annealing.values(config)
        steps, env_steps = 0, agreed.env_steps
        trains = self._loader.has_batch
        if trains:
            steps = state.updater.train_iteration(batch, agreed.share_done, self._callback, annealed)
            # Also where the first epoch was cut short: those that an optimiser step has seen.
            env_steps = env_steps * min(steps, config.num_batches_per_epoch) // config.num_batches_per_epoch
        state.count(env_steps, agreed.lost_steps, trains)
        if annealing is not None:  # before rollout workers go on
            annealing.look()
            annealing.publish(state.env_steps)
        if trains:
            state.look_at_levels(batch)
        state.publish_teaching()
        self._loader.release()
        self.weights.flush()
        now = time.perf_counter()
        self._last_s = now - busy_since
        _say_if_any(self._pace.end(now))
        counters.add(steps=env_steps + agreed.lost_steps, calls=steps)
        if trains and state.updater.helper is not None:
            state.updater.helper.measured(steps, busy_s=self._last_s, for_batch_s=busy_since - waiting_since)
        is_cut = trains and steps < config.steps_per_iteration
        if now - self._reported_at > _REPORT_EVERY_S or state.is_finished or is_cut:
            self._reported_at = now
            _report(self._reports, state, self._agreement, self._loader)
        if is_cut and not args.config.sampler.async_rl:
            say(_CUT_IN_SYNCHRONOUS_MODE)
        if self._rollback.is_due:
            self._rollback.roll_back()
            state.publish(self.weights)
            self.weights.flush()
        self._saver.write_what_is_due()
        return True

    def end(self) -> None:
        """Save for the last time, and let the helpers, the policy workers and the other ranks go."""
        state = self._state
        if state.ranks.size > 1 and not self._agreed.goes_on:
            # Learners of other policies here would wait for the slots of this one.
            self._args.stop.set(by_signal=self._agreed.is_signalled)
        for helper in self._helpers:
            if helper is not None:
                helper.close()
        self._reports.send(Saving())
        self._saver.save_at_the_end()
        self._reports.send(LearnerFinished(state.env_steps, self._agreed.is_signalled))
        if self._policy_workers is not None:
            self._policy_workers.wait_until_gone()
        state.ranks.leave()


def _gradient_workers(args: LearnerArgs) -> GradientWorkers | None:
    if not args.num_gradient_workers:
        return None
    return GradientWorkers(
        args.num_gradient_workers,
        args.config,
        args.spec,
        args.weights.num_weights,
        state_size=args.states.size,
        bfloat16=args.bfloat16,
        policy_id=args.policy_id,
        teams=args.teams,
    )


def _demonstrations(args: LearnerArgs, state: LearnerState) -> DemonstrationSampler | None:
    if args.demonstrations is None:
        return None
    seed = args.config.run.seed, args.policy_id, args.place.rank
    return DemonstrationSampler(DemonstratedRows(args.demonstrations), seed, lambda: state.updater.version)


def _faster_step(args: LearnerArgs, state_size: int) -> FasterStep | None:
    """Returns what takes steps if `--compile` allows it: recordings on a GPU, or a program on a CPU with a compiler.

    It is for one learner alone. Nothing is compiled in synchronous mode: a program is there at another
    time in each run, so two runs would not be the same.
    """
    config = args.config
    if config.model.compile is False or args.place.size > 1:
        return None
    if args.weights.device != gpu.HOST:
        if args.teams:
            say("the learner's step is not recorded, since the critic sees several agents at once")
            return None
        return RecordedStep(args.bfloat16) if recorded_step.is_for(config.learner) else None
    if not config.sampler.async_rl or kernels.why_not() is not None:
        return None
    if not compiled_step.is_for(config.learner, has_memory=state_size > 0):
        return None
    spec = args.spec
    obs_space, action_spec, example = spec.obs_space, ActionSpec.of(spec.action_space), Batch.example(spec)
    most_threads = args.num_threads * (1 + args.num_gradient_workers)
    return CompiledStep(config, obs_space, action_spec, args.bfloat16, example, most_threads, teams=args.teams)


@dataclass(frozen=True)
class _Callback(IterationCallback):
    """Publishes the weights after each step, and asks all ranks whether the iteration goes on."""

    args: LearnerArgs
    weights: SharedWeights
    state: LearnerState
    pace: Pace
    agreement: Agreement

    def after_step(self) -> None:
        self.state.publish(self.weights)
        _say_if_any(self.pace.step(time.perf_counter()))

    def goes_on(self) -> bool:
        self.args.counters.working()
        # A synchronous run that ends between two iterations can be resumed to the bit.
        patience_s = 0.0 if self.args.config.sampler.async_rl else _FINISH_ITERATION_WITHIN_S
        return self.agreement.goes_on(not self.args.stop.is_set() or self.pace.seconds_left < patience_s)


def _say_if_any(sentence: str | None) -> None:
    if sentence is not None:
        say(sentence)


@contextmanager
def _said_where_nothing_fits(args: LearnerArgs, state: LearnerState) -> Iterator[None]:
    """Raises FinalError if the first iteration of a run does not fit onto the GPU. Later another program may be in the
    way, and a successor is more fortunate."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        if state.has_trained or args.predecessor_env_steps is not None:
            raise
        size = args.config.learner.batch_size
        reason = str(error).splitlines()[0]
        raise FinalError(
            f"minibatches of {size} samples do not fit into the memory of the GPU ({reason}): lower --batch_size, and "
            "raise --num_batches_per_epoch as much, or take a smaller network"
        ) from None


@contextmanager
def _held_up(counters: CounterRow, loader: Loader) -> Iterator[None]:
    """Tells counters and loader that the learner waits for other ranks."""
    with counters.held_up(), loader.held_up():
        yield


def _own_status(
    args: LearnerArgs, state: LearnerState, orders: Orders, loader: Loader, batch: Batch | None, last_s: float
) -> RankStatus:
    """Returns the status that this rank tells the others. batch: of the next iteration; None: it does not go on."""
    return RankStatus(
        env_steps=0 if batch is None else loader.env_steps,
        goes_on=batch is not None,
        lost_steps=loader.pop_lost_steps(),
        share_done=state.share_done,
        has_orders=orders.are_waiting,
        is_signalled=args.stop.is_by_signal(),
        last_s=last_s,
    )


def _report(reports: Reports, state: LearnerState, agreement: Agreement, loader: Loader) -> None:
    scheduled = {} if state.annealing is None else state.annealing.metrics()
    of_levels = {} if state.levels is None else state.levels.metrics()
    reports.send(
        Trained(state.env_steps, {**scheduled, **of_levels, **loader.metrics(), **state.updater.pop_metrics()})
    )
    if state.ranks.size > 1:
        reports.send(RankWaits(agreement.pop_wait_shares(), state.pop_lost_steps()))
