"""Presets: YAML files of flag names and values. `configs/NAME.yaml` is taken where an environment is called NAME.

Where no preset is called so, the kind of the environment has one: `image` where an observation is a picture, or
`image_continuous` where an action has real numbers, too, and `small_` before either where no picture has 36 pixels a
side; else `symbols` where one is a grid of codes or a board, or `board` where several agents have legal actions there,
too; else `continuous` where an action has real numbers, else `vector`.
"""

from __future__ import annotations

import difflib
import importlib.resources
from pathlib import Path
from typing import Any

from sf.config import Config
from sf.config.input_file import is_file
from sf.envs import ActionSpec, EnvOptions, EnvSpec
from sf.envs.field_types import checked
from sf.envs.registry import preset_of_family
from sf.envs.spaces.actions import ACTION_MASK, MASKS
from sf.envs.spaces.observations import is_image
from sf.envs.spaces.planes import Planes
from sf.envs.spaces.symbol_grids import SMALLEST_IMAGE, is_float_board, is_symbols, shorter_side
from sf.envs.yaml_text import parse_yaml

_EXTENDS = "extends"  # the key by which a preset names the one it starts from
_KINDS = (
    "image",
    "image_continuous",
    "small_image",
    "small_image_continuous",
    "symbols",
    "board",
    "continuous",
    "vector",
)
_NAMELESS = {*_KINDS, "fast"}  # no environment gets these for its name


def preset_names() -> list[str]:
    return sorted(p.name[: -len(".yaml")] for p in _directory().iterdir() if p.name.endswith(".yaml"))


def name_for_env(env: str, options: EnvOptions | None = None) -> str | None:
    """The preset named like `env`, else like its family, else the one that its family names, else None.

    The family is the name up to the first "_" or "/", and of a name with a colon what is before that.
    """
    names = set(preset_names()) - _NAMELESS
    before_colon, colon, _ = env.partition(":")
    family = before_colon if colon else env.replace("/", "_").split("_")[0]
    named_alike = next((name for name in (env.replace("/", "_"), family) if name in names), None)
    return named_alike or preset_of_family(env, options or EnvOptions())


def name_for_spec(spec: EnvSpec) -> str:
    """The preset of the kind of environment that has such spaces."""
    seen = [space for key, space in spec.obs_space.items() if key not in MASKS]
    has_real_numbers = ActionSpec.of(spec.action_space).num_continuous > 0
    images = [space for space in seen if is_image(space) and not is_symbols(space)]
    if images:
        name = "image_continuous" if has_real_numbers else "image"
        return f"small_{name}" if all(shorter_side(image) < SMALLEST_IMAGE for image in images) else name
    if any(is_symbols(space) or isinstance(space, Planes) or is_float_board(space) for space in seen):
        return "board" if spec.num_agents > 1 and ACTION_MASK in spec.obs_space.spaces else "symbols"
    return "continuous" if has_real_numbers else "vector"


def load(name_or_path: str, extended_by: tuple[str, ...] = ()) -> dict[str, Any]:
    """Reads the flags of a preset. Raises ValueError if there is none, or it is wrong. extended_by: by which."""
    if name_or_path in extended_by:
        raise ValueError(f"{name_or_path} extends itself: {' extends '.join((*extended_by, name_or_path))}")
    if name_or_path in preset_names():
        text = _directory().joinpath(f"{name_or_path}.yaml").read_text(encoding="utf-8")
    elif is_file(Path(name_or_path)):
        text = read(Path(name_or_path))
    else:
        near = difflib.get_close_matches(name_or_path, preset_names(), n=1)
        if is_file(Path(name_or_path) / "config.yaml"):  # the directory of a run
            near = [str(Path(name_or_path) / "config.yaml")]
        raise ValueError(
            (f"{extended_by[-1]}: {_EXTENDS}" if extended_by else "config")
            + f" is {name_or_path!r}: there is no such preset and no such file"
            + (f"; did you mean {near[0]!r}?" if near else f". Presets: {', '.join(preset_names())}")
        )
    return checked(Config, parse(text, name_or_path, extended_by), name_or_path)


def read(path: Path) -> str:
    """Raises ValueError where a file of flags cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read ({error})") from None


def parse(text: str, source: str, extended_by: tuple[str, ...] = ()) -> dict[str, Any]:
    """Reads flags of any names and values. Raises ValueError for YAML that is no mapping, or has a name twice."""
    flags = parse_yaml(text, source) or {}
    if not isinstance(flags, dict) or not all(isinstance(name, str) for name in flags):
        raise ValueError(f"{source} must be a YAML mapping of flag names to values")
    if _EXTENDS not in flags:
        return flags
    parent = flags.pop(_EXTENDS)
    if not isinstance(parent, str):
        raise ValueError(f"{source}: {_EXTENDS} is {parent!r}: it must be the name of a preset or the path of a file")
    return {**load(parent, (*extended_by, source)), **flags}


def _directory() -> Any:
    return importlib.resources.files("sf.configs")
