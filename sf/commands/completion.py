"""`python -m sf.commands.completion`: files that let the shell complete the flags of every command, and what they take.

The scripts are tyro's own (`--tyro-print-completion`), and four things are mended in them. In the table of flags that
each holds, tyro takes every line of a flag's help for a candidate, knows no values of a flag that is true or false, and
no names of environments; and it takes the number of the word at the cursor, which zsh counts from 1, for one that
begins with 0.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Literal

from sf.commands import cli
from sf.commands.envs.names import find

_TABLE = re.compile(r"^COMPLETION_SPEC = (.*)$", re.MULTILINE)
_ZSH_WORDS = '"${words[@]}" "$CURRENT"'
_FILE_NAMES = {"bash": "{}", "zsh": "_{}"}  # as each shell looks for them


@dataclass(frozen=True)
class CompletionFlags:
    """Which shell, and where its files go."""

    shell: Literal["bash", "zsh"] = "bash"
    """Shell to write the files for."""

    directory: str | None = None
    """Where to write them. Default: ~/.local/share/bash-completion/completions, where bash-completion looks, or
    ~/.zfunc."""


def main() -> None:
    """Write the files and say where they are; end with 2 where that is not possible."""
    flags = cli.parse_flags(
        CompletionFlags, "python -m sf.commands.completion", "Completion of all commands for a shell."
    )
    directory = Path(flags.directory) if flags.directory else default_directory(flags.shell)
    env_names = find(None)
    with cli.exit_status():
        try:
            directory.mkdir(parents=True, exist_ok=True)
            for command in commands():
                path = directory / _FILE_NAMES[flags.shell].format(command.name)
                path.write_text(mend(tyro_script(command, flags.shell), env_names))
                print(path)
        except OSError as error:
            raise ValueError(f"directory is {str(directory)!r}: {error}: name another --directory") from None


def commands() -> list[EntryPoint]:
    """The commands of this package that are installed. Their flags are read by `cli.parse_flags`."""
    scripts = entry_points(group="console_scripts")
    return sorted((each for each in scripts if each.value.startswith("sf.")), key=lambda each: each.name)


def default_directory(shell: str) -> Path:
    if shell == "zsh":
        return Path.home() / ".zfunc"
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data) / "bash-completion" / "completions"


def mend(script: str, env_names: list[str]) -> str:
    """A script of tyro for bash or zsh, mended. One without a table of flags stays as it is."""
    script = _TABLE.sub(lambda match: f"COMPLETION_SPEC = {_mended(ast.literal_eval(match[1]), env_names)!r}", script)
    return script.replace(_ZSH_WORDS, '"${words[@]}" "$((CURRENT - 1))"')


def _mended(table: dict[str, Any], env_names: list[str]) -> dict[str, Any]:
    options = []
    for option in table["options"]:
        mended = {**option, "description": " ".join(option["description"].split())}
        if mended["description"].startswith("[{true,false}]"):  # a flag may follow it
            mended |= {"type": "flag"}
        elif mended["description"].startswith("{true,false}"):
            mended |= {"type": "choice", "choices": ["true", "false"]}
        elif "--env" in mended["flags"]:
            mended |= {"type": "choice", "choices": env_names}
        options.append(mended)
    return {**table, "options": options}


def tyro_script(command: EntryPoint, shell: str) -> str:
    """What tyro makes of the command. In a process of its own: it imports all that the command needs."""
    code = f"from {command.module} import {command.attr} as main; main()"
    run = [sys.executable, "-c", code, "--tyro-print-completion", shell]
    return subprocess.run(run, check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    main()
