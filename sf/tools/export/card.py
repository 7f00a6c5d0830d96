"""The card of a trained policy: a README with the front matter that the Hugging Face Hub reads."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from sf.config import Config, presets
from sf.config.older import BEFORE_THE_FLAG
from sf.evaluation.results import Result, win_rate
from sf.evaluation.statistics import Statistics, interval_text
from sf.metrics.readable import clock, number
from sf.storage.run_dir import NOT_SAVED
from sf.tools.report.groups import told_apart

FRONT_MATTER = "---\nlibrary_name: sf-appo\n"  # every card begins with it

_OTHERWISE_KNOWN = {*NOT_SAVED, "env", "config"}
_UNKNOWN = "unknown"


@dataclass(frozen=True)
class Score:
    """Episodes of the policy. statistics: by name, with those of the return. command: that plays the same again.

    against_random: results against random moves; none in an environment of one agent, or where nobody wins.
    """

    statistics: Mapping[str, Statistics]
    deterministic: bool
    num_agents: int
    command: str
    against_random: Sequence[Result]


@dataclass(frozen=True)
class Subject:
    """The policy that the card describes.

    address: what a user names to play it. state: of its checkpoint. starts: the entries of system.json; none where
    the run has none. as_named: the flags as config.yaml has them, where `auto` stands for what the run has chosen; none
    where the run has no such file. weights: their precision and size in words. license: None where the user states
    none.
    """

    address: str
    state: Mapping[str, Any]
    frameskip: int
    starts: Sequence[Mapping[str, Any]]
    as_named: Mapping[str, Any]
    weights: str
    license: str | None


def card(subject: Subject, score: Score) -> str:
    """The text of the card."""
    env = subject.state["config"]["env"]
    title = subject.address.rstrip("/").rpartition("/")[2]
    sections = [
        f"# {title}",
        f"A policy for `{env}`, trained with sf-appo: asynchronous proximal policy optimisation on one machine.",
        _table(("", ""), _facts(subject, score)),
        _use(subject, env),
        _training(subject),
        _evaluation(score),
        _limits(subject, env),
    ]
    return _front_matter(subject, score, env, title) + "\n".join(f"{section}\n" for section in sections)


def changed_flags(
    flags: Mapping[str, Any], as_named: Mapping[str, Any] | None = None
) -> tuple[str | None, dict[str, tuple[Any, Any]]]:
    """The preset that a configuration started from, and by name the flags that differ from it, with its values.

    None where there is no such preset here; then the flags are those that differ from the defaults. as_named: see
    `Subject`; what a run has chosen for itself is no difference.
    """
    config = Config().replace(**{**BEFORE_THE_FLAG, **flags})
    name = config.run.config if config.run.config in presets.preset_names() else None
    before = Config().replace(**{**(presets.load(name) if name else {}), "env": config.run.env}).flat()
    after = config.flat()
    chosen = {flag for flag, value in (as_named or {}).items() if value == "auto" == before.get(flag)}
    return name, {
        flag: (before[flag], value)
        for flag, value in after.items()
        if flag not in _OTHERWISE_KNOWN | chosen and value != before[flag]
    }


def _front_matter(subject: Subject, score: Score, env: str, title: str) -> str:
    returned, won = score.statistics["return"], win_rate(score.against_random)
    metrics: dict[str, Any] = {} if won is None else {"win_rate_against_random": round(won.mean, 4)}
    metrics["mean_reward"] = f"{returned.mean:.2f} +/- {returned.std:.2f}"  # for programs
    result = {
        "task": {"type": "reinforcement-learning", "name": "reinforcement-learning"},
        "dataset": {"name": env, "type": env},
        "metrics": [{"type": name, "name": name, "value": value, "verified": False} for name, value in metrics.items()],
    }
    matter = {
        "library_name": "sf-appo",
        **({"license": subject.license} if subject.license else {}),
        "tags": ["reinforcement-learning", "deep-reinforcement-learning", "appo", "sf-appo", env],
        "model-index": [{"name": title, "results": [result]}],
    }
    text = f"---\n{yaml.safe_dump(matter, sort_keys=False)}---\n\n"
    assert text.startswith(FRONT_MATTER)
    return text


def _facts(subject: Subject, score: Score) -> list[tuple[str, str]]:
    env_steps = subject.state["env_steps"]
    frames = f" ({env_steps * subject.frameskip:,} frames)" if subject.frameskip > 1 else ""
    returned, won = score.statistics["return"], win_rate(score.against_random)
    if won is None:
        interval = "" if returned.low is None else f" (95 % interval: {interval_text(returned)})"
        scored = ("mean return", f"{number(returned.mean)}{interval}")
    else:
        counts = "{} won, {} drawn, {} lost".format(*_counts(score.against_random))
        interval = "" if won.low is None else f" (95 % interval: {interval_text(won, '.1%')})"
        scored = ("win rate against random moves", f"{won.mean:.1%}{interval}: {counts}")
    return [
        ("environment", f"`{subject.state['config']['env']}`"),
        ("env steps", f"{env_steps:,}{frames}"),
        scored,
        ("episodes", f"{returned.num}, {_manner(score)}"),
        ("weights", subject.weights),
    ]


def _use(subject: Subject, env: str) -> str:
    address = shlex.quote(subject.address)
    return (
        "## Use\n\n"
        f"```bash\nsf-enjoy {address} --video play.mp4   # without --video it opens a window\n"
        f"sf-eval {address}\n```\n\n"
        "```python\nfrom sf import load_policy\n\n"
        f"policy = load_policy({json.dumps(subject.address)})\n"
        f"action = policy.act(obs)  # an observation of {env}; call policy.reset() when an episode begins\n```"
    )


def _training(subject: Subject) -> str:
    start = subject.starts[-1] if subject.starts else {}
    preset, changed = changed_flags(subject.state["config"], subject.as_named)
    seconds = subject.state.get("seconds")
    versions = start.get("versions")
    facts = [
        ("commit", f"`{start['commit']}`" if start.get("commit") else _UNKNOWN),
        ("started", str(start.get("started_at", _UNKNOWN))),
        ("time", clock(seconds) if isinstance(seconds, int | float) else _UNKNOWN),
        ("hardware", _hardware(start)),
        ("Python", str(start.get("python", _UNKNOWN))),
        ("packages", _versions(versions) if isinstance(versions, dict) else _UNKNOWN),
    ]
    commands = [_command(each["command"]) for each in subject.starts if isinstance(each.get("command"), str)]
    typed = "```bash\n{}\n```\n\n".format("\n".join(commands)) if commands else ""
    base = f"the preset `{preset}`" if preset else "the defaults"
    rows = [(f"`{name}`", *(f"`{each}`" for each in told_apart([new, old]))) for name, (old, new) in changed.items()]
    flags = (
        f"These settings differ from {base}:\n\n{_table(('flag', 'value', 'otherwise'), rows)}"
        if rows
        else f"All settings are those of {base}."
    )
    return f"## Training\n\n{typed}{_table(('', ''), facts)}\n\n{flags}"


def _evaluation(score: Score) -> str:
    rows = [
        (f"`{name}`", number(s.mean), interval_text(s), *(number(v) for v in (s.median, s.std, s.min, s.max)))
        for name, s in score.statistics.items()
    ]
    heads = ("", "mean", "95 % interval", "median", "std", "min", "max")
    with_itself = " The policy plays all agents of a match, so what one wins another may lose." * (score.num_agents > 1)
    return (
        f"## Score\n\n{_against_random(score)}```bash\n{score.command}\n```\n\n"
        f"{score.statistics['return'].num} episodes, {_manner(score)}. The interval is of the mean.{with_itself}\n\n"
        f"{_table(heads, rows)}"
    )


def _against_random(score: Score) -> str:
    results = score.against_random
    if not results:
        return ""
    seats: dict[str, list[Result]] = {"all": list(results)}
    for result in sorted(results, key=lambda result: result.side_idx):
        seats.setdefault(str(result.side_idx), []).append(result)
    rows = []
    for seat, of_seat in seats.items():
        won = win_rate(of_seat)
        assert won is not None
        rows.append((seat, *map(str, _counts(of_seat)), f"{won.mean:.1%}", interval_text(won, ".1%")))
    num_seats = len(seats) - 1
    side = "agent" if num_seats == score.num_agents else "team"
    counted = f" Each {side} of the policy is compared with each random one." * (num_seats > 2)
    return (
        f"```bash\n{score.command} --against random\n```\n\n"
        f"{len({result.match_idx for result in results})} matches against random moves, {_manner(score)}. A draw is "
        f"half a win.{counted}\n\n{_table(('seat', 'won', 'drawn', 'lost', 'win rate', '95 % interval'), rows)}\n\n"
    )


def _counts(results: Sequence[Result]) -> tuple[int, ...]:
    """Wins, draws and losses."""
    return tuple(sum(result.points == points for result in results) for points in (1.0, 0.5, 0.0))


def _limits(subject: Subject, env: str) -> str:
    stated = (
        f"The weights have the licence `{subject.license}`."
        if subject.license
        else "No licence is stated. Whoever publishes the weights should add one, here and as `license:` above."
    )
    return (
        f"## Limits and licence\n\nThe policy was trained and scored on `{env}` with these settings alone, from one "
        f"seed. {stated}"
    )


def _manner(score: Score) -> str:
    return "the most probable actions" if score.deterministic else "actions sampled as in training"


def _command(line: str) -> str:
    """Returns what was typed, without the place where the command is installed."""
    first, *rest = shlex.split(line)
    program = ["python", "-m", "sf"] if first.endswith("sf/__main__.py") else [Path(first).name]
    return shlex.join([*program, *rest])


def _hardware(start: Mapping[str, Any]) -> str:
    parts = [start.get("cpu"), f"{start['usable_cores']} cores" if "usable_cores" in start else None]
    gpus = start.get("gpus")
    return ", ".join([*(str(part) for part in parts if part), *(gpus if isinstance(gpus, list) else [])]) or _UNKNOWN


def _versions(versions: Mapping[str, Any]) -> str:
    return ", ".join(f"{package} {version}" for package, version in versions.items())


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [
        heads,
        ["---"] * len(heads),
        *([re.sub(r"\s+", " ", cell).replace("|", r"\|") for cell in row] for row in rows),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
