"""Trains one policy on two machines (network namespaces of this one), and does to them what happens to machines.

    python scripts/rank_campaign.py --minutes 30 --seed 0 --json out.json
    python scripts/rank_campaign.py --markdown out.json

After each fault it waits until both machines train together again. A machine whose agent of torchrun has ended starts
it again. It prints a table, and ends with status 1 where a promise was broken, or nothing was tried. It needs root.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random

from faults import bookkeeping, command
from faults.bookkeeping import NotRecoveredError
from faults.kinds.fault import Fault
from faults.outcomes import Outcome, Results, facts_of
from faults.two_machines.catalog import FAULTS
from faults.two_machines.hosts import Host, Network, why_impossible

from sf.storage.run_dir import RunDir

_EXPERIMENT = "ranks"
_END = "Ctrl-C on one machine"
_FLAGS = [
    *("--env", "CartPole-v1", "--experiment", _EXPERIMENT, "--num_workers", "1", "--num_envs_per_worker", "8"),
    *("--rollout", "16", "--batch_size", "128", "--num_batches_per_epoch", "2", "--num_epochs", "1"),
    *("--compile", "false", "--device", "cpu", "--summaries_every_sec", "1", "--save_every_sec", "20"),
    *("--worker_timeout_s", "20", "--rank_timeout_s", "20"),
]
_PATIENCE_S = 300.0
_LOOKS_EVERY_S = 0.2
_RECORDS_WITHIN_S = 2.0  # of what they tell
_TRAINS_BEFORE_A_FAULT_S = (3.0, 15.0)
_MOST_SECONDS_LOST = 30.0  # of training: what was remembered last, and a busy machine's delays


class Campaign:
    def __init__(self, network: Network, results: Results, path: Path | None) -> None:
        self._network = network
        self._results = results
        self._path = path
        self._began_at = time.monotonic()

    def wait_until_both_train(self) -> None:
        """Until each machine has a learner, and both ranks have made records since now that tell of both.

        Raises NotRecoveredError.
        """
        after, began = time.time(), time.monotonic()
        while not self._do_both_train(after):
            if time.monotonic() - began > _PATIENCE_S:
                raise NotRecoveredError(f"both machines do not train together within {_PATIENCE_S:.0f} s")
            self._network.tend()
            time.sleep(_LOOKS_EVERY_S)

    def inflict(self, fault: Fault, random: Random) -> None:
        host = random.choice(self._network.hosts)
        before, rate = self.env_steps(), self._steps_per_second()
        num_before = {path: len(records(path)) for path in self._metrics()}
        print(f"{time.monotonic() - self._began_at:7.0f} s  {fault.name} ({host.address})", flush=True)
        began = time.monotonic()
        broken, lost = None, 0
        try:
            fault.do(self._network, host, random)
            self.wait_until_both_train()
            new = (record for path in self._metrics() for record in records(path)[num_before.get(path, 0) :])
            lost = max(0, before - min(record["env_steps"] for record in new))
            for each in self._network.hosts:
                bookkeeping.require_files_in_order(run_dir_of(each))
            if lost > _MOST_SECONDS_LOST * rate:
                broken = f"{lost:,} env steps are lost, at {rate:,.0f} a second"
        except NotRecoveredError as error:
            broken = str(error)
        self._note(fault.name, began, lost, broken)

    def begin(self) -> bool:
        """Switch both machines on. False where they do not come to train together, which is an outcome, too."""
        began = time.monotonic()
        for host in self._network.hosts:
            host.switch_on()
        try:
            self.wait_until_both_train()
        except NotRecoveredError as error:
            self._note("start of the run", began, 0, str(error))
            return False
        return True

    def end(self) -> None:
        """Ctrl-C on the first machine alone. It is an outcome, too, where not all of both ends, and is saved."""
        began, known = time.monotonic(), self.env_steps()
        first, second = self._network.hosts
        second.is_on = False
        first.ask_to_end()
        left = self._network.wait_until_ended()
        saved = max(bookkeeping.steps_saved(run_dir_of(host).checkpoints) for host in self._network.hosts)
        if left:
            broken = f"after Ctrl-C on the first machine, these processes are left: {sorted(left)}"
            self._note(_END, began, 0, broken)
        elif saved < known:
            self._note(_END, began, 0, f"{known} env steps were recorded, and {saved} are saved")
        else:
            print(f"{_END}: both ended within {time.monotonic() - began:.0f} s, and saved", flush=True)

    def _note(self, fault: str, began: float, lost: int, broken: str | None) -> None:
        """began: time.monotonic()."""
        seconds = time.monotonic() - began
        print(f"{'':10}{broken or 'recovered'} after {seconds:.0f} s", flush=True)
        self._results.outcomes.append(
            Outcome(
                "CartPole-v1 on two machines",
                fault,
                seconds,
                None,
                lost,
                0,
                broken,
                at_s=time.monotonic() - self._began_at,
                load=os.getloadavg()[0],
            )
        )
        self._results.write(self._path)

    def env_steps(self) -> int:
        """That either machine has recorded."""
        return max((record["env_steps"] for path in self._metrics() for record in records(path)[-1:]), default=0)

    def _do_both_train(self, after: float) -> bool:
        if not all(host.children("learner") for host in self._network.hosts):
            return False
        paths = self._metrics()
        fresh = [path for path in paths if path.is_file() and path.stat().st_mtime > after + _RECORDS_WITHIN_S]
        if len(fresh) < len(paths):
            return False
        latest = [records(path)[-2:] for path in paths]
        trains = all(len(two) == 2 and two[0]["env_steps"] < two[1]["env_steps"] for two in latest)
        return trains and any("ranks/slowest" in two[1] for two in latest)

    def _metrics(self) -> list[Path]:
        """Of both ranks, wherever they are."""
        run_dirs = {host.train_dir: run_dir_of(host) for host in self._network.hosts}
        if len(run_dirs) == 1:
            (run_dir,) = run_dirs.values()
            return [run_dir.metrics, run_dir.of_rank(1).metrics]
        return [run_dir.metrics for run_dir in run_dirs.values()]

    def _steps_per_second(self) -> float:
        rates = [record["env_frames_per_second"] for path in self._metrics() for record in records(path)[-20:]]
        return max(rates, default=0.0)


def run_dir_of(host: Host) -> RunDir:
    return RunDir.at(str(host.train_dir), _EXPERIMENT)


def records(path: Path) -> list[dict]:
    return [bookkeeping.parse(line, path) for line in bookkeeping.whole_lines(path)]


def main() -> None:
    parser = command.parser(__doc__)
    parser.add_argument("--megabits", type=int, default=200, help="of the cable, a second")
    parser.add_argument("--shared-disk", action="store_true", help="both machines have the same train_dir")
    args = parser.parse_args()
    faults = command.begin(args, FAULTS)
    if reason := why_impossible():
        parser.error(reason)
    if not faults:
        parser.error("--only leaves no fault")
    results = Results([], facts_of(sys.argv))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        folder = args.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            with Network(folder, _FLAGS, args.shared_disk, args.megabits) as network:
                _run(Campaign(network, results, args.json), network, faults, args)
        except KeyboardInterrupt:
            print("interrupted: this is what there was by then", flush=True)
    command.end(results, FAULTS)


def _run(campaign: Campaign, network: Network, faults: Sequence[Fault], args: argparse.Namespace) -> None:
    random = Random(args.seed)
    if not campaign.begin():
        return
    end_at = time.monotonic() + 60 * args.minutes
    turns: list[Fault] = []
    for _ in range(args.faults):
        pause_until = time.monotonic() + random.uniform(*_TRAINS_BEFORE_A_FAULT_S)
        while time.monotonic() < pause_until:
            network.tend()
            time.sleep(_LOOKS_EVERY_S)
        if time.monotonic() > end_at:
            break
        if not turns:  # each once, in another order each time
            turns = random.sample(faults, len(faults))
        campaign.inflict(turns.pop(), random)
    campaign.end()


if __name__ == "__main__":
    main()
