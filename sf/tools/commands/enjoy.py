"""`sf-enjoy`: watch trained policies play, in a window or as a video."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import tyro

from sf.envs.field_types import require
from sf.envs.process_guards import keep_working_directory
from sf.envs.teams import sides_of
from sf.evaluation.pictures.stage import Projector, Screen
from sf.evaluation.pictures.video import without_window
from sf.tools.commands import cli
from sf.tools.commands.policy_flags import SearchFlags
from sf.tools.commands.watched_episodes import GentleInterrupt, say_episode, say_summary, say_thoughts, short_names

if TYPE_CHECKING:
    from sf.envs import RenderedGroup
    from sf.evaluation.play.episodes import Played
    from sf.evaluation.play.player import Player

MAX_PANELS = 9  # at once: of as many environments as they allow for
_HOLD_S = 2.0  # the results stay on the screen
_MOST_EPISODES = 1_000_000
_RANGES = {"fps": (0.1, 240.0), "speed": (0.01, 10_000.0), "max_seconds": (0.1, 86_400.0)}


@dataclass(frozen=True)
class EnjoyFlags(SearchFlags):
    """Which policies play, how long, and where it is shown."""

    run: tyro.conf.Positional[Path]
    """A run directory, such as train_dir/doom_basic, a checkpoint, the folder of a policy, hf:USER/NAME, or zoo/NAME
    (docs/enjoy.md lists the zoo)."""

    show_search: bool = False
    """Print, for each move of a player that searches, the value of the position, the moves that it expects, and the
    visits and values of its choices."""

    policy: int | None = None
    """Number of the policy to watch, in a run with several. Default: all of them, in turn."""

    against: tuple[str, ...] = ()
    """Others who play, opponents in a match, otherwise for comparison: runs or checkpoints, random (random moves),
    search:N or search:N:RUN (tree search with N simulations a move, by random play or with a policy: docs/search.md),
    openspiel:mcts:N (OpenSpiel's own search), gtp:COMMAND (a program that plays Go: docs/openspiel.md), bot:NAME (a bot
    of the simulator, see docs/league.md), or module:Name (a function of the observation that returns an action, or a
    class with a method act)."""

    episodes: int = 4
    """Total number of episodes, or of matches. Up to nine are played side by side."""

    video: Path | None = None
    """Write to this .mp4 or .gif file instead of opening a window."""

    fps: float | None = None
    """Pictures per second, from 0.1 to 240. Default: the rate of the environment, at most 60, or 12.5 in a .gif."""

    speed: float = 1.0
    """Playback speed. 1: real time, at the rate that the environment states. 2: twice as fast."""

    max_seconds: float = 300.0
    """Maximum length of the video, in seconds. Play that goes beyond it is not recorded."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(1 <= self.episodes <= _MOST_EPISODES, f"episodes is {self.episodes}: from 1 to {_MOST_EPISODES}")
        for name, (least, most) in _RANGES.items():
            value = getattr(self, name)
            require(value is None or least <= value <= most, f"{name} is {value}: from {least:g} to {most:g}")


def main() -> None:
    """Play and show; end with 0, 1 after a failure, 2 after a user's mistake, 130 after Ctrl-C, 143 after SIGTERM."""
    flags = cli.parse_flags(
        EnjoyFlags,
        "sf-enjoy",
        "Watch trained policies play, in a window or as a video. "
        "Example: sf-enjoy train_dir/doom_basic --video basic.mp4",
    )
    with cli.exit_status():
        interrupt = GentleInterrupt()
        _run(flags, interrupt)
        if interrupt.number:
            raise SystemExit(128 + interrupt.number)


