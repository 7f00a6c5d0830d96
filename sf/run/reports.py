"""What a run makes of the reports of its children: numbers for its metrics, sentences for whoever watches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sf.metrics.progress import Progress
from sf.population.controller import Population
from sf.processes.child import Child
from sf.run.evaluations import Evaluations

Report = dict[str, Any]

_MOST_PLACES = 20  # in the code of environments, of whose faults a traceback is shown


class EventHandler:
    """say: prints a sentence. Reports of other kinds than those below are for the supervisor alone."""

    def __init__(
        self,
        progress: Progress,
        frameskip: int,
        say: Callable[[str], None],
        evaluations: Evaluations,
        population: Population | None = None,
    ) -> None:
        self._progress = progress
        self._frameskip = frameskip
        self._say = say
        self._evaluations = evaluations
        self._population = population
        self._places_said: set[str] = set()  # of faults
        self._remarks_said: set[str] = set()  # what they were about
        self._are_env_deaths_said = False  # of workers whose environments fail again and again
        self._handlers: dict[str, Callable[[Child, Report], None]] = {
            "ready": self._ready,
            "episodes": self._episodes,
            "train": self._train,
            "finished": self._finished,
            "say": self._text,
            "checkpoint": self._checkpoint,
            "save_failed": self._save_failed,
            "fault": self._fault,
            "remark": self._remark,
            "replaced": self._replaced,
            "unreported": self._unreported,
            "rolled_back": self._rolled_back,
            "killed": self._killed,
            "saved_for": self._saved_for,
            "evaluated": self._evaluated,
            "given_up": self._given_up,
        }

    def handle(self, child: Child, report: Report) -> None:
        handler = self._handlers.get(report.pop("kind"))
        if handler is not None:
            handler(child, report)

    # Training

    def _ready(self, child: Child, report: Report) -> None:
        if child.role != "learner":
            return
        if self._population is not None:
            self._population.learner_has(child.idx, report["weights_event"])
        if self._progress.resume(child.idx, report["env_steps"], report["seconds_before"]):
            return
        frames = self._lose(report["lost_steps"])
        self._say(f"{child.name}: continues; training on the last {frames:,} frames is lost")

    def _episodes(self, child: Child, report: Report) -> None:
        self._progress.add_episodes(report["episodes"])
        self._progress.num_lost_episodes += report["lost_episodes"]

    def _train(self, child: Child, report: Report) -> None:
        self._progress.add_training(child.idx, report.pop("env_steps"), report)

    def _finished(self, child: Child, report: Report) -> None:
        self._progress.policies[child.idx].env_steps = report["env_steps"]

    def _evaluated(self, child: Child, report: Report) -> None:
        self._evaluations.evaluated(report)

    def _given_up(self, child: Child, report: Report) -> None:
        self._evaluations.given_up()
        self._say(
            f"{report['text']}\nThe run continues without evaluations: from now on, returns in training select the "
            "best checkpoint"
        )

    # Checkpoints

    def _text(self, child: Child, report: Report) -> None:
        self._say(f"{child.name}: {report['text']}")

    def _checkpoint(self, child: Child, report: Report) -> None:
        if child.role == "learner":
            self._progress.note_checkpoint(report["path"])
        self._say(f"{child.name}: saved {report['path']}")

    def _save_failed(self, child: Child, report: Report) -> None:
        self._say(f"{child.name}: no checkpoint ({report['message']}); training continues, and the save is retried")

    def _saved_for(self, child: Child, report: Report) -> None:
        frames = self._lose(max(0, self._progress.policies[child.idx].env_steps - report["env_steps"]))
        self._say(
            f"{child.name}: {child.cause_of_death()}, and could not save; the run resumes from {report['path']}, and "
            f"training on the last {frames:,} frames is lost"
        )

    # Faults

    def _fault(self, child: Child, report: Report) -> None:
        self._progress.num_env_faults += report["count"]
        if report["place"] in self._places_said or len(self._places_said) > _MOST_PLACES:
            return
        self._places_said.add(report["place"])
        if len(self._places_said) > _MOST_PLACES:
            self._say(f"{child.name}: environments fail at more than {_MOST_PLACES} places: env_faults counts the rest")
            return
        lines = [f"{child.name}: an environment failed and was rebuilt: {report['message']}", report["traceback"]]
        self._say("\n".join(line for line in lines if line is not None))

    def _remark(self, child: Child, report: Report) -> None:
        if report["about"] not in self._remarks_said:
            self._remarks_said.add(report["about"])
            self._say(report["text"])

    def _replaced(self, child: Child, report: Report) -> None:
        self._progress.num_restarts += 1
        self._progress.num_lost_episodes += report["lost_episodes"]
        if child.role == "evaluator":
            self._evaluations.interrupted()
        is_env_death = child.error is not None and child.error["traceback"] is None
        if is_env_death and self._are_env_deaths_said:
            return
        self._are_env_deaths_said |= is_env_death
        others = "; later deaths of this kind are not reported (restarts counts them)" if is_env_death else ""
        self._say(f"{child.name} {report['text']}{others}")

    def _unreported(self, child: Child, report: Report) -> None:
        self._progress.num_lost_episodes += report["lost_episodes"]

    def _rolled_back(self, child: Child, report: Report) -> None:
        frames = self._lose(report["lost_steps"])
        self._say(f"{child.name}: {report['text']}; training on {frames:,} frames is lost")
        if self._population is not None:
            self._population.learner_has(child.idx, report["weights_event"])

    def _killed(self, child: Child, report: Report) -> None:
        self._say(f"{child.name}: did not stop when asked to, killed")

    def _lose(self, env_steps: int) -> int:
        """Count them as lost; returns the frames."""
        frames = env_steps * self._frameskip
        self._progress.num_lost_frames += frames
        return frames
