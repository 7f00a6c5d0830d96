"""What the files and the counters of a run must say, whatever has happened to it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from sf.run.plan import Plan
from sf.storage import checkpoint, checkpoint_names
from sf.storage.run_dir import RunDir

_NEVER_FALL = (
    "env_steps", "seconds", "episodes", "restarts", "lost_episodes", "lost_frames", "env_faults"
)  # fmt: skip
_JSON_LINES = ("metrics.jsonl", "evaluations.jsonl", "population.jsonl", "league.jsonl")
_LEAGUE = "league.jsonl"
_BATCHES_OF_A_LEARNER = 3  # two in the loader, and the one that is trained on and not counted yet


class NotRecoveredError(AssertionError):
    """The run did not do what is promised."""


def parse(text: str, where: Path) -> dict[str, Any]:
    """A JSON object as RFC 8259 has it: NaN and Infinity are none."""

    def refuse(constant: str) -> None:
        raise NotRecoveredError(f"{where} has {constant}, which is not JSON: {text.strip()}")

    try:
        return json.loads(text, parse_constant=refuse)
    except json.JSONDecodeError as error:
        raise NotRecoveredError(f"{where} has a line that is not JSON ({error}): {text!r}") from None


def whole_lines(path: Path, offset: int = 0) -> list[str]:
    """Without one that is just being written; none where the file is not there."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            data = file.read()
    except OSError:
        return []
    return data[: data.rfind(b"\n") + 1].decode().splitlines()


def require_files_in_order(run_dir: RunDir) -> None:
    """Every record is strict JSON, and every file with the name of a checkpoint is whole."""
    for name in _JSON_LINES:
        for line in whole_lines(run_dir.path / name):
            parse(line, run_dir.path / name)
    if run_dir.summary.is_file():
        parse(run_dir.summary.read_text(), run_dir.summary)
    _require_league_in_order(run_dir)
    for path in sorted(run_dir.checkpoints.rglob("*.safetensors")):
        _require_whole(path)


def _require_league_in_order(run_dir: RunDir) -> None:
    """Nobody joins twice, no snapshot is broken, and an exploiter that begins anew has left one behind each time."""
    path = run_dir.path / _LEAGUE
    rows = [parse(line, path) for line in whole_lines(path)]
    joined = [row for row in rows if row["kind"] == "player"]
    names = [player["name"] for player in joined]
    if len(names) != len(set(names)):
        raise NotRecoveredError(f"a player has joined twice: {sorted(names)}")
    for player in joined:
        if "path" in player:
            _require_whole(run_dir.path / player["path"])
    anew = [row["policy"] for row in rows if row["kind"] == "anew"]
    for policy_id in set(anew):
        left_behind = sum(player.get("policy") == policy_id for player in joined)
        if anew.count(policy_id) > left_behind:
            raise NotRecoveredError(
                f"exploiter {policy_id} has begun anew {anew.count(policy_id)} times and left {left_behind} snapshots"
            )


def _require_whole(path: Path) -> None:
    try:
        with suppress(FileNotFoundError):  # a newer one has taken its place meanwhile
            checkpoint.load(path)
    except ValueError as error:
        raise NotRecoveredError(f"a checkpoint is broken: {error}") from None


def require_no_fall(records: Sequence[Mapping[str, Any]], num_policies: int) -> None:
    """records: of one session, in their order."""
    version = [] if num_policies > 1 else ["train/policy_version"]  # else the mean of all
    own = [f"policy_{policy_id:02d}/env_steps" for policy_id in range(num_policies if num_policies > 1 else 0)]
    for name in (*_NEVER_FALL, *version, *own):
        values = [record[name] for record in records if name in record]
        if values != sorted(values):
            raise NotRecoveredError(f"{name} fell: {values}")


def require_balance(plan: Plan, stepped_before: int, taken: int, stepped_after: int, num_replaced: int) -> None:
    """Samples: stepped = trained on + lost + in flight.

    taken: by learners, those included that were lost with one. A replacement may cost what each actor's slot was filled
    with, which nobody counts. The steps of a loop are counted at its end: not by the dead. What is stepped is read
    before and after what is taken: the run goes on meanwhile.
    """
    config = plan.config
    rollout = config.rollout
    times = 2 + num_replaced  # one may not be told yet
    if taken > stepped_after + times * plan.num_actors:
        raise NotRecoveredError(f"{taken} samples taken by learners, and only {stepped_after} stepped")
    batches = plan.num_policies * _BATCHES_OF_A_LEARNER * config.slots_per_iteration * rollout
    most_in_flight = plan.num_slots * rollout + batches
    most_unfilled = times * plan.num_actors * (rollout + 1)
    if stepped_before > taken + most_in_flight + most_unfilled:
        raise NotRecoveredError(
            f"{stepped_before} samples stepped, {taken} taken by learners: more than the {most_in_flight} that may be "
            f"in flight and the {most_unfilled} that {num_replaced} replacements may have cost"
        )


def require_episodes(summary: Mapping[str, Any], steps_of_an_episode: int, stepped: int, slack: int) -> None:
    """Finished episodes = reported + lost, after an end at which all was reported.

    slack: episodes that may be missing or too many, since they were running.
    """
    counted = summary["episodes"] + summary["lost_episodes"] + summary.get("league/episodes", 0)
    finished = stepped / steps_of_an_episode
    if abs(finished - counted) > slack:
        raise NotRecoveredError(
            f"{stepped} steps are {finished:.0f} episodes, and {summary['episodes']} are reported, "
            f"{summary['lost_episodes']} lost: they may differ by {slack}"
        )


def checkpoints_in(directory: Path) -> list[Path]:
    """Oldest first."""
    return sorted(directory.glob("checkpoint_*.safetensors"))


def steps_saved(directory: Path) -> int:
    """Env steps of the newest checkpoint in a directory that is whole; 0 where none is."""
    for path in reversed(checkpoints_in(directory)):
        try:
            checkpoint.load(path)
        except (ValueError, FileNotFoundError):
            continue
        return checkpoint_names.env_steps(path)
    return 0
