"""One sentence for a command line that tyro refuses. It is read again here, only to say what is wrong with it."""

from __future__ import annotations

import difflib
import re
import types
import typing
from collections.abc import Iterator, Sequence
from itertools import dropwhile, takewhile
from pathlib import Path
from typing import Annotated, Any

from sf.config.other_trainers import FLAGS_OF_OTHERS
from sf.envs.field_types import allowed, as_type, flag_types

_BOOLS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_OF_OUR_OWN = (int, float, str, bool, type(None))


def parse_bool(text: str) -> bool:
    """true, also written True, 1, yes; false likewise. Raises ValueError for anything else."""
    if text.lower() not in _BOOLS:
        raise ValueError(f"{text!r}, which is neither true nor false")
    return _BOOLS[text.lower()]


def sentence(kind: type, prog: str, args: Sequence[str], box: str) -> str:
    """Returns what is wrong with `args` for the flags of `kind`. box: what tyro says, for all else."""
    known = flag_types(kind)
    for name, words in _given(args):
        if name not in known:
            ours = FLAGS_OF_OTHERS.get(name, "")
            if ours.split(" ")[0] in known:
                return f"unknown flag --{name}: it is --{ours} here"
            nearest = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean --{nearest[0]}?" if nearest else f"see {prog} --help"
            return f"unknown flag --{name}: {hint}"
        said = _about(name, known[name], words)
        if said:
            return said
    return _of_box(box)


def empty_path(kind: type, args: Sequence[str]) -> str | None:
    """Returns a sentence about the first path that is empty: tyro takes it for the working directory."""
    known = flag_types(kind)
    for name, words in _given(args):
        if words[:1] == [""] and Path in _leaves(known.get(name)):
            return f"{name} is empty: name a file or folder, or . for the working directory"
    return None


def _given(args: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Each flag and the words behind it, up to the next one."""
    name, words = "", list[str]()
    for arg in args:
        if not arg.startswith("--"):
            words.append(arg)
            continue
        if name:
            yield name, words
        name, equals, value = arg[2:].partition("=")
        name, words = name.replace("-", "_"), [value] if equals else []
    if name:
        yield name, words


def _about(name: str, hint: Any, words: Sequence[str]) -> str | None:
    """What is wrong with the first words behind a flag, if anything is."""
    if typing.get_origin(hint) is Annotated or not set(_leaves(hint)) <= {*_OF_OUR_OWN}:
        return None  # of a rule of its own, or a path
    if typing.get_origin(hint) is tuple:
        given: Any = words
    elif not words:
        return f"{name} has no value: it must be {allowed(hint)}"
    else:
        given = words[0]
    if bool in _leaves(hint) and hint is not bool and str(given).lower() in _BOOLS:
        return None  # a bool or a text
    try:
        if hint is bool:
            parse_bool(given)
        else:
            as_type(name, given, hint)
    except ValueError as error:
        return f"{name} is {error}" if hint is bool else str(error)
    return None


def _leaves(hint: Any) -> Iterator[Any]:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union, tuple):
        for arg in args:
            if arg is not Ellipsis:
                yield from _leaves(arg)
    elif origin is typing.Literal:
        yield str
    else:
        yield hint


def _of_box(box: str) -> str:
    """The text in tyro's box, which begins with a title, up to its first rule."""
    rows = [line.strip("│|╰╯ ") for line in box.splitlines()[1:]]
    told = [row for row in takewhile(_is_told, dropwhile(lambda row: not _is_told(row), rows)) if row]
    if told[:1] and told[0].startswith("Missing from"):
        name, about = told[1], " ".join(told[2:]).partition("(required)")[0].strip()
        return f"{name} is missing: name {about[:1].lower()}{about[1:]}"
    text = " ".join(told)
    text = re.sub(r"^Error parsing --(\w+): (?=')", r"\1 is ", text)
    text = re.sub(r"^Error parsing --(\w+): ", r"\1: ", text)
    text = re.sub(r"^Error parsing [^:]+: ", "", text)
    return text[:1].lower() + text[1:] if text.startswith("Unrecognized") else text or box


def _is_told(row: str) -> bool:
    return not set(row) <= {"─", "-"}