def _run(flags: EnjoyFlags, interrupt: GentleInterrupt) -> None:
    os.environ.setdefault("SDL_NO_SIGNAL_HANDLERS", "1")  # it would swallow SIGTERM
    # What is wrong with the screen is said before torch is imported.
    no_window = nullcontext() if flags.video is None else without_window()
    with keep_working_directory(), no_window, closing(_screen(flags, interrupt)) as screen:
        from sf import envs  # noqa: PLC0415
        from sf.evaluation.play.contestants import find_contest, require_spaces  # noqa: PLC0415
        from sf.evaluation.play.opponents import Opponent  # noqa: PLC0415
        from sf.evaluation.play.torch_policy import TorchPolicy  # noqa: PLC0415
        from sf.system.processes.torch_runtime import configure  # noqa: PLC0415

        configure("cpu", num_threads=1, deterministic=True)
        found = find_contest(flags.run, flags.against, flags.checkpoint, flags.policy, flags.overrides, flags.trust)
        found = found.searching(flags.asked_search)
        players = {
            name: each.player() if isinstance(each, Opponent) else TorchPolicy(each, name)
            for name, each in found.players.items()
        }
        env, options = found.config.run.env, found.options
        spec = envs.describe(env, options)
        roles = found.roles(spec)
        require_spaces(found.players, env, spec, options, roles)
        num_agents = spec.num_agents
        num_envs = min(flags.episodes, max(1, MAX_PANELS // num_agents))
        made = envs.make_rendered_group(env, num_envs, options, seed=flags.seed, first_env_idx=0)
        with closing(made) as group, interrupt:
            played = _play(flags, env, players, roles, group, num_envs, screen, interrupt)
            has_file = screen.finish()
    say_summary(played, list(players), spec.time_limit)
    if has_file:
        is_cut = screen.is_full and len(played) < flags.episodes * num_agents
        print(f"video: {flags.video}{f', cut off by --max_seconds {flags.max_seconds:g}' if is_cut else ''}")


def _screen(flags: EnjoyFlags, interrupt: GentleInterrupt) -> Screen:
    from sf.evaluation.pictures.video import Video  # noqa: PLC0415
    from sf.tools.commands.play.window import Window  # noqa: PLC0415

    return Window(lambda: interrupt.number > 0) if flags.video is None else Video(flags.video, flags.max_seconds)


def _play(
    flags: EnjoyFlags,
    env: str,
    players: Mapping[str, Player],
    roles: Sequence[Sequence[int]],
    group: RenderedGroup,
    num_envs: int,
    screen: Screen,
    interrupt: GentleInterrupt,
) -> list[Played]:
    """Returns the episodes that were played to their end."""
    from sf.evaluation.pictures.stage import Stage  # noqa: PLC0415
    from sf.evaluation.play.episodes import Play, lineups_by_role  # noqa: PLC0415

    # Everybody meets the next one, and each is each agent, or team, in turn.
    lineups = (np.arange(flags.episodes)[:, None] + np.array(sides_of(group.spec))) % len(players)  # [M, A]
    if roles:
        lineups = lineups_by_role(roles, flags.episodes, flags.seed)[: flags.episodes]
    play = Play(group, list(players.values()), lineups, range(num_envs), num_envs, flags.seed, flags.deterministic)
    stage = Stage(env, short_names(list(players)), lineups, num_envs, group.num_views)
    rate = group.pictures_per_s * flags.speed
    projector = Projector(
        screen,
        moments_per_s=rate,
        fps=min(rate, screen.max_fps) if flags.fps is None else flags.fps,
        num_views=group.num_views,
        limit=screen.limit,
        title=f"sf-enjoy {', '.join(short_names(list(players)))}",
        goes_on=lambda: not interrupt.number,
    )
    all_played = []
    goes_on = True
    while goes_on and not play.is_done and not interrupt.number:
        played = play.step()
        all_played += played
        if flags.show_search:
            say_thoughts(play, list(players))
        for episode in played:
            say_episode(episode, list(players), group.spec.num_agents)
        for panels in stage.step(group.pictures(), group.returns(), play.value, played, play.match_idx):
            goes_on = goes_on and projector.show(panels)
    if goes_on and not interrupt.number:
        projector.hold(stage.panels(), _HOLD_S)
    return all_played
