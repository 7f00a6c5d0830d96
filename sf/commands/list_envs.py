"""`sf-envs`: the environments that `--env` takes, and what an agent sees and does in them.

To describe an environment is to make it, which takes a tenth of a second for an Atari game. So only what was asked for
is described: without a pattern, or where very many match, there are names.
"""

from __future__ import annotations

import fnmatch
import io
import os
import re
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import gymnasium as gym
import tyro
from rich import box
from rich.columns import Columns
from rich.console import Console
from rich.progress import track
from rich.table import Table
from rich.text import Text

from sf import envs
from sf.commands import cli
from sf.config import presets
from sf.envs import registry
from sf.envs.family import Family
from sf.storage import finite_json

MAX_DESCRIBED = 60


def _families() -> list[Family]:
    """Those whose names can be listed."""
    return [family for family in registry.FAMILIES if family.env_ids is not None]


if TYPE_CHECKING:
    FamilyName = str
else:
    FamilyName = Literal[tuple(family.name for family in _families())]


@dataclass(frozen=True)
class ListEnvsFlags:
    """Which environments, and how they are written down."""

    pattern: tyro.conf.Positional[str | None] = None
    """A name that --env takes, part of a name in any case, or a pattern with * and ?. Default: list all, by name
    only."""

    family: FamilyName | None = None
    """List only this family."""

    json: bool = False
    """Print a list of objects with name, spaces, agents, frameskip and preset of every match, however many. error
    says why an environment cannot be made here."""


@dataclass(frozen=True)
class Description:
    """An environment, or why it cannot be made here."""

    env: str
    preset: str | None
    spec: envs.EnvSpec | None
    error: str | None


def main() -> None:
    """Print the list; end with 0, 2 where nothing matches, 130 after Ctrl-C."""
    flags = cli.parse_flags(
        ListEnvsFlags, "sf-envs", "List the environments that sf-train knows. Example: sf-envs doom"
    )
    with cli.exit_status():
        try:
            _list(flags)
            sys.stdout.flush()
        except BrokenPipeError:  # whoever reads has seen enough: sf-envs | head
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _list(flags: ListEnvsFlags) -> None:
    matches = find(flags.pattern, flags.family)
    if flags.json:
        described = [as_json(each) for each in describe_all(matches)]
        print(finite_json.dumps(described, indent=2))
    elif len(matches) > MAX_DESCRIBED or (flags.pattern is None and flags.family is None):
        _print_names(matches, of_all=flags.pattern is None and flags.family is None)
    else:
        _print_descriptions(describe_all(matches))


def find(pattern: str | None, family: str | None = None) -> list[str]:
    """The name itself, else the names that match, among those listed; where none does, among all that are known.

    Raises ValueError where none matches, with the nearest names.
    """
    known = {env: of for env, of in registry.known_names().items() if family in (None, of.name)}
    listed = _listed(known)
    if pattern is None:
        if not listed:
            raise ValueError(f"family is {family}: none of it is installed here" + _how_to_install(family))
        return listed
    if pattern in known:
        return [pattern]
    glob = pattern if re.search(r"[*?\[]", pattern) else f"*{pattern}*"
    for candidates in (listed, sorted(known)):
        matches = [env for env in candidates if fnmatch.fnmatch(env.lower(), glob.lower())]
        if matches:
            return matches
    if family is not None:
        raise ValueError(f"pattern is {pattern!r}: nothing of the family {family} matches" + _how_to_install(family))
    envs.describe(pattern, envs.EnvOptions())  # a name that stands in no list, or the error that sf-train would give
    return [pattern]


def describe_all(matches: Sequence[str]) -> list[Description]:
    """Makes each environment once; says how far it is on a terminal."""
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    progress = track(matches, "describing", console=Console(stderr=True), transient=True, disable=len(matches) < 10)
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()):  # what environments have to say is not in the list
        warnings.simplefilter("ignore")
        return [describe(env) for env in progress]


def describe(env: str) -> Description:
    preset = presets.name_for_env(env)
    try:
        spec = envs.describe(env, envs.EnvOptions())
        return Description(env, preset or presets.name_for_spec(spec), spec, None)
    except Exception as error:  # one that fails in a way of its own must not end the list
        return Description(env, preset, None, _sentence(error))


