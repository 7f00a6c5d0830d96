"""A game of a person: what is played and by whom, and its episodes from the first picture to the last result."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sf import envs
from sf.envs import ActionSpec, EnvOptions
from sf.envs.group import PlayedGroup
from sf.envs.registry import kwargs_against
from sf.envs.spaces.actions import ACTION_MASK
from sf.evaluation.pictures.overlay import Panel
from sf.evaluation.pictures.stage import Projector, Stage
from sf.evaluation.play.episodes import Play, Played
from sf.evaluation.play.opponents import RANDOM, Opponent
from sf.evaluation.play.player import HumanPlayer, Player
from sf.evaluation.results import Evaluation
from sf.metrics.readable import number
from sf.storage import text_files
from sf.storage.zoo.places import is_policy
from sf.tools.commands.play.console import Console
from sf.tools.commands.play.controls import Controls, WindowClosedError
from sf.tools.commands.play.keys import Keyboard
from sf.tools.commands.watched_episodes import GentleInterrupt, say_episode, say_thoughts, short_names

if TYPE_CHECKING:
    from sf.evaluation.play.contestants import Contestant
    from sf.evaluation.recording import Parts
    from sf.tools.commands.play.command import PlayFlags

YOU = "you"
OBJECTIVE = "true_objective"  # of episodes, which says who has won
_HOLD_S = 1.5  # the result of an episode stays on the screen
_SLOW = 4.0  # pictures a second: what is no faster waits for a key


@dataclass(frozen=True)
class Game:
    """others: the other players by name, none in an environment of one agent."""

    env: str
    options: EnvOptions
    num_agents: int
    others: Mapping[str, Contestant]

    @property
    def names(self) -> list[str]:
        """Of all players, the person first."""
        return [YOU, *self.others]

    def lineups(self, num_episodes: int, agent: int | None) -> np.ndarray:
        """[M, A] of all matches, as `sf.evaluation.play.episodes.Play` takes them: 0 is the person, who is this agent,
        from 1."""
        lineups = np.zeros((num_episodes, self.num_agents), np.int64)
        for m in range(num_episodes):
            own = m % self.num_agents if agent is None else agent - 1
            turn = m // self.num_agents if agent is None else m  # the others change when the person has had each seat
            rest = [a for a in range(self.num_agents) if a != own]
            lineups[m, rest] = 1 + (turn + np.arange(len(rest))) % max(1, len(self.others))
        return lineups


def find_game(flags: PlayFlags) -> Game:
    """Raises ValueError where there is no such environment or player, and where they do not fit each other."""
    env, options, policies = _named(flags)
    against = flags.against
    num_agents = envs.describe(env, options).num_agents
    if num_agents == 1:
        own = kwargs_against(env, against[0]) if len(against) == 1 else None
        if against and own is None:
            raise ValueError(f"against is {' '.join(against)}, but {env} has one agent, you: leave it out")
        options = _with_kwargs(options, own or {})
    spec = envs.describe(env, options)
    if flags.agent is not None and not 1 <= flags.agent <= num_agents:
        raise ValueError(f"agent is {flags.agent}, but {env} has {num_agents}: from 1 to {num_agents}")
    if num_agents == 1:
        return Game(env, options, 1, {})
    if not against and policies:
        from sf.evaluation.play.contestants import require_spaces  # noqa: PLC0415

        require_spaces(policies, env, spec, options)
        return Game(env, options, num_agents, policies)
    from sf.evaluation.play.contestants import find_opponents  # noqa: PLC0415  torch is slow to import: not to play alone

    others = find_opponents(env, options, spec, against or (RANDOM,), flags.checkpoint, flags.trust)
    return Game(env, options, num_agents, others)


def _named(flags: PlayFlags) -> tuple[str, EnvOptions, Mapping[str, Contestant]]:
    """The environment that `flags.env` names, its options, and the policies of that name, if it is a run."""
    env, options = flags.env, EnvOptions()
    policies: Mapping[str, Contestant] = {}
    if flags.policy is not None and not is_policy(env):
        raise ValueError(f"policy is {flags.policy}, which is for a run, and {env} is an environment: leave it out")
    if is_policy(env) or flags.overrides:
        from sf.evaluation.play.contestants import find_contest, overridden  # noqa: PLC0415
    if is_policy(env):
        found = find_contest(Path(env), (), flags.checkpoint, flags.policy, (), flags.trust)
        env, options, policies = found.config.run.env, found.options, found.players
    if flags.overrides:
        options = overridden(options, flags.overrides)
    if flags.env_wrappers:
        options = dataclasses.replace(options, env_wrappers=flags.env_wrappers)
    return env, _with_kwargs(options, EnvOptions(env_kwargs=flags.env_kwargs).kwargs), policies


def _with_kwargs(options: EnvOptions, kwargs: Mapping[str, Any]) -> EnvOptions:
    return dataclasses.replace(options, env_kwargs=text_files.dumps({**options.kwargs, **kwargs}))


def make_players(game: Game) -> list[Player]:
    """The others."""
    if all(isinstance(each, Opponent) for each in game.others.values()):
        return [each.player() for each in game.others.values() if isinstance(each, Opponent)]
    from sf.evaluation.play.torch_policy import TorchPolicy  # noqa: PLC0415
    from sf.system.processes.torch_runtime import configure  # noqa: PLC0415

    configure("cpu", num_threads=1, deterministic=True)
    return [
        each.player() if isinstance(each, Opponent) else TorchPolicy(each, name) for name, each in game.others.items()
    ]


def play(
    flags: PlayFlags,
    game: Game,
    group: PlayedGroup,
    keyboard: Keyboard,
    console: Console,
    interrupt: GentleInterrupt,
    parts: Parts | None = None,
) -> list[Played]:
    """Returns the episodes that were played to their end. parts: where those of the person are recorded, if at all."""

    def choose(n: int, mask: np.ndarray | None) -> list[int]:
        return controls.choose(mask, group.moves(n)) if episodes.is_playing[n] else controls.idle

    human = HumanPlayer(game.env, ActionSpec.of(group.spec.action_space), choose)
    lineups = game.lineups(flags.episodes, flags.agent)
    what = group, [human, *make_players(game)], lineups, range(1), 1, flags.seed, flags.deterministic
    episodes: Play
    if parts is None:
        episodes = Play(*what)
    else:
        from sf.evaluation.recording import RecordedPlay  # noqa: PLC0415

        episodes = RecordedPlay(parts, 1, *what)
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
            if flags.show_search:
                say_thoughts(episodes, game.names)
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
    """Returns the view of the person's agent if each agent has its own, else all panels."""
    return [panels[agent_idx]] if len(panels) > 1 else panels


def _what_came_out(of_match: Sequence[Played], is_over: bool) -> str:
    """Returns what the person is told, and prints who has won if the match is over. of_match: its episodes."""
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
