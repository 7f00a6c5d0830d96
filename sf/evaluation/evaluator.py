"""The evaluator: plays episodes with the policies of a run beside their training, films some of them, and computes how
far the policies can be exploited.

Consumes   orders of the parent; the states that learners keep in shared memory, which are seconds old.
Produces   reports: evaluated, filmed, exploited; the best checkpoint of each policy; videos.
Waits for  an order.
Unblocked  by an order.

It is one process of low priority on the CPU, so that the sampler does not wait for it: where all cores are busy,
evaluations and videos are late. Nothing waits for it, so it is killed at the end of the run.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sf.config import Config
from sf.envs.custom.given import GivenEnv
from sf.envs.remarks import handed_to
from sf.envs.seeding import env_seed, seed_process
from sf.envs.tasks.file import tasks_of
from sf.evaluation.episode_video import film
from sf.evaluation.play.episodes import Play, make_lineups
from sf.evaluation.play.exploitability import exploitability, information_states, tabular
from sf.evaluation.play.torch_policy import TorchPolicy
from sf.evaluation.results import Evaluation
from sf.evaluation.task import guarded_group
from sf.shared.counters import CounterRow
from sf.shared.queues import IndexQueue
from sf.shared.recovery import RecoveryMemory
from sf.storage import best_checkpoint, video_files
from sf.storage.checkpoint import Checkpoint
from sf.system.messages import say
from sf.system.processes.reports import BestSaved, Evaluated, Exploited, Filmed, Ready, Reports
from sf.system.processes.torch_runtime import configure

if TYPE_CHECKING:
    from sf.envs.openspiel.information_states import InformationStates

EVALUATE, FILM, EXPLOIT = 0, 1, 2  # the orders

_NICENESS = 19  # at 15 the sampler lost 2 to 8 % on two cores that were full
_LOOK_EVERY_S = 0.1  # for the first iteration of a learner
_SEED_KEY = 0xE7A1  # so that its environments differ from those that train


@dataclass(frozen=True)
class EvaluatorArgs:
    """Everything the evaluator needs to know."""

    config: Config
    given_env: GivenEnv | None  # where its environment was given as an object
    sides: tuple[int, ...]  # of the agents of one environment, see `make_lineups`
    roles: tuple[tuple[int, ...], ...]  # policies that may play each agent; (): all of them
    recoveries: Sequence[RecoveryMemory]  # of all policies
    checkpoints: Sequence[Path]  # directories, of all policies
    videos: Sequence[Path]  # directories, of all policies
    orders: IndexQueue
    counters: CounterRow


def evaluator(reports: Reports, args: EvaluatorArgs) -> None:
    """Body of the process."""
    os.nice(_NICENESS)
    configure("cpu", num_threads=1, deterministic=True)
    tasks = _tasks(args.config)
    kinds = itertools.product(range(len(args.checkpoints)), [None, *filter(None, tasks)])
    best = {kind: best_checkpoint.best_score(_best_directory(args, *kind)) for kind in kinds}
    num_films = 0
    states: InformationStates | None = None
    reports.send(Ready())
    while True:
        args.counters.waiting()
        (order,) = args.orders.get_many(at_most=1)
        args.counters.working()
        policies = [_remembered(recovery, args.counters) for recovery in args.recoveries]
        with handed_to(lambda about, sentence: None):  # rollout workers report the same
            if order == FILM:
                _film(reports, args, policies, tasks[num_films % len(tasks)])
                num_films += 1
            elif order == EXPLOIT:
                states = states or information_states(args.config.run.env, args.config.environment)
                _exploit(reports, args, policies, states)
            else:
                _evaluate(reports, args, policies, tasks, best)


def _tasks(config: Config) -> list[str | None]:
    """Returns the tasks that are played one after the other; [None] if the environment is not several."""
    found = tasks_of(config.run.env)
    return [None] if found is None else [*found.names] if config.environment.task is None else [config.environment.task]


def _best_directory(args: EvaluatorArgs, policy_id: int, task: str | None) -> Path:
    directory = args.checkpoints[policy_id]
    return directory if task is None else best_checkpoint.of_task(directory, task)


def _evaluate(
    reports: Reports,
    args: EvaluatorArgs,
    policies: Sequence[Checkpoint],
    tasks: Sequence[str | None],
    best: dict[tuple[int, str | None], float],
) -> None:
    """best: the score of the best checkpoint of each policy, over all tasks (None) and at each, which it renews."""
    evaluation = _play(args, policies, tasks)
    for (policy_id, task), score_before in best.items():
        score = evaluation.score_of(policy_id) if task is None else evaluation.return_of_task(policy_id, task)
        directory = _best_directory(args, policy_id, task)
        if score is not None and score > score_before and _save(reports, directory, policies[policy_id], score):
            best[policy_id, task] = score
    results = [
        {
            "env_steps": saved.state["env_steps"],
            "statistics": {name: s._asdict() for name, s in evaluation.statistics(policy_id).items()},
        }
        for policy_id, saved in enumerate(policies)
    ]
    reports.send(Evaluated(results, evaluation.num_env_faults))


def _film(reports: Reports, args: EvaluatorArgs, saved: Sequence[Checkpoint], task: str | None) -> None:
    """A video of each policy, at one of several tasks. One that fails costs no other, nor the evaluator."""
    config = args.config if task is None else args.config.replace(task=task)
    policies = [TorchPolicy(state, f"policy {policy_id}") for policy_id, state in enumerate(saved)]
    videos: list[dict[str, Any]] = []
    failures: list[str] = []
    for policy_id, directory in enumerate(args.videos):
        env_steps = policies[policy_id].env_steps
        try:
            path = video_files.free_path(directory, env_steps)
            video = film(config, policies, policy_id, path, args.counters.working)
            video_files.write_preview(path, video.preview)
        except Exception as error:
            failures.append(" ".join(f"{type(error).__name__}: {error}".split()))
        else:
            of_video = {"path": str(path), "returns": video.returns, "is_cut": video.is_cut}
            videos.append({"policy_id": policy_id, "env_steps": env_steps, **of_video})
    total = sum(policy.env_steps for policy in policies)
    reports.send(Filmed(videos, failures, total))


def _exploit(reports: Reports, args: EvaluatorArgs, saved: Sequence[Checkpoint], states: InformationStates) -> None:
    results = []
    for policy_id, state in enumerate(saved):
        args.counters.working()
        policy = TorchPolicy(state, f"policy {policy_id}")
        probabilities = tabular(policy, states, args.config.evaluation.eval_deterministic)
        results.append({"env_steps": policy.env_steps, "exploitability": exploitability(states, probabilities)})
    reports.send(Exploited(results))


def _remembered(recovery: RecoveryMemory, counters: CounterRow) -> Checkpoint:
    """Returns the state that a learner keeps for a successor. Waits for its first iteration."""
    while (remembered := recovery.read()) is None:
        counters.working()
        time.sleep(_LOOK_EVERY_S)
    return remembered


def _play(args: EvaluatorArgs, saved: Sequence[Checkpoint], tasks: Sequence[str | None] = (None,)) -> Evaluation:
    """tasks: that are played, one after the other."""
    evaluation = Evaluation(args.config.population.pbt_target_objective, sides=args.sides)
    for task in tasks:
        evaluation.add(_play_one(args, saved, task))
    return evaluation


def _play_one(args: EvaluatorArgs, saved: Sequence[Checkpoint], task: str | None) -> Evaluation:
    """task: the one of several that is played."""
    config = args.config
    num_episodes = config.evaluation.eval_episodes
    lineups = make_lineups(len(saved), len(args.sides), num_episodes, 0, args.sides, args.roles)
    num_envs = min(config.evaluation.eval_num_envs, len(lineups))
    seed = env_seed(config.run.seed, _SEED_KEY)
    seed_process(seed)
    options = replace(config.evaluated_environment, task=task)
    group = guarded_group(config.run.env, options, seed, range(num_envs), core=None)
    try:
        args.counters.working()
        policies = [TorchPolicy(state, f"policy {policy_id}") for policy_id, state in enumerate(saved)]
        deterministic = config.evaluation.eval_deterministic
        play = Play(group, policies, lineups, range(num_envs), num_envs, seed, deterministic)
        evaluation = Evaluation(config.population.pbt_target_objective, sides=args.sides)
        while not play.is_done:
            played, begun_anew = play.step(), play.pop_begun_anew()
            evaluation.episodes = [each for each in evaluation.episodes if each.match_idx not in begun_anew] + played
            evaluation.num_env_faults += sum(fault.count for fault in group.pop_faults())
            args.counters.working()
        return evaluation
    finally:
        group.close()


def _save(reports: Reports, directory: Path, saved: Checkpoint, score: float) -> bool:
    """Returns whether the checkpoint could be written."""
    try:
        path = best_checkpoint.save_best(directory, saved, score)
    except OSError as error:
        again = "the next evaluation above the earlier best is saved"
        say(f"the best checkpoint could not be saved ({error}); {again}")
        return False
    reports.send(BestSaved(str(path)))
    return True