def as_json(described: Description) -> dict[str, Any]:
    """What `--json true` prints of an environment. Shapes are those of one actor."""
    out: dict[str, Any] = {"env": described.env, "preset": described.preset, "error": described.error}
    if described.spec is not None:
        spaces = described.spec.obs_space.spaces
        out["obs"] = {key: {"shape": space.shape, "dtype": str(space.dtype)} for key, space in spaces.items()}
        out["action"] = action_text(described.spec.action_space)
        out["num_agents"] = described.spec.num_agents
        out["frameskip"] = described.spec.frameskip
    return out


def obs_text(spaces: Mapping[str, gym.Space]) -> str:
    """`72x128x3 uint8`, or with names where there are several: `image 36x36x1 uint8, vector 2 float32`."""
    texts = {key: f"{'x'.join(map(str, space.shape or (1,)))} {space.dtype}" for key, space in spaces.items()}
    if list(texts) == ["obs"]:
        return texts["obs"]
    return ", ".join(f"{key} {text}" for key, text in texts.items())


def action_text(space: gym.Space) -> str:
    """`Discrete(6)`, `MultiDiscrete(3, 2)`, `Box(2)`, `Tuple(Discrete(3), Box(1))`: numbers of choices, and shapes."""
    if isinstance(space, gym.spaces.Tuple):
        numbers: Iterable[Any] = map(action_text, space.spaces)
    elif isinstance(space, gym.spaces.Discrete):
        numbers = [space.n]
    else:
        numbers = space.nvec.tolist() if isinstance(space, gym.spaces.MultiDiscrete) else space.shape or ()
    return f"{type(space).__name__}({', '.join(map(str, numbers))})"


def _listed(known: Mapping[str, Family]) -> list[str]:
    """The names that are listed where none is asked for, by family."""
    return [
        env
        for family in _families()
        for env in sorted(family.listed([env for env, of in known.items() if of is family]))
    ]


def _how_to_install(name: str | None) -> str:
    install = next((family.install for family in _families() if family.name == name), None)
    return f"; {install}" if install else ""


def _sentence(error: Exception) -> str:
    """The part that says what to do: without the name and the arguments, which the list has or did not give."""
    cause = error.__cause__ or error
    if isinstance(cause, ModuleNotFoundError) and cause.name:
        return f"{cause}: pip install {cause.name.partition('.')[0]}"
    return " ".join(str(cause).split()) or type(cause).__name__


def _print_names(matches: Sequence[str], of_all: bool) -> None:
    """of_all: nothing was asked for, so what is not installed is said, too."""
    console = Console()
    known = registry.known_names()
    if not console.is_terminal:
        rows = [(known[env].name, env, presets.name_for_env(env) or "-") for env in matches]
        _print_table(("family", "env", "preset"), rows)
        return
    for family in _families():
        own = [env for env in matches if known[env] is family]
        if own:
            console.print(Text.assemble((family.name, "bold"), f"  {len(own)}: {family.about}"))
            console.print(Columns([f"  {env}" for env in own], column_first=True, padding=(0, 1)), highlight=False)
        elif of_all and family.install is not None:
            console.print(Text.assemble((family.name, "bold"), f"  is not installed: {family.install}"))
    console.print("\nwhat an agent sees and does: sf-envs NAME, or a part of it; to train: sf-train --env NAME")


def _print_descriptions(described: Sequence[Description]) -> None:
    rows = [
        (
            each.env,
            obs_text(each.spec.obs_space.spaces),
            action_text(each.spec.action_space),
            str(each.spec.num_agents),
            str(each.spec.frameskip),
            each.preset or "-",
        )
        for each in described
        if each.spec is not None
    ]
    if rows:
        _print_table(("env", "observation", "action", "agents", "frameskip", "preset"), rows)
    failed = [(each.env, each.error or "") for each in described if each.spec is None]
    if failed:
        _print_table(("not here", "why"), failed)


def _print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    console = Console()
    if console.is_terminal:
        table = Table(box=box.SIMPLE_HEAD)
        for name in header:
            table.add_column(name, no_wrap=name == header[0])  # an env's name is there to be copied
        for row in rows:
            table.add_row(*map(Text, row))
        console.print(table)
        return
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    for row in (header, *rows):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


if __name__ == "__main__":
    main()
