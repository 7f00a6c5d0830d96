"""Lists of environments as tables: for a terminal, or in columns of plain text."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.columns import Columns
from rich.table import Table
from rich.text import Text

from sf.commands.envs.descriptions import Description, action_text, obs_text
from sf.commands.envs.installed import Installed
from sf.commands.envs.names import families
from sf.config import presets
from sf.envs import registry
from sf.metrics.display.console import OutputConsole


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
            console.print(Text.assemble((family.name, "bold"), f"  {len(own)}: {family.about}"))
            console.print(
                Columns([Text(f"  {env}") for env in own], column_first=True, padding=(0, 1)), highlight=False
            )
        elif of_all and family.install is not None:
            console.print(Text.assemble((family.name, "bold"), f"  is not installed: {family.install}"))
    console.print("\nwhat an agent sees and does: sf-envs NAME, or a part of it; to train: sf-train --env NAME")


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
    for each in packages:
        if each.env_ids and console.is_terminal:
            console.print(Text.assemble((each.package, "bold"), f"  {len(each.env_ids)}"))
            names = [Text(f"  {env}") for env in each.env_ids]
            console.print(Columns(names, column_first=True, padding=(0, 1)), highlight=False)
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
