"""Trainers that scripts/bench_learning.py can have instead of the real ones: they train nothing.

As a program, it runs bench_learning with three of them: `steady` is done at once, `failing` runs a program that fails,
and `wait` one that waits for ever, with a child. For this it needs a process of its own: what is left of a program is
ended as a descendant.
"""

import sys
from dataclasses import dataclass, field

import bench_learning
from peers.trainer import Outcome, RunError, run_to_end

FAILS = "print('a line', flush=True); raise SystemExit('no memory left')"
WAITS = "import subprocess, sys; child = subprocess.Popen(['sleep', '1000']); open('started', 'w'); child.wait()"


@dataclass
class StandIn:
    """The score of a run is `score` + its seed."""

    name: str
    score: float = 100.0
    commit: str | None = None
    fails: bool = False
    runs_program: bool = False
    waits: bool = False
    refuses: tuple[str, ...] = ()
    cannot_be_installed: bool = False
    made: list = field(default_factory=list)

    @property
    def title(self):
        return self.name.replace("_", " ")

    def refusal_of(self, task):
        return f"{self.name} has no {task.name}" if task.name in self.refuses else None

    def prepare(self, task):
        if self.cannot_be_installed:
            raise ValueError("pip failed")

    def settings(self, order):
        return {"episodes": order.episodes, "layers": (64, 64)}

    def versions(self):
        return {"torch": "1"}

    def learn(self, order, folder):
        self.made.append((order.task.name, order.seed))
        if self.waits:
            run_to_end([sys.executable, "-c", WAITS], folder / "train.log")
        if self.runs_program:
            run_to_end([sys.executable, "-c", FAILS], folder / "train.log")
        if self.fails:
            raise RunError("no memory left")
        score = self.score + order.seed
        return Outcome(order.frames + 12, 10.0, 0, score - 1, score, score + 1, 1000 * order.seed, 5.0)


if __name__ == "__main__":
    bench_learning._trainers = lambda options: [
        StandIn("steady"),
        StandIn("failing", runs_program=True),
        StandIn("wait", waits=True),
    ]
    bench_learning.main()
