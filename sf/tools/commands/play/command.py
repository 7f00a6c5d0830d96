"""`sf-play`: a person plays an environment with the keys, alone or against trained policies and other players."""

from __future__ import annotations

import dataclasses
import os
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import tyro

from sf.envs.field_types import require
from sf.envs.process_guards import keep_working_directory
from sf.tools.commands import cli
from sf.tools.commands.play.console import Console
from sf.tools.commands.play.keys import Keyboard
from sf.tools.commands.play.window import Window
from sf.tools.commands.policy_flags import PolicyFlags
from sf.tools.commands.watched_episodes import GentleInterrupt, say_summary
from sf.tools.report.outputs import require_outputs, write_json

if TYPE_CHECKING:
    from sf.envs import EnvSpec
    from sf.evaluation.play.episodes import Played
    from sf.evaluation.recording import Parts, Recording
    from sf.tools.commands.play.game import Game

_MOST_EPISODES = 10_000


@dataclass(frozen=True)
class PlayFlags(PolicyFlags):
    """What is played, against whom, and how fast."""

    env: tyro.conf.Positional[str]
    """An environment, such as CartPole-v1 (sf-envs lists them), or a run, a checkpoint, the folder of a policy,
    hf:USER/NAME or zoo/NAME (docs/enjoy.md lists the zoo): its environment, and in a match its policy as your
    opponent."""

    against: tuple[str, ...] = ()
    """Who plays the other agents of a match: runs or checkpoints, random (random moves), search:N or search:N:RUN (tree
    search with N simulations a move, by random play or with a policy: docs/search.md), openspiel:mcts:N (OpenSpiel's
    own search), gtp:COMMAND (a program that plays Go: docs/openspiel.md), bot:NAME (a bot of the simulator, see
    docs/league.md), or module:Name (a function of the observation that returns an action, or a class with a method
    act). Default: the policy of the run, else random. In an environment of one agent: the name of one of its own
    opponents, where it has some."""

    agent: int | None = None
    """Which agent of a match you are, from 1. Default: each in turn."""

    show_search: bool = False
    """Print, for each move of an opponent that searches, the value of the position, the moves that it expects, and the
    visits and values of its choices."""

    episodes: int = 3
    """Number of episodes, or of matches."""

    wait: bool | None = None
    """Wait for a key at each step. false: go on without one, with the action that does nothing, or the first. Default:
    true where agents take turns, and for environments of at most 4 pictures per second."""

    fps: float | None = None
    """Pictures of the environment per second, from 0.1 to 240: how fast it runs. Default: its own rate."""

    env_kwargs: str = "{}"
    """As in sf-train. With a run, they are added to its own."""

    env_wrappers: tuple[str, ...] = ()
    """As in sf-train. With a run, they replace its own."""

    policy: int | None = None
    """Number of the policy to play against, in a run with several. Default: all of them, in turn."""

    record: str | None = None
    """Write what you have done in the matches that came to their end as a Minari data set of this name,
    (GROUP/)NAME-vNUMBER, which a policy can learn from: docs/demonstrations.md."""

    json: Path | None = None
    """Write the episodes, and your mean return and win rate, to this file."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(1 <= self.episodes <= _MOST_EPISODES, f"episodes is {self.episodes}: from 1 to {_MOST_EPISODES}")
        require(self.fps is None or 0.1 <= self.fps <= 240.0, f"fps is {self.fps}: from 0.1 to 240")


_NO_WINDOW = "play on a machine with a screen"


def main() -> None:
    """Play; end with 0, 1 after a failure, 2 after a user's mistake, 130 after Ctrl-C, 143 after SIGTERM."""
    flags = cli.parse_flags(
        PlayFlags,
        "sf-play",
        "Play an environment yourself, with the keys. Example: sf-play atari_breakout. Against a trained policy: "
        "sf-play zoo/connect_four",
    )
    with cli.exit_status():
        interrupt = GentleInterrupt()
        _run(flags, interrupt)
        if interrupt.number:
            raise SystemExit(128 + interrupt.number)


def _run(flags: PlayFlags, interrupt: GentleInterrupt) -> None:
    os.environ.setdefault("SDL_NO_SIGNAL_HANDLERS", "1")  # it would swallow SIGTERM
    require_outputs(flags.json)
    keyboard = Keyboard()
    window = Window(lambda: interrupt.number > 0, keyboard.note, _NO_WINDOW)
    # What is wrong with the window is said before anything is imported.
    with keep_working_directory(), closing(Console(window)) as console:
        from sf import envs  # noqa: PLC0415
        from sf.tools.commands.play.game import find_game, play  # noqa: PLC0415

        game = find_game(flags)
        group: Any = envs.make_rendered_group(game.env, 1, game.options, seed=flags.seed, first_env_idx=0)
        with closing(group), interrupt:
            if not hasattr(group, "present"):
                raise ValueError(
                    f"{game.env} cannot be played: give its group the methods of sf.envs.group.PlayedGroup"
                )
            recording = _recording(flags, game, group.spec)
            parts = None if recording is None else recording.parts("person")
            played = play(flags, game, group, keyboard, console, interrupt, parts)
    if recording is not None and parts is not None:
        _finish(recording, parts, flags)
    say_summary(played, game.names, group.spec.time_limit)
    if flags.json is not None:
        write_json(flags.json, _result(flags, game, played))


def _recording(flags: PlayFlags, game: Game, spec: EnvSpec) -> Recording | None:
    if flags.record is None:
        return None
    from sf.evaluation.recording import Recording  # noqa: PLC0415

    return Recording(flags.record, game.env, spec, {"player": "person", "env": flags.env})


def _finish(recording: Recording, parts: Parts, flags: PlayFlags) -> None:
    from sf.tools.commands.record import say_finished  # noqa: PLC0415

    assert flags.record is not None
    parts.write()
    if recording.count():
        say_finished(flags.record, recording.finish("a person", "sf-play"))
    else:
        print(f"no match has come to its end, so there is no data set {flags.record}")


def _result(flags: PlayFlags, game: Game, played: list[Played]) -> dict[str, Any]:
    from sf.evaluation.results import Evaluation  # noqa: PLC0415
    from sf.tools.commands.play.game import OBJECTIVE  # noqa: PLC0415

    settings = {name: str(value) if isinstance(value, Path) else value for name, value in vars(flags).items()}
    own = [episode.episode_return for episode in played if episode.policy_idx == 0]
    won = Evaluation(OBJECTIVE, played).win_rate(0)
    return {
        **settings,
        "played": game.env,
        "players": game.names,
        "mean_return": float(np.mean(own)) if own else None,
        "win_rate": won and won.mean,
        "episodes": [{**dataclasses.asdict(episode), "player": game.names[episode.policy_idx]} for episode in played],
    }
