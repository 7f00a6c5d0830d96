"""Environments of other packages: each is installed into a virtual environment of its own and trained for a minute.

    python scripts/try_environments.py                            # all of scripts/environments_to_try.yaml
    python scripts/try_environments.py minigrid nle --again true  # some anew
    python scripts/try_environments.py --page true                # write the table of docs/other_packages.md

Needs uv (pip install uv), which makes such an environment within seconds. Without a display, start it by `xvfb-run -a`.
What is tried, in this order:

1. installed: `pip install` of this project and the package together.
2. typed: is the id taken alone (`sf-envs ID`)? If not, the sentence is kept, and the spelling of the list is taken.
3. random: ten seconds of random actions (`sf-envs`): their mean return, and frames/s of one core.
4. trained: `sf-train --env SPELLING --train_for_seconds 60`, with nothing else named: mean return, frames/s, whether
   it ended as it should, and whether it learned at least one step.

Each result is written to --results at once, and the same command goes on after a stop: what has a result is not tried
again. Nothing else should run on the machine: a score after one minute depends on it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import tyro
import yaml
from recording import machine
from recording.markdown_table import markdown_table

from sf.metrics.readable import number
from sf.storage.run_dir import write_atomically
from sf.tools.commands import cli

REPOSITORY = Path(__file__).resolve().parent.parent
LIST = REPOSITORY / "scripts" / "environments_to_try.yaml"
PAGE = REPOSITORY / "docs" / "other_packages.md"
TABLE_BEGINS, TABLE_ENDS = "<!-- table of scripts/try_environments.py -->\n", "<!-- end of the table -->"
INSTALL_S = 900
RANDOM_PLAY_S = 10
SLACK_S = 180  # for the start and the end of a run, and of an engine that compiles something first
OPENGL = {"MUJOCO_GL": "egl"}  # no display is needed where a GPU or Mesa is


@dataclass(frozen=True)
class Flags:
    """What is tried, and for how long."""

    names: tyro.conf.Positional[tuple[str, ...]] = ()
    """Those of the list to try. Default: all."""

    again: bool = False
    """true: try them though they have a result."""

    seconds: int = 60
    """Seconds of training."""

    dir: Path = Path("train_dir/environments")
    """Virtual environments and runs go here."""

    results: Path = REPOSITORY / "benchmarks" / "environments.json"
    """What was found, by name."""

    page: bool = False
    """true: try nothing, and write the table of docs/other_packages.md from the results."""


@dataclass(frozen=True)
class Candidate:
    """An environment to try."""

    install: list[str]
    typed: str
    spelling: str | None = None
    flags: dict[str, Any] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    """Modules of the user's own, by file name: for what a package leaves to its users."""

    note: str = ""


def main() -> None:
    flags = cli.parse_flags(Flags, "try_environments.py", "Try environments of other packages.")
    candidates = {name: Candidate(**entry) for name, entry in yaml.safe_load(LIST.read_text()).items()}
    if unknown := set(flags.names) - set(candidates):
        cli.fail(f"names has {', '.join(sorted(unknown))}: {LIST.name} has {', '.join(candidates)}")
    results = json.loads(flags.results.read_text()) if flags.results.exists() else {}
    if flags.page:
        write_page(results)
        return
    if shutil.which("uv") is None:
        cli.fail("uv is not installed: pip install uv")
    for name in flags.names or candidates:
        if name not in results or flags.again:
            print(f"{name} ...", flush=True)
            results[name] = tried(name, candidates[name], flags)
            print(json.dumps(results[name], indent=1), flush=True)
            ordered = {each: results[each] for each in (*candidates, *results) if each in results}
            write_atomically(flags.results, (json.dumps(ordered, indent=1) + "\n").encode())


def tried(name: str, candidate: Candidate, flags: Flags) -> dict[str, Any]:
    place = Place(flags.dir.resolve() / name)
    out: dict[str, Any] = {"date": str(date.today()), "commit": machine.commit(), "env": candidate.typed}
    out["install"] = " ".join(candidate.install)
    if complaint := place.install(candidate):
        return {**out, "failed": f"does not install: {complaint}"}
    out["versions"] = place.versions(candidate.install)
    described = place.describe(candidate.typed, candidate.flags)
    out["by_id_alone"] = described.get("error") is None and described.get("random_play_error") is None
    if candidate.spelling is not None and not out["by_id_alone"]:
        out["sentence"] = described.get("error") or described.get("random_play_error")
        out["env"] = candidate.spelling
        described = place.describe(candidate.spelling, candidate.flags)
    out.update({key: described.get(key) for key in ("preset", "num_agents", "remarks", "random_play")})
    error = described.get("error") or described.get("random_play_error")
    if error is not None:
        return {**out, "failed": error}
    out.update(place.train(out["env"], candidate.flags, flags.seconds))
    if "failed" not in out and not out["trained"]["train/policy_version"]:
        rate = out["random_play"]["steps_per_s"]
        out["failed"] = f"no step was learned within {flags.seconds} s, at {rate:.1f} steps/s of random actions"
    return out


