"""Plays episodes in front of a person: prints a line for each, and lets Ctrl-C finish what is under way."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sf.metrics.readable import number, up_to

if TYPE_CHECKING:
    from sf.evaluation.play.episodes import Play, Played

_MOST_CHOICES = 5  # of a search that are shown


class GentleInterrupt:
    """Within it, Ctrl-C ends the play after the step and the picture that are under way, so that a video is finished;
    a second one ends at once. Before it, while nothing is played yet, the first one does.

    SIGTERM does the same. number: of the signal that came, or 0.
    """

    def __init__(self) -> None:
        self.number = 0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> GentleInterrupt:
        self._before = {signum: signal.signal(signum, self._note) for signum in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *raised: object) -> None:
        for signum, handler in self._before.items():
            signal.signal(signum, handler)

    def _note(self, number: int, frame: object) -> None:
        self.number = number
        self.__exit__()


def short_names(names: Sequence[str]) -> list[str]:
    """The run and the policy alone, where that tells them apart."""
    kept = [
        "/".join(part for part in Path(name).parts if part != "checkpoints" and not part.startswith("checkpoint_"))
        for name in names
    ]
    return kept if len(set(kept)) == len(names) and all(kept) else list(names)


def say_episode(episode: Played, names: Sequence[str], num_agents: int) -> None:
    what = f"episode {episode.match_idx + 1}"
    if num_agents > 1:
        what = f"match {episode.match_idx + 1}, agent {episode.agent_idx + 1}"
    who = f" ({names[episode.policy_idx]})" if len(names) > 1 else ""
    stats = "".join(f", {name} {value:g}" for name, value in episode.stats.items())
    print(f"{what}{who}: return {number(episode.episode_return)}, {episode.num_steps} steps{stats}", flush=True)


def say_thoughts(play: Play, names: Sequence[str]) -> None:
    """Print what the players that search have found in the step that was just taken: the value of the position, the
    moves that they expect, and the choices by their visits."""
    for match_idx, policy_idx, thought in play.thoughts():
        root = thought.root
        tried = sorted(range(len(root.action)), key=lambda k: -root.visits[k])[:_MOST_CHOICES]
        choices = ", ".join(
            f"{thought.names[k]} {root.visits[k]} ({number(float(root.value[k]))})" for k in tried if root.visits[k]
        )
        print(
            f"match {match_idx + 1} ({names[policy_idx]}): value {number(float(root.root_value))}, "
            f"{' '.join(thought.line)}; visits and values: {choices}",
            flush=True,
        )


def say_summary(played: Sequence[Played], names: Sequence[str], time_limit: int | None) -> None:
    """time_limit: decisions of an episode at most; None: not known."""
    if not played:
        print(f"no episode has come to its end{up_to(time_limit)}")
    for policy_idx, name in enumerate(names):
        returns = [episode.episode_return for episode in played if episode.policy_idx == policy_idx]
        if returns:
            mean, least, most = map(number, (float(np.mean(returns)), min(returns), max(returns)))
            print(
                f"{name}: mean return {mean}, from {least} to {most}, "
                f"of {len(returns)} episode{'s' * (len(returns) > 1)}"
            )
