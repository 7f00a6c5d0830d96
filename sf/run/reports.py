"""What a run makes of the reports of its children: numbers for its metrics, sentences for whoever watches."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from sf.config import Config
from sf.evaluation.during_training import Evaluations, EvaluatorOrders, Videos
from sf.league.players.matchmaker import Matchmaker
from sf.league.population.controller import Population
from sf.metrics.advice import StaleData
from sf.metrics.latest_episodes import EndedEpisode
from sf.metrics.progress import Progress
from sf.run.ranks_report import RanksReport
from sf.run.tasks.choice import TaskChoice
from sf.system.messages import say
from sf.system.processes import reports

_MOST_PLACES = 20  # in the code of environments, of whose faults a traceback is shown


class Source(Protocol):
    """Names the sender of a report: a child process, or a part of a serial run."""

    @property
    def name(self) -> str: ...

    @property
    def role(self) -> str: ...

    @property
    def idx(self) -> int: ...

    @property
    def error(self) -> reports.Failed | None: ...

    def cause_of_death(self) -> str: ...


@dataclass
class ReportHandler:
    """Handles reports. Reports of other kinds than those below are for the supervisor alone."""

    progress: Progress
    frameskip: int
    orders: EvaluatorOrders
    evaluations: Evaluations
    videos: Videos
    population: Population | None = None
    matchmaker: Matchmaker | None = None
    task_choice: TaskChoice | None = None
    stale_data: Callable[[], StaleData] = lambda: StaleData(Config(), has_auto_sizes=False)
    ranks: RanksReport | None = None

    def __post_init__(self) -> None:
        self._stale_data = defaultdict[int, StaleData](self.stale_data)  # by policy
        self._places_said: set[str] = set()  # of faults
        self._remarks_said: set[str] = set()  # what they were about
        self._deaths_said: set[str] = set()  # of children, with their tracebacks
        self._are_env_deaths_said = False  # of workers whose environments fail again and again

    def handle(self, child: Source, report: reports.Report) -> None:  # noqa: PLR0912, PLR0915  a case is a kind
        name, progress = child.name, self.progress
        match report:
            # While it trains
            case reports.LearnerReady():
                self._learner_ready(child, report)
            case reports.Episodes(episodes, lost_episodes, absent):
                progress.add_episodes(episodes, child.idx, absent)
                progress.num_lost_episodes += lost_episodes
                if self.task_choice is not None:
                    self.task_choice.add(EndedEpisode(*fields).stats for fields in episodes)
                unreported = progress.unreported_objective.see(progress.policies)
                if unreported is not None:
                    say(unreported)
            case reports.Trained(env_steps, metrics):
                progress.add_training(child.idx, env_steps, metrics)
                stale = self._stale_data[child.idx].see(time.monotonic(), metrics)
                if stale is not None:
                    say(f"{name}: {stale}")
                self._say_if_clipped(name, metrics.get("clipped_reward_share", 0.0))
            case reports.HasWeights(weights_event):
                if self.matchmaker is not None:  # evolution may have sent newer ones already
                    self.matchmaker.learner_has(child.idx, weights_event)
            case reports.RankWaits(wait_shares, lost_steps):
                assert self.ranks is not None
                self.ranks.note_waits(child.idx, wait_shares)
                self._lose(lost_steps)
            case reports.Say(text):
                say(f"{name}: {text}")
            case reports.Remark(about, text):
                self._remark(about, text)
            case reports.Saved(path):
                progress.note_checkpoint(path)
                say(f"{name}: saved {path}")
            case reports.SaveFailed(message):
                say(f"{name}: no checkpoint ({message}); the save is tried again")
            case reports.RolledBack():
                frames = self._lose(report.lost_steps)
                say(f"{name}: {report.text}; training on {frames:,} frames is lost")
                self._learner_has(child, report.weights_event)
            # Evaluation
            case reports.Evaluated():
                self.evaluations.evaluated(report)
            case reports.Exploited():
                self.evaluations.exploited(report)
            case reports.Filmed():
                self.videos.filmed(report)
            case reports.BestSaved(path):
                say(f"{name}: saved {path}")
            case reports.GivenUp():
                self._given_up(report)
            # Matches
            case reports.MatchesPlayed(matches):
                assert self.matchmaker is not None
                self.matchmaker.results.note(matches)
            case reports.PlayerFailed(player, text):
                assert self.matchmaker is not None
                self.matchmaker.player_failed(player, text)
            # Faults
            case reports.EnvFault():
                self._fault(child, report)
            case reports.Replaced():
                self._replaced(child, report)
            case reports.Unreported(lost_episodes):
                progress.num_lost_episodes += lost_episodes
            # The end
            case reports.LearnerFinished(env_steps, is_signalled):
                progress.policies[child.idx].env_steps = env_steps
                if self.ranks is not None and is_signalled:
                    self.ranks.has_signalled_rank = True
            case reports.Killed():
                say(f"{name}: did not stop when asked to, killed")
            case reports.SavedFor():
                self._saved_for(child, report)

    def _learner_ready(self, child: Source, report: reports.LearnerReady) -> None:
        is_first = self.progress.resume(child.idx, report.env_steps, report.seconds_before)
        self._learner_has(child, report.weights_event)
        if is_first:
            return
        frames = self._lose(report.lost_steps)
        say(f"{child.name}: continues; training on the last {frames:,} frames is lost")

    def _learner_has(self, child: Source, weights_event: int) -> None:
        """Who decides over weights learns which of the decisions have arrived."""
        for decider in (self.population, self.matchmaker):
            if decider is not None:
                decider.learner_has(child.idx, weights_event)

    def _say_if_clipped(self, name: str, share: float) -> None:
        """Warns once of each learner whose rewards are clipped. share: of its rewards."""
        if share > 0:
            self._remark(
                f"clipped rewards of {name}",
                f"{name}: --reward_clip changes {share:.1%} of the rewards, and all that it changes look alike to the "
                "learner: --reward_clip 0 leaves them as they are",
            )

    def _remark(self, about: str, text: str) -> None:
        if about not in self._remarks_said:
            self._remarks_said.add(about)
            say(text)

    def _fault(self, child: Source, report: reports.EnvFault) -> None:
        self.progress.num_env_faults += report.count
        if report.place in self._places_said or len(self._places_said) > _MOST_PLACES:
            return
        self._places_said.add(report.place)
        if len(self._places_said) > _MOST_PLACES:
            say(f"{child.name}: environments fail at more than {_MOST_PLACES} places: env_faults counts the rest")
            return
        lines = [f"{child.name}: an environment failed and was rebuilt: {report.message}", report.traceback]
        say("\n".join(line for line in lines if line is not None))

    def _replaced(self, child: Source, report: reports.Replaced) -> None:
        self.progress.num_restarts += 1
        self.progress.num_lost_episodes += report.lost_episodes
        if child.role == "evaluator":
            self.orders.done()
            self.videos.remove_unfinished()
        is_env_death = child.error is not None and child.error.traceback is None
        if is_env_death and self._are_env_deaths_said:
            return
        self._are_env_deaths_said |= is_env_death
        others = "; later deaths of this kind are not reported (restarts counts them)" if is_env_death else ""
        say(f"{child.name} {self._shortened(report.text)}{others}")

    def _shortened(self, text: str) -> str:
        """A traceback is shown once."""
        cause, _, what_was_done = text.rpartition(". ")
        first, _, rest = cause.partition("\n")
        if cause in self._deaths_said and rest:
            return f"{first}, as before. {what_was_done}"
        self._deaths_said.add(cause)
        return text

    def _given_up(self, report: reports.GivenUp) -> None:
        """On the evaluator."""
        selects = "; from now on, returns in training select the best checkpoint" if self.orders.has_evaluations else ""
        say(f"{report.text}\nThe run continues without {self.orders.words}{selects}")
        self.orders.given_up()
        self.videos.remove_unfinished()

    def _saved_for(self, child: Source, report: reports.SavedFor) -> None:
        frames = self._lose(max(0, self.progress.policies[child.idx].env_steps - report.env_steps))
        say(
            f"{child.name}: {child.cause_of_death()}, and could not save; the run resumes from {report.path}, and "
            f"training on the last {frames:,} frames is lost"
        )

    def _lose(self, env_steps: int) -> int:
        """Count them as lost; returns the frames."""
        frames = env_steps * self.frameskip
        self.progress.num_lost_frames += frames
        return frames
