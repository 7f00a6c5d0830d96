"""Environments in Gymnasium's registry, by their ids there: `CartPole-v1`."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from sf.envs.entries import describer, group_of_envs
from sf.envs.errors import EnvError, UsageError, env_exceptions, failure, is_refusal_of_arguments, summary
from sf.envs.family import Entry, Family
from sf.envs.group import EnvGroup, RenderedGroup
from sf.envs.groups import calls
from sf.envs.groups.vector import VectorGroup, require_num_envs, require_single_frames
from sf.envs.libraries.packages import file_beside_installed, find_in_package
from sf.envs.options import EnvOptions
from sf.envs.remarks import remark
from sf.envs.rendering.filming import film_envs, film_vector
from sf.envs.wrappers.wrapping import are_for_vector_envs, wrapped

# What these make imports what their arguments name.
WRAPPERS_OF_OLD_IDS = ("GymV21Environment-v0", "GymV26Environment-v0")


def _make_gymnasium_group(
    env_id: str, num_envs: int, options: EnvOptions, *, seed: int, first_env_idx: int, core: int | None = None
) -> EnvGroup:
    """Gymnasium's own vectorised version where there is one, else single environments."""
    kwargs: dict[str, Any] = options.kwargs
    frameskip = options.env_frameskip or 1
    gym_spec = gym.registry[env_id.rpartition(":")[2]]
    with _call_of_gymnasium(env_id, options):
        if _is_vectorised(gym_spec, frameskip, options):
            vector_env = gym.make_vec(env_id, num_envs=num_envs, vectorization_mode="vector_entry_point", **kwargs)
            require_num_envs(env_id, vector_env, num_envs)
            vector_env = wrapped(env_id, vector_env, options)
            return VectorGroup(env_id, vector_env, seed, first_env_idx, strict_spaces=options.strict_spaces)

    def make() -> gym.Env:
        with _call_of_gymnasium(env_id, options):
            # The group checks what it needs itself, at a fraction of the time that the passive checker takes.
            return gym.make(env_id, disable_env_checker=True, **kwargs)

    with calls.made(env_id, [make] * num_envs, lambda env: wrapped(env_id, env, options)) as envs:
        group: EnvGroup = group_of_envs(env_id, envs, options, seed, first_env_idx)
    if str(gym_spec.entry_point).startswith("ale_py.") and _shows_whole_screen(group):
        remark(
            f"{env_id} raw screen",
            f"{env_id} gives the whole screen of one frame: --env atari_{gym_spec.kwargs['game']} has the usual "
            "preprocessing of Atari games (84x84 grey, 4 frames, frameskip 4)",
        )
    return group


def _shows_whole_screen(group: EnvGroup) -> bool:
    """Returns whether the observations are an Atari game's screen, in colour and of its size."""
    box = group.spec.obs_space.get("obs")
    return box is not None and (box.shape or ())[1:] == (160, 3)


def _make_rendered_gymnasium_group(
    env_id: str, num_envs: int, options: EnvOptions, *, seed: int, first_env_idx: int
) -> RenderedGroup:
    """Single environments where there are any: few vectorised ones draw."""
    kwargs: dict[str, Any] = options.kwargs
    gym_spec = gym.registry[env_id.rpartition(":")[2]]
    with _call_of_gymnasium(env_id, options):
        if gym_spec.entry_point is None or are_for_vector_envs(options):
            mode = "vector_entry_point"
            make_vec = partial(gym.make_vec, env_id, num_envs=num_envs, vectorization_mode=mode, **kwargs)
            return film_vector(env_id, make_vec, num_envs, options, seed, first_env_idx)
        makes = [partial(gym.make, env_id, disable_env_checker=True, **kwargs)] * num_envs
        return film_envs(env_id, makes, options, seed, first_env_idx, group_of_envs)


def _is_vectorised(gym_spec: EnvSpec, frameskip: int, options: EnvOptions) -> bool:
    """Wrappers are of single environments, unless they say otherwise.

    A vectorised version of another package may be another task (that of ale_py clips rewards). Gymnasium's know no
    `max_episode_steps` but a number of them. Raises UsageError where frames are skipped and there is nothing but a
    vectorised version.
    """
    if gym_spec.entry_point is None:
        require_single_frames(gym_spec.id, frameskip)
        return True
    if gym_spec.vector_entry_point is None or frameskip != 1 or options.single_envs:
        return False
    if options.env_wrappers:
        return are_for_vector_envs(options)
    limit = options.kwargs.get("max_episode_steps", 1)
    return str(gym_spec.vector_entry_point).startswith("gymnasium.") and isinstance(limit, int) and limit > 0


@contextmanager
def _call_of_gymnasium(env_id: str, options: EnvOptions) -> Iterator[None]:
    """Raises UsageError where Gymnasium refuses the name or the arguments; else the environment itself has raised."""
    try:
        yield
    except (UsageError, EnvError):
        raise
    except env_exceptions() as error:
        if isinstance(error, gym.error.Error | ImportError) or is_refusal_of_arguments(error):
            raise UsageError(f"env {env_id!r} with env_kwargs {options.env_kwargs}: {error}") from error
        # Gymnasium adds its arguments to a TypeError, and hides where it came from.
        cause = error.__cause__ if isinstance(error.__cause__, TypeError) else error
        raise failure(env_id, "__init__()", cause) from error


GYMNASIUM_ENTRY = Entry(
    describer(_make_gymnasium_group), _make_gymnasium_group, _make_rendered_gymnasium_group, takes_wrappers=True
)


def _find(env_id: str) -> Entry | None:
    """That of the registry, or of a package that is imported for it, or registers by an entry point."""
    if env_id in gym.registry:
        return GYMNASIUM_ENTRY
    found = find_in_package(env_id, GYMNASIUM_ENTRY)
    if found is not None:
        return found
    load_plugins()
    return GYMNASIUM_ENTRY if env_id in gym.registry else None


@functools.cache
def load_plugins() -> dict[str, str]:
    """Load the entry points by which installed packages register with Gymnasium. Returns why others failed, by package.

    Gymnasium itself loaded them up to its version 1.0.
    """
    errors = {entry_point.module.partition(".")[0]: _load(entry_point) for entry_point in _plugins()}
    return {package: error for package, error in errors.items() if error is not None}


def _plugins() -> Iterable[EntryPoint]:
    return entry_points(group="gymnasium.envs")


def _load(entry_point: EntryPoint) -> str | None:
    try:
        loaded = entry_point.load()
        if callable(loaded):
            loaded()
    except Exception as error:  # of one package, whatever it is; an id of it is then not known
        return summary(error)
    return None


def newest(env_ids: Collection[str]) -> list[str]:
    """Returns the newest version of each environment."""
    newest: dict[str, int] = {}
    for name, version in map(_split_version, env_ids):
        newest[name] = max(version, newest.get(name, 0))
    return [env_id for env_id in env_ids if _split_version(env_id) in newest.items()]


def _split_version(env_id: str) -> tuple[str, int]:
    name, _, version = env_id.rpartition("-v")
    return (name, int(version)) if version.isdecimal() and name else (env_id, 0)


GYMNASIUM = Family(
    name="gymnasium",
    about="its newest versions; older ones and module:Env-v0 can be named, too",
    pattern=r"[^:]*",
    find=_find,
    env_ids=lambda: list(gym.registry),
    listed=newest,
    code_of=lambda env_id: env_id if env_id in WRAPPERS_OF_OLD_IDS else file_beside_installed(env_id),
)