class Place:
    """A directory with a virtual environment and the runs made in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.commands = path / "venv" / "bin"

    def install(self, candidate: Candidate) -> str | None:
        """The last line of what uv had to say where it failed."""
        self.path.mkdir(parents=True, exist_ok=True)
        for file, text in candidate.files.items():
            (self.path / file).write_text(text)
        if (self.path / "installed").exists():
            return None
        made = self._run(["uv", "venv", "--quiet", "--clear", "--python", sys.executable, "venv"], INSTALL_S)
        packages = ["--editable", str(REPOSITORY), *candidate.install]
        if made.returncode == 0:
            command = ["uv", "pip", "install", "--quiet", "--python", "venv/bin/python", *packages]
            made = self._run(command, INSTALL_S)
        if made.returncode != 0:
            return last_line(made.stderr)
        (self.path / "installed").touch()
        return None

    def versions(self, packages: list[str]) -> dict[str, str]:
        """Of the packages named, and of gymnasium."""
        names = [re.split(r"[\[<>=]", package)[0] for package in packages]
        listed = json.loads(self._run(["uv", "pip", "list", "--python", "venv/bin/python", "--format=json"], 60).stdout)
        versions = {each["name"]: each["version"] for each in listed}
        return {name: versions[name] for name in dict.fromkeys([*names, "gymnasium"]) if name in versions}

    def describe(self, env: str, flags: dict[str, Any]) -> dict[str, Any]:
        of_env = {name: value for name, value in flags.items() if name.startswith("env_")}
        words = cli.arguments({**of_env, "seconds": RANDOM_PLAY_S, "json": True})
        ended = self._run([str(self.commands / "sf-envs"), env, *words], RANDOM_PLAY_S + SLACK_S)
        if ended.returncode != 0:
            return {"error": last_line(ended.stderr)}
        [described] = json.loads(ended.stdout)
        return described

    def train(self, env: str, flags: dict[str, Any], seconds: int) -> dict[str, Any]:
        shutil.rmtree(self.path / "run", ignore_errors=True)
        named = {"env": env, **flags, "train_for_seconds": seconds, "train_dir": ".", "experiment": "run"}
        ended = self._run([str(self.commands / "sf-train"), *cli.arguments(named)], seconds + SLACK_S)
        (self.path / "output.txt").write_text(ended.stdout + ended.stderr)
        if ended.returncode != 0:
            return {"failed": f"status {ended.returncode}: {last_line(ended.stderr)}"}
        summary = json.loads((self.path / "run" / "summary.json").read_text())
        keys = ("mean_return", "env_steps", "env_frames", "env_frames_per_second", "train/policy_version")
        return {"trained": {key: summary.get(key) for key in keys}}

    def _run(self, command: list[str], timeout_s: float) -> subprocess.CompletedProcess[str]:
        environment = {**OPENGL, **os.environ, "PYTHONPATH": str(self.path), "PYTHONWARNINGS": "ignore"}
        environment.pop("VIRTUAL_ENV", None)
        try:
            return subprocess.run(
                command,
                cwd=self.path,
                env=environment,
                timeout=timeout_s,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
            )
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(command, 124, "", f"not over after {timeout_s:.0f} s")


def last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no output"])[-1].strip()


def write_page(results: dict[str, dict[str, Any]]) -> None:
    """Put the table between the two marks of the page."""
    before, _, rest = PAGE.read_text().partition(TABLE_BEGINS)
    _, _, after = rest.partition(TABLE_ENDS)
    write_atomically(PAGE, f"{before}{TABLE_BEGINS}{table(results)}{TABLE_ENDS}{after}".encode())


def table(results: dict[str, dict[str, Any]]) -> str:
    """In Markdown: those that train, then those that do not."""
    trained = [cells(result) for result in results.values() if "failed" not in result]
    failed = [
        [f"`{result['env']}`", versions_text(result), result["failed"].replace("|", "/")]
        for result in results.values()
        if "failed" in result
    ]
    of_trained = markdown_table(("`--env`", "versions", "random", "after a minute", "frames/s"), trained)
    return f"{of_trained}\n\n{markdown_table(('`--env`', 'versions', 'why not'), failed)}\n"


def cells(result: dict[str, Any]) -> list[str]:
    trained = result["trained"]
    scores = [result["random_play"]["mean_return"], trained["mean_return"]]
    rates = [result["random_play"]["frames_per_s"], trained["env_frames_per_second"]]
    texts = ["-" if value is None else number(value) for value in scores]
    return [f"`{result['env']}`", versions_text(result), *texts, " / ".join(f"{rate or 0:,.0f}" for rate in rates)]


def versions_text(result: dict[str, Any]) -> str:
    versions = result.get("versions", {})
    others = {name: version for name, version in versions.items() if name != "gymnasium"} or versions
    return ", ".join(f"{name} {version}" for name, version in others.items()) or "-"


if __name__ == "__main__":
    main()
