"""`sf-train` with a learner that publishes its weights late: the policy workers act by those of some versions before.

    python scripts/data_questions/held_back.py 32 --env doom_basic --async_rl false

In synchronous mode, data is then as many versions old as it says, beside those of its own iteration. Nothing can be
resumed.
"""

from __future__ import annotations

import functools
import sys
from collections import deque

from torch import Tensor

from sf.learner import worker
from sf.learner.args import LearnerArgs
from sf.run.lifetime import Run
from sf.run.planning import make_plan
from sf.shared.weights import SharedWeights
from sf.storage.run_dir import RunDir
from sf.system.processes.reports import Reports
from sf.tools.commands import cli, ends


class HeldBackWeights(SharedWeights):
    """Publishes the weights of `versions` calls before, and the first ones until there are such."""

    versions = 0

    def publish(self, flat: Tensor, version: int) -> None:
        if not hasattr(self, "_held"):
            self._held: deque[tuple[Tensor, int]] = deque(maxlen=self.versions + 1)
        self._held.append((flat.clone(), version))
        super().publish(*self._held[0])


def held_back_learner(versions: int, reports: Reports, args: LearnerArgs) -> None:
    """Runs a learner of this process, which does nothing else."""
    HeldBackWeights.versions = versions
    worker.SharedWeights = HeldBackWeights  # type: ignore[misc]
    worker.learner(reports, args)


def main() -> None:
    versions, *flags = sys.argv[1:]
    config = cli.parse(flags)
    run_dir = RunDir.at(config.run.train_dir, config.run.experiment_name)
    with ends.exit_status():
        plan = make_plan(config)
        run_dir.prepare(config)
        Run(plan, run_dir, bodies={"learner": functools.partial(held_back_learner, int(versions))}).run()


if __name__ == "__main__":
    main()
