"""A run from its flags: the directory, what it goes on with, and its lifetime."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from sf.config import Config
from sf.config.trust import named_code, remember_code
from sf.metrics.readable import outcome
from sf.metrics.sinks.trackers import require_trackers
from sf.metrics.system_info import record_start
from sf.ranks.place import Place
from sf.run.joining import Joined, joined
from sf.run.lifetime import Run
from sf.run.plan import Plan
from sf.run.planning import make_plan
from sf.run.record_hooks import OnRecord
from sf.run.startup import demonstrations, initial_weights, teachers
from sf.storage.earlier_run import left_behind
from sf.storage.run_log import RunLog
from sf.storage.text_files import printable
from sf.system.messages import said_to, say
from sf.system.processes.stopping import ended_in_order


def train(config: Config, on_record: OnRecord | None = None, plan: Plan | None = None) -> dict[str, Any]:
    """Train as configured, until the configured end or a signal; returns the summary that is also on disk.

    on_record: see `sf.api.train`. plan: of this configuration, where it is made already. Raises ValueError for what the
    user can mend (before any process starts, where that can be known), `sf.run.children.verdict.ChildError` where a
    process fails for good, and what `on_record` raises.
    `summary["stopped_by"]` is the signal that ended the run ("SIGINT"), "on_record" or "stop_at_return", "another rank"
    where that was asked to end, or None. In the summary on disk it is "failure" where a process failed for good.
    """
    require_trackers(config)
    if plan is None:
        place = Place.from_environment()
        place.settle()
        plan = make_plan(config, place)
    with joined(config, plan) as rank:
        summary = _train(rank, on_record)
    rank.end_agent(summary["stopped_by"])
    return summary


def _train(rank: Joined, on_record: OnRecord | None) -> dict[str, Any]:
    config, plan, run_dir = rank.config, rank.plan, rank.run_dir
    said: list[str] = []  # before there is a directory for the log

    def show(line: str) -> None:
        with suppress(OSError, ValueError):  # it is in the log, too
            print(printable(line))
        said.append(line)

    with said_to(show), run_dir.locked() as lock:
        saved_steps: Sequence[int | None] = [None] * plan.num_policies
        run_id: str | None = None
        if config.run.restart_behavior == "resume" and plan.place.saves:
            saved_steps = initial_weights.saved_env_steps(plan, run_dir)
            run_id = run_dir.saved_id()
        saved_steps, run_id = rank.most_saved(saved_steps, run_id)
        new = [policy_id for policy_id, env_steps in enumerate(saved_steps) if env_steps is None]
        if len(new) < plan.num_policies:
            config = initial_weights.of_resumed(config, run_dir)
            plan = dataclasses.replace(plan, config=plan.config.replace(init_from=config.run.init_from))
        initial = initial_weights.initial_checkpoints(plan, new)
        for path in left_behind(run_dir.path):
            say(f"{path} is an earlier run, left there when a start that overwrites it was killed: move or delete it")
        earlier = run_dir.prepare(config, run_id)
        if not earlier.is_aside:
            rank.mark.set()
        log = RunLog(run_dir.log)
        with earlier.put_back_unless_settled(), ended_in_order(), log.of_process():
            for line in said:
                log.write(line)
            with said_to(log.write):
                remember_code(named_code(config.flat()))
            if plan.place.saves:
                initial_weights.write(plan, run_dir, initial)
            initial_weights.write_beginnings(plan, run_dir)
            teachers.keep(config.learner.teacher, plan.teachers, run_dir.path)

            def show_and_log(line: str) -> None:
                show(line)
                log.write(line)

            with said_to(show_and_log):
                demonstrations.keep(config, plan.networks[0].spec, run_dir.path)
            record_start(run_dir)
            resumed_steps = [env_steps or 0 for env_steps in saved_steps]

            def settle() -> None:
                rank.mark.set()  # first: between the two a kill would have the ranks begin anew, without either run
                earlier.settle()

            summary = Run(
                plan,
                run_dir,
                resumed_steps,
                on_record,
                on_under_way=settle,
                board=rank.board,
                renew_lock=lock.renew,
            ).run()
            log.write(outcome(summary))
            return summary
