"""Does it survive? SIGKILL of each kind of process, then of the parent; the GPU's memory is free again afterwards.

CUDA's driver leaves a small file in /dev/shm of each process that is killed. A run removes those of its processes, but
where the run itself is killed nobody does: they are counted here, and are no failure.
"""

from __future__ import annotations

import signal
import time
from pathlib import Path
from random import Random

from faults import processes
from faults.kinds.of_processes import signal_child
from faults.session import NotRecoveredError, Session
from faults.tasks import flags
from gpu.step import Context, Findings, Lines
from gpu.training import used_mib

_ROLES = ("rollout", "policy", "learner")
_OF_DRIVER = "cuda.shm."
_SLACK_MIB = 64.0
_FREE_WITHIN_S = 20.0


def run(context: Context) -> Findings:
    lines, data, is_ok = Lines(), {}, True
    names_before = set(Path("/dev/shm").iterdir())
    for task in ["toy"] if context.is_rehearsal else ["toy", "doom"]:
        before, found = used_mib(), {}
        try:
            found = _kill_all_in_turn(context, task, lines)
        except NotRecoveredError as error:
            is_ok = False
            lines.add(f"{task}: NOT RECOVERED: {error}")
        after = _settled(before)
        orphaned = processes.orphaned_memory(names_before)
        of_driver = {path for path in orphaned if path.name.startswith(_OF_DRIVER)}
        left = sorted(map(str, orphaned - of_driver))
        memory = {"mib_before": before, "mib_after": after, "left": left, "of_driver": len(of_driver)}
        data[task] = {"seconds": found, **memory}
        said = f"GPU memory in use before {_mib(before)}, after {_mib(after)}"
        lines.add(f"{task}: {said}; left in /dev/shm: {left or 'nothing'}, and {len(of_driver)} files of the driver")
        is_free = before is None or after is None or after <= before + _SLACK_MIB
        is_ok &= not left and (is_free or not context.is_alone)
    return Findings(is_ok, lines.lines, data)


def _kill_all_in_turn(context: Context, task: str, lines: Lines) -> dict[str, float]:
    """Seconds until training had gone on, by what was killed."""
    words = flags(task, context.folder, device=context.device, restart_behavior="resume", worker_timeout_s=60)
    found = {}
    session = Session(words, context.folder / f"{task}.log")
    try:
        for role in _ROLES:
            began = time.monotonic()
            signal_child(role, signal.SIGKILL)(session, Random(0))
            session.wait_for_progress()
            found[role] = time.monotonic() - began
            lines.add(f"{task}: {role} killed, and training went on after {found[role]:.1f} s")
        session.wait_until(session.checkpoints, "a checkpoint is written")
        began, children = time.monotonic(), processes.alive_below(session.pid)
        session.kill()
        if outlived := processes.wait_until_gone(children, _FREE_WITHIN_S):
            raise NotRecoveredError(f"processes {sorted(outlived)} outlived the parent")
        session = Session(words, context.folder / f"{task}_resumed.log")
        found["parent"] = time.monotonic() - began
        lines.add(f"{task}: parent killed, resumed at {session.first_step:,} env steps after {found['parent']:.1f} s")
        session.send_signal(signal.SIGTERM)
        status = session.wait_for_end()
        if status != 128 + signal.SIGTERM:
            raise NotRecoveredError(f"SIGTERM ended it with status {status}")
    finally:
        if session.exit_status is None:
            session.kill()
    return found


def _settled(before: float | None) -> float | None:
    """The driver takes a moment to free what a killed process had."""
    give_up_at = time.monotonic() + _FREE_WITHIN_S
    while (used := used_mib()) is not None and before is not None:
        if used <= before + _SLACK_MIB or time.monotonic() > give_up_at:
            break
        time.sleep(0.5)
    return used


def _mib(mib: float | None) -> str:
    return "not known" if mib is None else f"{mib:,.0f} MiB"
