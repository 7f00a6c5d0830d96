"""`sf-train --check`: tries every probe and prints a line for each. Ends with 1 where a probe that matters fails."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sf.config import Config
from sf.envs.custom.given import given_env
from sf.run.children.servers import start_fork_servers
from sf.system.machine.cores import num_usable_cores
from sf.tools.check import isolated
from sf.tools.check.probe import PROBES, Needs, Outcome, Probe
from sf.tools.commands import cli
from sf.tools.report.outputs import require_outputs, write_json

_DESCRIPTION = """\
Test within a minute what training relies on: versions, shared memory, pipes, disk, Doom, Atari, and each GPU.
Each line begins with ok, FAILS, note (worth knowing, but no obstacle) or skipped. The status is 1 if anything FAILS.
With --env or --config that run is tested, too: its environment is made, and its network and memory are counted. On a
CPU its networks are compiled, which takes a minute or two more, so that the first run begins with them.

  sf-train --check
  sf-train --check --num_workers 36 --train_dir /scratch/me
  sf-train --check --env doom_basic
"""
_COUNT = Probe("GPUs", "sf.tools.check.gpu:count", "", with_torch=True, limit_s=90.0)


@dataclass(frozen=True)
class CheckFlags:
    """What is tested, and where the result goes."""

    check: cli.Switch = False
    """Test this machine instead of training on it."""

    json: Path | None = None
    """Also write the results to this file."""

    config: Config = field(default_factory=Config)


def main(defaults: Mapping[str, Any] | None = None) -> None:
    args = sys.argv[1:]
    start = CheckFlags(config=cli.starting_config(args, defaults))
    flags = cli.parse_flags(CheckFlags, "sf-train --check", _DESCRIPTION, args, start)
    with cli.exit_status():
        if not flags.check:
            raise ValueError("check is false: leave it out to train")
        require_outputs(flags.json)
        start_fork_servers()
        outcomes = []
        named = {*(defaults or {}), *cli.early_flags(args)}
        names_a_run = not named.isdisjoint(("env", "config"))
        for outcome in check(PROBES, needs_of(flags.config, names_a_run), _announce):
            outcomes.append(outcome)
            print(line(outcome), flush=True)
        failed = [outcome.name for outcome in outcomes if outcome.status == "FAILS"]
        print(f"\n{len(failed)} of {len(outcomes)} fail: {', '.join(failed)}" if failed else "\nReady to train.")
        command = shlex.join(["sf-train", *args])
        write_json(flags.json, {"command": command, "probes": [asdict(outcome) for outcome in outcomes]})
    sys.stdout.flush()
    # At an orderly end Python would wait for children, and a broken driver may never let one go.
    os._exit(1 if failed else 0)


def needs_of(config: Config, names_a_run: bool = False) -> Needs:
    """names_a_run: the flags do, so it is tried whether that can be planned."""
    sampler = config.sampler
    num_workers = num_usable_cores() if sampler.num_workers == "auto" else sampler.num_workers
    num_policies = config.population.num_policies
    return Needs(
        train_dir=config.run.train_dir,
        device=config.run.device,
        num_workers=num_workers,
        num_envs=num_workers * sampler.num_envs_per_worker,
        num_policies=num_policies,
        num_policy_workers=num_policies * sampler.policy_workers_per_policy,
        num_slots=num_workers * sampler.num_envs_per_worker + sampler.extra_slots,
        config=config if names_a_run else None,
        given_env=given_env(config.run.env) if names_a_run else None,
    )


def check(
    probes: Sequence[Probe], needs: Needs, announce: Callable[[Probe], None] = lambda probe: None
) -> Iterator[Outcome]:
    """The outcomes, each as soon as it is known. Each GPU has an outcome of its own; all GPUs are tried at once.

    announce: is called with each probe that needs no GPU, before it is tried.
    """
    devices = _gpus(needs)
    for probe in probes:
        if probe.of_run and needs.config is None:
            yield Outcome(probe.name, "skipped", "no --env, so no environment, network or sizes of a run were tried")
        elif not probe.on_gpu:
            announce(probe)
            yield from _outcomes(probe, {probe.name: needs})
        elif not devices:
            yield Outcome(probe.name, "skipped", "no GPU")
        else:
            names = {probe.name if len(devices) == 1 else f"{probe.name} ({device})": device for device in devices}
            yield from _outcomes(probe, names)


def _announce(probe: Probe) -> None:
    if probe.takes:
        print(f"{'...':9}{probe.name}: {probe.takes}", flush=True)


def line(outcome: Outcome) -> str:
    advice = f"\n{'':9}-> {outcome.advice}" if outcome.advice else ""
    return f"{outcome.status:9}{outcome.name}: {outcome.text}{advice}"


def _gpus(needs: Needs) -> list[str]:
    (counted,) = _outcomes(_COUNT, {_COUNT.name: needs})
    return [f"cuda:{idx}" for idx in range(int(counted.text))] if counted.status == "ok" else []


def _outcomes(probe: Probe, arguments: Mapping[str, Needs | str]) -> Iterator[Outcome]:
    """The outcomes of one probe. arguments: by name of the outcome, what the probe is called with."""
    try:
        calls = [isolated.call(name, probe, argument) for name, argument in arguments.items()]
    except (OSError, EOFError) as error:
        said = f"no process can be started for it ({type(error).__name__}: {error})"
        yield Outcome(probe.name, "FAILS" if probe.matters else "note", said, probe.advice)
        return
    for call in calls:
        yield call.outcome()
