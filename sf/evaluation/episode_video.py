"""A video of a policy at work, for a run that goes on: some environments side by side, one episode each.

Called by the evaluator; the parent of a run asks before the start whether it can work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sf import envs
from sf.config import Config
from sf.config.roles import roles_of
from sf.envs import RenderedGroup, UsageError
from sf.envs.process_guards import keep_working_directory
from sf.envs.seeding import env_seed
from sf.envs.spaces.observations import obs_arrays
from sf.envs.teams import sides_of
from sf.evaluation.pictures.stage import Projector, Stage
from sf.evaluation.pictures.video import Video, preview, without_window
from sf.evaluation.play.episodes import Play, lineups_by_role
from sf.evaluation.play.torch_policy import TorchPolicy
from sf.system.machine import extras

_SEED_KEY = 0xF117  # the same for all videos of a run, so that they can be compared
_MAX_FPS = 25.0
_LIMIT = (640, 480)  # width and height
# One thread, since the cores are the sampler's. The rate bounds the size of the file: 1 MB for 20 seconds.
_ENCODING = ("-threads", "1", "-maxrate", "400k", "-bufsize", "800k")
_HOLD_S = 1.0  # the results stay on the screen


@dataclass(frozen=True)
class EpisodeVideo:
    """A video that is written. returns: of the episodes that ended in it, of all agents of the policy."""

    path: Path
    preview: bytes  # a small GIF
    returns: list[float]
    is_cut: bool  # it became as long as it may before all episodes had ended


def require_drawable(config: Config) -> None:
    """Raises ValueError before a run, with what to change, if its environment cannot be filmed."""
    flag = "video_every_env_steps"
    extras.require("video", "imageio_ffmpeg", "PIL", purpose=flag)
    env = config.run.env
    try:
        with keep_working_directory(), without_window(), closing(_make_group(config, 1)) as group:
            obs = obs_arrays(group.spec.obs_space, group.num_actors)
            group.reset({key: list(rows) for key, rows in obs.items()})  # which draws the first picture
    except UsageError as error:
        raise UsageError(f"{error} (or leave --{flag} out)") from None
    except Exception as error:  # render() is code of others, and a missing display or driver has many names
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise UsageError(f"{env} cannot be drawn ({reason}): leave --{flag} out, or fix its render()") from error


def film(
    config: Config, policies: Sequence[TorchPolicy], policy_id: int, path: Path, on_step: Callable[[], None]
) -> EpisodeVideo:
    """Play and write the file. Each policy after `policy_id` plays the next agent, or team, of a match.

    on_step: called after each step of the environments. Raises what an environment raises, and ValueError where the
    file cannot be written.
    """
    evaluation = config.evaluation
    num_envs = evaluation.video_envs
    with without_window(), closing(_make_group(config, num_envs)) as group:
        on_step()
        of_agents = (policy_id + np.array(sides_of(group.spec))) % len(policies)
        lineups = np.tile(of_agents, (num_envs, 1))  # [M, A]: a match each
        roles = roles_of(config.population, group.spec, config.run.env)
        if roles:
            lineups = lineups_by_role(roles, num_envs, policy_id)[:num_envs]
            lineups[:, [policy_id in policies for policies in roles]] = policy_id
        seed = env_seed(config.run.seed, _SEED_KEY)
        play = Play(group, policies, lineups, range(num_envs), num_envs, seed, evaluation.eval_deterministic)
        title = f"{config.run.env}, {policies[policy_id].env_steps:,} env steps"
        stage = Stage(title, [policy.name for policy in policies], lineups, num_envs, group.num_views)
        with closing(Video(path, evaluation.video_max_seconds, "train_dir", _ENCODING)) as video:
            projector = Projector(
                video,
                moments_per_s=group.pictures_per_s,
                fps=min(group.pictures_per_s, _MAX_FPS),
                num_views=group.num_views,
                limit=_LIMIT,
                title=title,
                goes_on=lambda: not video.is_full,
            )
            returns = []
            while not play.is_done and not video.is_full:
                played = play.step()
                returns += [episode.episode_return for episode in played if episode.policy_idx == policy_id]
                for panels in stage.step(group.pictures(), group.returns(), play.value, played, play.match_idx):
                    projector.show(panels)
                on_step()
            is_cut = not play.is_done
            projector.hold(stage.panels(), _HOLD_S)
            video.finish()
    return EpisodeVideo(path, preview(path, projector.seconds, projector.size[0]), returns, is_cut)


def _make_group(config: Config, num_envs: int) -> RenderedGroup:
    seed = env_seed(config.run.seed, _SEED_KEY)
    options = config.evaluated_environment
    return envs.make_rendered_group(config.run.env, num_envs, options, seed=seed, first_env_idx=0)
