"""Find an environment by its name, and make groups of it.

What was registered in this process goes before everything. Then the families are asked, in the order of `FAMILIES`;
those whose names look otherwise are passed over, so nothing is imported that the environment does not need.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from sf.envs.added.agent_index import IndexedGroup, is_shown, with_index
from sf.envs.added.episode_options import EpisodeOptionsGroup, ranges_asked, require_options
from sf.envs.atari.family import ATARI
from sf.envs.custom.given import GIVEN, give, importable_name, require_factory
from sf.envs.custom.module import MODULE
from sf.envs.custom.named_objects import meant, split
from sf.envs.custom.registered import REGISTERED, registered
from sf.envs.doom.family import DOOM
from sf.envs.errors import UsageError, call_of
from sf.envs.family import Entry, Family
from sf.envs.group import EnvGroup, EnvSpec, RenderedGroup
from sf.envs.libraries.envpool import ENVPOOL
from sf.envs.libraries.gymnasium import GYMNASIUM
from sf.envs.libraries.packages import users_of_gymnasium
from sf.envs.libraries.pettingzoo import PETTINGZOO
from sf.envs.libraries.vmas import VMAS
from sf.envs.openspiel.family import OPENSPIEL
from sf.envs.options import EnvOptions
from sf.envs.process_guards import keep_default_dtype, keep_standard_streams, keep_working_directory
from sf.envs.rts.family import RTS
from sf.envs.spaces.symmetries import Symmetry
from sf.envs.tasks.family import TASKS
from sf.envs.tasks.file import tasks_of
from sf.envs.teams import require_teams_for_rewards, with_teams
from sf.envs.toys.family import TOY

FAMILIES: tuple[Family, ...] = (
    DOOM,
    ATARI,
    TOY,
    TASKS,
    RTS,
    GYMNASIUM,
    PETTINGZOO,
    VMAS,
    OPENSPIEL,
    ENVPOOL,
    GIVEN,
    MODULE,
    REGISTERED,
)
"""In the order in which they are asked for a name, and listed by `sf-envs`."""

_MAX_NAMED = 12  # packages in a sentence


def describe(env_id: str, options: EnvOptions) -> EnvSpec:
    """Returns what one actor of `env_id` sees and does.

    An environment is made for it and closed. The working directory, torch's default dtype and the standard streams stay
    what they were, whatever the environment does.

    Raises UsageError for a name that is not known or an environment that cannot be used, and EnvError for one that
    raises as it is made.
    """
    with keep_working_directory(), keep_default_dtype(), keep_standard_streams(), call_of(env_id, "its set-up"):
        spec = with_teams(env_id, _entry(env_id, options).describe(env_id, options), options)
        require_teams_for_rewards(env_id, spec, options)
        require_options(env_id, spec, options.option_ranges, "env_options")
        _require_advisers(env_id, spec, options)
    return with_index(spec) if is_shown(env_id, spec, options) else spec


def symmetries(env_id: str, options: EnvOptions) -> list[Symmetry]:
    """Returns those that are known of the environment, beside the one that changes nothing."""
    with keep_working_directory():
        entry = _entry(env_id, options)
        return [] if entry.symmetries is None else list(entry.symmetries(env_id, options))


def make_group(
    env_id: str, num_envs: int, options: EnvOptions, *, seed: int, first_env_idx: int, core: int | None = None
) -> EnvGroup:
    """Returns a group of `num_envs` environments, the first of which is number `first_env_idx` of the whole run.

    core: the core that the calling process is pinned to, for environments with processes or threads of their
    own. Raises as `describe` does.
    """
    with call_of(env_id, "its set-up"):
        make = _entry(env_id, options).make_group
        group = make(env_id, num_envs, options, seed=seed, first_env_idx=first_env_idx, core=core)
        return _as_asked(env_id, group, options, seed, first_env_idx)


def make_rendered_group(
    env_id: str, num_envs: int, options: EnvOptions, *, seed: int, first_env_idx: int
) -> RenderedGroup:
    """`make_group` for a group that can be looked at, and takes more time for a step.

    Raises as `describe` does, and UsageError where nobody has said how to draw the environment.
    """
    with keep_standard_streams(), call_of(env_id, "its set-up"):
        make = _entry(env_id, options).make_rendered_group
        if make is None:
            raise UsageError(f"env {env_id!r} cannot be drawn: give it, or its family, a make_rendered_group")
        group = make(env_id, num_envs, options, seed=seed, first_env_idx=first_env_idx)
        return _as_asked(env_id, group, options, seed, first_env_idx)


def _as_asked(env_id: str, group: Any, options: EnvOptions, *seed: int) -> Any:
    """Returns the group with the teams, the index of agents and the options of episodes that are asked for."""
    if options.teams is not None:
        group.spec = with_teams(env_id, group.spec, options)
    if ranges := ranges_asked(group.spec, options.option_ranges):
        require_options(env_id, group.spec, ranges, "env_options")
        group = EpisodeOptionsGroup(group, ranges, seed)
    return IndexedGroup(group) if is_shown(env_id, group.spec, options) else group


def _require_advisers(env_id: str, spec: EnvSpec, options: EnvOptions) -> None:
    """Raises UsageError for advice that nobody gives."""
    unknown = [name for name in options.advice if name not in spec.advisers]
    if unknown:
        known = ", ".join(spec.advisers) or "none"
        raise UsageError(f"advice is {unknown[0]}: the bots of {env_id} that say what they would do are: {known}")


def require_name(env_id: str) -> None:
    """Raises UsageError for what cannot be the name of an environment."""
    if not re.search(r"\w", env_id):
        raise UsageError(
            f"env {env_id!r} is not a name: name an environment, for example CartPole-v1 (sf-envs lists them)"
        )
    if _first_asked(env_id) is MODULE:
        split(env_id, f"env {env_id!r}")


def name_of(env: Any) -> str:
    """Returns the name of an environment that is given as its class, or as a function that makes it.

    It is module:Name where other processes can import that, and else one under which this process knows it: see
    `sf.envs.custom.given`. Raises UsageError for anything else.
    """
    require_factory(env)
    name = importable_name(env)
    return name if name is not None and _first_asked(name) is MODULE else give(env)


def code_of(env_id: str) -> str | None:
    """The file of the code that this name has run, beside packages that are installed for it; None: there is none.

    See `Family.code_of`. Nothing is imported.
    """
    family = _first_asked(env_id)
    return None if family is None else family.code_of(env_id)


def writes_files(env_id: str, env_kwargs: str) -> bool:
    """Returns whether these arguments, as a JSON object, let the environment write files. See `Family.writes_files`."""
    family = _first_asked(env_id)
    if family is None or not family.writes_files:
        return False
    try:
        given = json.loads(env_kwargs)
    except ValueError:
        return True  # it is refused elsewhere
    return not isinstance(given, dict) or any(given.get(name) is not None for name in family.writes_files)


def preset_of_family(env_id: str, options: EnvOptions) -> str | None:
    """See `Family.preset`."""
    family = _first_asked(env_id)
    preset = None if family is None else family.preset
    return preset(env_id, options) if callable(preset) else preset


def kwargs_against(env_id: str, name: str) -> Mapping[str, Any] | None:
    """Returns the `env_kwargs` that make this opponent part of the environment; None where its family has no opponents.

    See `Family.against`. Raises UsageError where the family has none of this name.
    """
    family = _first_asked(env_id)
    return None if family is None or family.against is None else family.against(name)


def as_evaluated(env_id: str, options: EnvOptions) -> EnvOptions:
    """`options` without what is for training alone: see `Family.training_aids`."""
    tasks = tasks_of(env_id)
    for task in () if tasks is None else tasks.tasks:
        options = as_evaluated(task.env, options)
    family, options = _first_asked(env_id), dataclasses.replace(options, advice=())
    return options if family is None else dataclasses.replace(options, **_flags_for_training(family))


def flags_for_training() -> set[str]:
    """Returns those of `EnvOptions` that evaluations are without."""
    return {"advice", *(name for family in FAMILIES for name in _flags_for_training(family))}


def _flags_for_training(family: Family) -> dict[str, Any]:
    """Returns the flags among its training aids, with their defaults."""
    own = [] if family.options is None else dataclasses.fields(family.options)
    return {field.name: field.default for field in own if field.name in family.training_aids}


def env_ids() -> list[str]:
    """Returns all names that are known, but for those of extras. It imports all other families, and entry points."""
    return sorted(known_names(family for family in FAMILIES if family.install is None))


def known_names(of: Iterable[Family] | None = None) -> dict[str, Family]:
    """Returns all names that are known, and the family of each. It imports the families, and entry points."""
    found: dict[str, Family] = {}
    # The last one first: it loads entry points, which may register with Gymnasium. A name is of the family that is
    # asked for it first.
    for family in reversed(list(FAMILIES if of is None else of)):
        if family.env_ids is not None:
            found.update(dict.fromkeys(family.env_ids(), family))
    return found


def _first_asked(env_id: str) -> Family | None:
    """Returns the first family that is asked for a name; None where one is not."""
    if env_id in registered:
        return None
    return next((family for family in FAMILIES if family.may_have(env_id)), None)


def _entry(env_id: str, options: EnvOptions) -> Entry:
    """Raises UsageError for wrappers that it would ignore, too."""
    entry = _find(env_id)
    if options.env_wrappers and not entry.takes_wrappers:
        raise UsageError(f"env_wrappers: {env_id} is not a gymnasium.Env, so it cannot be wrapped: {entry.to_wrap}")
    return entry


def _find(env_id: str) -> Entry:
    require_name(env_id)
    if env_id in registered:
        return registered[env_id]
    for family in FAMILIES:
        entry = family.find(env_id) if family.may_have(env_id) else None
        if entry is not None:
            return entry
    own = meant(env_id)
    if own is not None:
        raise UsageError(f"env {env_id!r} is not known: one of your own is named as module:Name, here {own}")
    raise UsageError(f"env {env_id!r} is not known: {_hint(env_id)}")


def _hint(env_id: str) -> str:
    if re.fullmatch(r"\w+_v\d+", env_id):
        name, _, version = env_id.rpartition("_v")
        whole = [known for known in known_names([PETTINGZOO]) if known.endswith(f"/{name}-v{version}")]
        if whole:
            return f"did you mean {' or '.join(whole)}?"
        return (
            "PettingZoo's are named with their family, as in pettingzoo:classic/connect_four_v3, and those of other "
            f"packages with their module, as in mpe2.simple_spread_v3:parallel_env; is it pettingzoo:FAMILY/{env_id}?"
        )
    for family in FAMILIES:
        prefix = re.fullmatch(r"(\w+):\.\*", family.pattern)
        meant_name = prefix and re.fullmatch(rf"{prefix[1]}(?:_|\W)(.+)", env_id)
        if prefix and meant_name:
            return f"did you mean {prefix[1]}:{meant_name[1]}?"
    nearest = difflib.get_close_matches(env_id, env_ids(), n=3, cutoff=0.75)
    if nearest:
        return f"did you mean {' or '.join(nearest)}?"
    if re.fullmatch(r"[\w./-]+-v\d+", env_id):
        users = sorted(users_of_gymnasium() - {family.package for family in FAMILIES})
        of_whom = f" ({', '.join(users)})" if 0 < len(users) <= _MAX_NAMED else ""
        return (
            f"no package that was imported registers it; if an installed one does{of_whom}, name its module, as in "
            f"{users[0] if len(users) == 1 else 'module'}:{env_id}"
        )
    return (
        "register it with envs.register_env (one of your own is named as module:Name; in a notebook, give its class: "
        "train(env=MyEnv))"
    )
