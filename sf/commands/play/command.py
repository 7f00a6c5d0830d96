"""`sf-play`: a person plays an environment with the keys, alone or against trained policies and other players."""

from __future__ import annotations

import dataclasses
import os
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sf.commands import cli
from sf.commands.episode_lines import say_summary
from sf.commands.gentle_interrupt import GentleInterrupt
from sf.commands.play.flags import PlayFlags
from sf.envs.surroundings import working_directory
from sf.screen.console import Console
from sf.screen.keyboard import Keyboard
from sf.screen.window import Window
from sf.storage import output_file, text_files

if TYPE_CHECKING:
    from sf.commands.play.game import Game
    from sf.play.episodes import Played

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
    if flags.json is not None:
        output_file.require_writable("json", flags.json)
    keyboard = Keyboard()
    window = Window(lambda: interrupt.number > 0, keyboard.note, _NO_WINDOW)
    # What is wrong with the window is said before anything is imported.
    with working_directory.kept(), closing(Console(window)) as console:
        from sf import envs  # noqa: PLC0415
        from sf.commands.play.game import find_game  # noqa: PLC0415
        from sf.commands.play.playing import play  # noqa: PLC0415

        game = find_game(flags)
        group: Any = envs.make_rendered_group(game.env, 1, game.options, seed=flags.seed, first_env_idx=0)
        with closing(group), interrupt:
            if not hasattr(group, "present"):
                raise ValueError(
                    f"{game.env} cannot be played: give its group the methods of sf.envs.group.PlayedGroup"
                )
            played = play(flags, game, group, keyboard, console, interrupt)
    say_summary(played, game.names)
    if flags.json is not None:
        text = text_files.dumps(_result(flags, game, played), indent=2) + "\n"
        output_file.write("json", flags.json, text.encode())


def _result(flags: PlayFlags, game: Game, played: list[Played]) -> dict[str, Any]:
    from sf.commands.play.playing import OBJECTIVE  # noqa: PLC0415
    from sf.evaluation.results import Evaluation  # noqa: PLC0415

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


if __name__ == "__main__":
    main()
