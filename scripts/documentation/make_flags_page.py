"""Write docs/flags.md: every flag of every command, from where the command defines them, and what the presets set.

python scripts/documentation/make_flags_page.py
"""

from __future__ import annotations

import dataclasses
import importlib
import sys
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal
from unittest import mock

import docstring_parser
import tyro

from sf.config import Config, presets

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "flags.md"

CHECK = "sf-train --check"

_HEAD = """# Every flag

This page lists every flag of every command, as `COMMAND --help` does.
`python scripts/documentation/make_flags_page.py` generates it.
Write a flag as `--gamma 0.9` or `--gamma=0.9`, and one with several values as `--encoder_mlp_layers 64 64`.
A flag with the values true, false needs one, as in `--with_pbt true`; `--check`, `--autotune`, `--card`, `--private`
and `--installed` may also stand alone.
"""
_PRESETS_HEAD = """## Presets

Defaults come from the best-matching preset in `configs/`; flags override them. The best match has the name of the
environment, else of its family (the name up to the first `_` or `/`), else of its kind: `image` if an observation is
an image, or `image_continuous` if an action is a Box, too (`small_` before either where no image has 36 pixels a
side); else `symbols` if one is a grid of codes or a board, or
`board` if several agents have legal actions there, too; else
`continuous` if an action is a Box, else `vector`. `--config` selects another preset, or a YAML file of your own, which
takes the place of the preset: what it does not name has the default of the table above. Its key `extends: vector`
starts from a preset. A run prints its preset at the start, and saves the name as `config` in its `config.yaml`. The
presets set:
"""
_HEADS = ("flag", "values", "default", "meaning")
_TYPES = {int: "whole number", float: "number", str: "text", bool: "true, false", Path: "path"}


class _Found(BaseException):
    """Carries flags out of a command, past whatever it catches."""


def project() -> dict[str, Any]:
    """The table [project] of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def entry_points() -> dict[str, str]:
    """The commands of the package: `module:function` by name."""
    return project()["scripts"]


def commands() -> list[str]:
    """Those that have flags of their own."""
    return [command for name in entry_points() for command in ([name, CHECK] if name == "sf-train" else [name])]


def flags_of(command: str) -> tuple[type, str]:
    """The dataclass of a command's flags, which it hands to `sf.tools.commands.cli.parse_flags`, and its
    description."""
    module, function = entry_points()[command.partition(" ")[0]].split(":")

    def found(kind: type, prog: str, description: str, *_: object, **__: object) -> None:
        raise _Found(kind, description)

    try:
        with mock.patch("sf.tools.commands.cli.parse_flags", found), mock.patch("sys.argv", command.split()):
            getattr(importlib.import_module(module), function)()
    except _Found as carrier:
        return carrier.args
    raise ValueError(f"{command} parses no flags: let it do so with sf.tools.commands.cli.parse_flags")


def page() -> str:
    """The text of docs/flags.md."""
    parts = [_HEAD]
    for command in commands():
        flags, description = flags_of(command)
        is_drawn = "\n" in description
        parts += [
            f"## {command}\n",
            f"```text\n{description.strip()}\n```\n" if is_drawn else f"{_escaped(description)}\n",
        ]
        parts += _sections(flags)
    names_of: dict[str, list[str]] = {}  # by what they set
    for name in presets.preset_names():
        flags = ", ".join(f"`{flag} {_plain(value)}`" for flag, value in presets.load(name).items())
        names_of.setdefault(flags, []).append(f"`{name}`")
    rows = [(", ".join(names), flags) for flags, names in names_of.items()]
    return "\n".join([*parts, _PRESETS_HEAD, _table(("preset", "flags"), rows)])


def _sections(kind: type) -> Iterator[str]:
    """The flags of the dataclass itself, then a section for each component of it."""
    hints = typing.get_type_hints(kind, include_extras=True)
    help_of = {
        param.arg_name: param.description or ""
        for part in kind.__mro__[:-1]  # without object
        for param in docstring_parser.parse_from_object(part).params
    }
    fields = [field for field in dataclasses.fields(kind) if not dataclasses.is_dataclass(hints[field.name])]
    rows = [_row(field, hints[field.name], help_of[field.name]) for field in fields]
    if rows:
        yield _table(_HEADS, rows)
    for field in dataclasses.fields(kind):
        component = hints[field.name]
        if component is Config:
            yield "All flags of [sf-train](#sf-train) are accepted as well.\n"
        elif dataclasses.is_dataclass(component):
            yield f"### {field.name}\n\n{_escaped(component.__doc__)}\n"
            yield from _sections(component)


def _row(field: dataclasses.Field, hint: Any, meaning: str) -> tuple[str, ...]:
    is_positional = typing.get_args(tyro.conf.Positional[str])[1] in getattr(hint, "__metadata__", ())
    name = field.name.upper() if is_positional else f"--{field.name}"
    if field.default is dataclasses.MISSING:
        default = "must be given" if field.default_factory is dataclasses.MISSING else ""
    else:
        default = "" if field.default in (None, ()) else f"`{_plain(field.default)}`"
    return f"`{name}`", _values(hint), default, _escaped(meaning)


def _values(hint: Any) -> str:
    """What may be written after the flag."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return _values(args[0])
    if origin is Literal:
        return ", ".join(f"`{choice}`" for choice in args)
    if origin in (types.UnionType, typing.Union):
        return ", ".join(_values(arg) for arg in args if arg is not type(None))
    if origin is tuple:
        return f"{_values(args[0])} ..."
    return _TYPES.get(hint, getattr(hint, "__name__", str(hint)))


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (tuple, list)):
        return " ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _escaped(text: str | None) -> str:
    """Plain text as Markdown, on one line."""
    words = " ".join((text or "").split())
    return words.replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;")


def _table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [heads, ("---",) * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
