"""Entry point of `sf-envs`.

Only what was asked for is described: without a pattern, or where very many match, there are names.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Literal

import tyro
from rich import box
from rich.columns import Columns
from rich.table import Table
from rich.text import Text

from sf.config import presets
from sf.envs import EnvOptions, registry
from sf.envs.field_types import require
from sf.metrics.display.console import OutputConsole
from sf.storage import text_files
from sf.tools.commands import cli
from sf.tools.commands.ends import end
from sf.tools.commands.envs.descriptions import Description, action_text, as_json, describe_all, obs_text, silence
from sf.tools.commands.envs.names import Installed, families, find, find_installed
from sf.tools.commands.envs.page import Page, make_page, print_page

MAX_DESCRIBED = 60
_SWITCHES = ("--installed", "--json")

if TYPE_CHECKING:
    FamilyName = str
else:
    FamilyName = Literal[tuple(family.name for family in families())]


@dataclass(frozen=True)
class ListEnvsFlags:
    """Which environments, and how they are written down."""

    pattern: tyro.conf.Positional[str | None] = None
    """A name that --env takes, part of a name in any case, or a pattern with * and ?. If exactly one matches, all about
    it is printed. Default: list all, by name only."""

    family: FamilyName | None = None
    """List only this family."""

    installed: bool = False
    """List what the installed packages register, by package, with the names that --env takes. It imports the packages,
    and says why one cannot be imported."""

    seconds: float = 5.0
    """Step the environment with random actions for this many seconds, if exactly one matches. 0: do not step."""

    env_frameskip: int | None = None
    """As in sf-train."""

    env_kwargs: str = "{}"
    """As in sf-train."""

    env_wrappers: tuple[str, ...] = ()
    """As in sf-train."""

    json: bool = False
    """Print a list of objects with name, spaces, agents, frameskip and preset of every match, however many. error
    says why an environment cannot be made here. If exactly one matches, its object also has what random actions came
    to."""

    def __post_init__(self) -> None:
        require(0 <= self.seconds <= 3600, f"seconds is {self.seconds}: it must be from 0 to 3600")
        require(not (self.installed and self.family), "family goes with the names of sf-train: leave out --installed")

    @property
    def options(self) -> EnvOptions:
        return EnvOptions(env_frameskip=self.env_frameskip, env_kwargs=self.env_kwargs, env_wrappers=self.env_wrappers)


def main() -> None:
    """Print the list; end with 0, 2 where nothing matches, 130 after Ctrl-C, and as sf-train would where the only
    environment that matches cannot be made, or fails at random actions."""
    flags = cli.parse_flags(
        ListEnvsFlags,
        "sf-envs",
        "List the environments that sf-train knows, or say all about one. Example: sf-envs doom",
        list(_with_values(sys.argv[1:])),
    )
    with cli.exit_status():
        _list(flags)


def _with_values(args: Sequence[str]) -> Iterator[str]:
    """A switch without a value is true, also where the name of an environment follows it."""
    for word, after in zip_longest(args, args[1:]):
        yield word
        if word in _SWITCHES and after not in ("true", "false"):
            yield "true"


def _list(flags: ListEnvsFlags) -> None:
    options = flags.options
    if flags.installed:
        packages = find_installed(flags.pattern)
        if flags.json:
            print(text_files.dumps([vars(each) for each in packages], indent=2))
        else:
            print_installed(packages)
        return
    with silence():
        matches = find(flags.pattern, flags.family, options)
    if len(matches) == 1:
        _print_page(make_page(matches[0], options, flags.seconds), flags.json)
    elif flags.json:
        print(text_files.dumps([as_json(each) for each in describe_all(matches, options)], indent=2))
    elif len(matches) > MAX_DESCRIBED or (flags.pattern is None and flags.family is None):
        print_names(matches, of_all=flags.pattern is None and flags.family is None)
    else:
        print_descriptions(describe_all(matches, options))


def _print_page(page: Page, as_json: bool) -> None:
    described = page.described
    if as_json:
        print(text_files.dumps([page.as_json()], indent=2))
    elif described.error is None:
        print_page(page)
    else:
        end(f"{described.env}: {described.error}", described.status)
    if page.status:
        raise SystemExit(page.status)


def print_names(matches: Sequence[str], of_all: bool) -> None:
    """of_all: nothing was asked for, so what is not installed is said, too."""
    console = OutputConsole()
    known = registry.known_names()
    if not console.is_terminal:
        rows = [(known[env].name, env, presets.name_for_env(env) or "-") for env in matches]
        _print_table(("family", "env", "preset"), rows)
        return
    for family in families():
        own = [env for env in matches if known[env] is family]
        if own:
            _print_group(console, family.name, f"{len(own)}: {family.about}", own)
        elif of_all and family.install is not None:
            console.print(Text.assemble((family.name, "bold"), f"  is not installed: {family.install}"))
    console.print("\nwhat an agent sees and does: sf-envs NAME, or a part of it; to train: sf-train --env NAME")


def _print_group(console: OutputConsole, name: str, about: str, envs: Sequence[str]) -> None:
    console.print(Text.assemble((name, "bold"), f"  {about}"))
    console.print(Columns([Text(f"  {env}") for env in envs], column_first=True, padding=(0, 1)), highlight=False)


def print_descriptions(described: Sequence[Description]) -> None:
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


def print_installed(packages: Sequence[Installed]) -> None:
    console = OutputConsole()
    if not console.is_terminal:
        rows = [(each.package, env) for each in packages for env in each.env_ids]
        _print_table(("package", "env"), rows)
    for each in packages if console.is_terminal else ():
        if each.env_ids:
            _print_group(console, each.package, str(len(each.env_ids)), each.env_ids)
    failed = [(each.package, each.error) for each in packages if each.error is not None]
    if failed:
        _print_table(("not here", "why"), failed)


def _print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    console = OutputConsole()
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
