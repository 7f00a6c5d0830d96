"""Calls a probe in a process of its own, which may crash or hang: the probe has failed then.

The processes come from the trainer's fork servers, so they start as learners and rollout workers do.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import connection, get_context
from multiprocessing.connection import Connection
from typing import Any

from sf.run.children.servers import NETWORKS, SIMULATORS
from sf.system.processes.child import Child, start_child
from sf.system.processes.reports import Probed, Reports
from sf.tools.check.probe import Outcome, Probe, ProbeError

_GONE_WITHIN_S = 5.0  # for a killed process to end; one that waits for a broken driver may never do so


@dataclass
class Call:
    """A probe under way. name: of the row, with the GPU where there are several."""

    name: str
    probe: Probe
    children: list[Child]  # the probe itself, then its partners
    began: float

    def outcome(self) -> Outcome:
        """Waits for the probe, at most `limit_s`. Afterwards all its processes are gone, or given up."""
        probe, child = self.probe, self.children[0]
        try:
            result = _result(child, self.began + probe.limit_s)
        finally:
            for each in self.children:
                each.process.kill()
                each.process.join(_GONE_WITHIN_S)
        if result is None:
            is_over = time.monotonic() >= self.began + probe.limit_s
            said = f"no answer within {probe.limit_s:g} s" if is_over else f"its process {child.cause_of_death()}"
            result = Probed(False, said)
        seconds = round(time.monotonic() - self.began, 2)
        if result.is_ok:
            return Outcome(self.name, "ok", result.text, seconds=seconds)
        return Outcome(self.name, "FAILS" if probe.matters else "note", result.text, probe.advice, seconds)


def call(name: str, probe: Probe, *arguments: Any) -> Call:
    """Start it. Raises OSError or EOFError where no process can be started."""
    began = time.monotonic()
    server = NETWORKS if probe.with_torch or probe.on_gpu else SIMULATORS
    pipes = [get_context("forkserver").Pipe() for _ in probe.partners]
    children: list[Child] = []
    try:
        ends = [ours for ours, _ in pipes]
        children.append(start_child(server, "probe", 0, _body, probe.function, (*arguments, *ends)))
        for idx, (function, (_, theirs)) in enumerate(zip(probe.partners, pipes, strict=True)):
            children.append(start_child(server, "partner", idx, _body, function, (theirs,)))
    except BaseException:
        for child in children:
            child.process.kill()
        raise
    finally:
        for pipe in pipes:  # the processes have copies; with ours open, neither would see the death of the other
            for end in pipe:
                end.close()
    return Call(name, probe, children, began)


def resolve(function: str) -> Callable[..., str]:
    """ "module:function"."""
    module, _, name = function.partition(":")
    return getattr(importlib.import_module(module), name)


def _body(reports: Reports, function: str, arguments: tuple[Any, ...]) -> None:
    try:
        reports.send(Probed(True, resolve(function)(*arguments)))
    except ProbeError as error:
        reports.send(Probed(False, str(error)))
    except Exception as error:
        first_line = str(error).strip().partition("\n")[0]
        reports.send(Probed(False, f"{type(error).__name__}: {first_line}"))


def _result(child: Child, until: float) -> Probed | None:
    """Returns None if the process died first, or time is up."""
    pipe: Connection = child.connection
    while connection.wait([pipe], max(0.0, until - time.monotonic())):
        for report in child.receive():
            if isinstance(report, Probed):
                return report
        if pipe.closed:
            child.process.join(_GONE_WITHIN_S)
            return None
    return None
