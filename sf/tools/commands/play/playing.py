"""The episodes of a person: from the first picture to what is said of the last one."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from sf.envs import ActionSpec
from sf.envs.group import PlayedGroup
from sf.envs.spaces.actions import ACTION_MASK
from sf.evaluation.pictures.overlay import Panel
from sf.evaluation.pictures.projector import Projector
from sf.evaluation.pictures.stage import Stage
from sf.evaluation.play.episodes import Play, Played
from sf.evaluation.play.human_player import HumanPlayer
from sf.evaluation.results import Evaluation
from sf.metrics.readable import number
from sf.tools.commands.play.console import Console
from sf.tools.commands.play.controls import Controls, WindowClosedError
from sf.tools.commands.play.game import YOU, Game, make_players
from sf.tools.commands.play.keyboard import Keyboard
from sf.tools.commands.watched_episodes import GentleInterrupt, say_episode, short_names

if TYPE_CHECKING:
    from sf.tools.commands.play.command import PlayFlags

OBJECTIVE = "true_objective"  # of episodes, which says who has won
_HOLD_S = 1.5  # the result of an episode stays on the screen
_SLOW = 4.0  # pictures a second: what is no faster waits for a key


def play(
    flags: PlayFlags,
    game: Game,
    group: PlayedGroup,
    keyboard: Keyboard,
    console: Console,
    interrupt: GentleInterrupt,
) -> list[Played]:
    """Returns the episodes that were played to their end."""

    def choose(n: int, mask: np.ndarray | None) -> list[int]:
        return controls.choose(mask, group.moves(n)) if episodes.is_playing[n] else controls.idle

    human = HumanPlayer(game.env, ActionSpec.of(group.spec.action_space), choose)
    lineups = game.lineups(flags.episodes, flags.agent)
    episodes = Play(group, [human, *make_players(game)], lineups, range(1), 1, flags.seed, flags.deterministic)
    waits = _waits(episodes, group) if flags.wait is None else flags.wait
    controls = Controls(game.env, group.spec, waits, keyboard, console)
    stage = Stage(game.env, [YOU, *short_names(list(game.others))], lineups, 1, group.num_views)
    rate = group.pictures_per_s if flags.fps is None else flags.fps
    projector = Projector(
        console,
        moments_per_s=rate,
        fps=min(rate, console.max_fps),
        num_views=1,
        limit=console.limit,
        title=f"sf-play {game.env}",
        goes_on=lambda: not interrupt.number,
    )
    played: list[Played] = []
    begins = True  # the next episode of the person has not been shown yet
    with suppress(WindowClosedError):
        while not episodes.is_done and not interrupt.number:
            (match_idx,) = episodes.match_idx.tolist()
            own = int(np.flatnonzero(lineups[match_idx] == 0)[0])
            if begins and episodes.first[own]:
                group.show_to(own)
                projector.hold(_own_view(stage.begin(group.present()), own), 0.0)
                controls.begin()
                begins = False
            ended = episodes.step()
            begun_anew = episodes.pop_begun_anew()
            played = [each for each in played if each.match_idx not in begun_anew] + ended
            for episode in ended:
                say_episode(episode, game.names, game.num_agents)
            values = np.full(group.num_actors, np.nan)  # what the others expect is not for the person to know
            for panels in stage.step(group.pictures(), group.returns(), values, ended, episodes.match_idx):
                if not projector.show(_own_view(panels, own)):
                    return played
            is_over = episodes.match_idx[0] != match_idx
            if is_over or any(episode.policy_idx == 0 for episode in ended):
                begins = True
                console.said = _what_came_out([each for each in played if each.match_idx == match_idx], is_over)
                projector.hold(_own_view(stage.panels(), own), _HOLD_S)
    return played


def _waits(episodes: Play, group: PlayedGroup) -> bool:
    """Whether the game waits for the person. An agent that may do nothing at first waits for its turn."""
    masks = episodes.obs.get(ACTION_MASK)
    takes_turns = masks is not None and not masks.reshape(len(masks), -1).any(axis=1).all()
    return takes_turns or group.pictures_per_s <= _SLOW


def _own_view(panels: list[Panel], agent_idx: int) -> list[Panel]:
    """Where each agent has a view of its own, the person sees no other."""
    return [panels[agent_idx]] if len(panels) > 1 else panels


def _what_came_out(of_match: Sequence[Played], is_over: bool) -> str:
    """What the person is told. of_match: the episodes of a match, which is_over. Prints who has won."""
    own = [episode for episode in of_match if episode.policy_idx == 0]
    others = [episode for episode in of_match if episode.policy_idx != 0]
    text = f"return {number(own[-1].episode_return)}, {own[-1].num_steps} steps" if own else ""
    if not (is_over and own and others):
        return text
    (scores,) = Evaluation(OBJECTIVE, list(of_match)).scores_of_matches().values()
    mine = sum(score for who, score in scores.values() if who == 0)
    theirs = [score for who, score in scores.values() if who != 0]  # of teammates, too, who may have as much
    verdict = "you lost" if max(theirs) > mine else "you won" if min(theirs) < mine else "a draw"
    print(f"match {own[-1].match_idx + 1}: {verdict}", flush=True)
    return f"{verdict}: {text}"
