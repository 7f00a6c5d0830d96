"""What is trained in a campaign: small runs that save and report often, and may restart without end.

`own` is an environment of the user's own, found since the run is started in its folder; it takes its time, as most do.
`pair` is a population of two with an evaluator; `population` one of two to four that meets in matches and evolves, with
an evaluator, too. `league` is two policies that meet their past selves, and an exploiter that wins by chance. `sweep`
is sf-sweep, see `faults.sweeps`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from random import Random

_COMMON = {
    "num_workers": 2,
    "num_envs_per_worker": 2,
    "rollout": 8,
    "batch_size": 64,
    "device": "cpu",
    "learner_threads": 1,
    "summaries_every_sec": 0.5,
    "save_every_sec": 2,
    "worker_timeout_s": 10,
    "max_restarts": 1000,
    "train_for_env_steps": None,  # presets end sooner
}
_TOY = {"env": "toy_faulty", "encoder_mlp_layers": "16", "normalize_input": "false"}
_EVOLUTION = {
    "with_pbt": "true",
    "pbt_start_mutation": 20_000,
    "pbt_period_env_steps": 10_000,
    "eval_every_env_steps": 2_000,
    "eval_episodes": 4,
}

TASKS = {
    "toy": {**_TOY, "policy_workers_per_policy": 2},
    "toy_sync": {**_TOY, "async_rl": "false", "batch_size": 32, "core": "gru", "rnn_size": 16, "gradient_workers": 1},
    "own": {
        "env": "reach:Reach",
        "encoder_mlp_layers": "16",
        "num_batches_per_epoch": 2,
        "num_epochs": 2,
        "eval_every_env_steps": 2_000,
        "eval_episodes": 4,
    },
    "pair": {**_TOY, **_EVOLUTION, "num_policies": 2},
    "population": {
        **_EVOLUTION,
        "env": "toy_match_rps",
        "encoder_mlp_layers": "16",
        "normalize_input": "false",
        "num_policies": 3,
        "num_envs_per_worker": 4,
        "pbt_replace_reward_gap_absolute": 0.0,
    },
    "league": {
        "env": "toy_match_rps",
        "encoder_mlp_layers": "16",
        "normalize_input": "false",
        "num_policies": 3,
        "exploiters": 1,
        "exploiter_win_rate": 0.51,
        "past_share": 0.3,
        "snapshot_every_env_steps": 10_000,
        "players": "random",
    },
    "atari": {"env": "atari_pong"},
    "doom": {"env": "doom_basic"},
    "sweep": {},
}
_WITH_TRIGGER: dict[str, dict] = {"toy_faulty": {}, "reach:Reach": {"pace_s": 0.001}}
_OWN_FOLDER = Path(__file__).parent / "own"


def trigger_of(train_dir: Path) -> Path:
    """The file that makes an environment of the toy tasks fail, in the way that is its text."""
    return train_dir / "trigger"


def flags(task: str, train_dir: Path, **more: object) -> list[str]:
    """Of sf-train, for a run in train_dir/task."""
    values = {**_COMMON, **TASKS[task], "train_dir": train_dir, "experiment": task}
    if values["env"] in _WITH_TRIGGER:
        values["env_kwargs"] = json.dumps({"trigger": str(trigger_of(train_dir)), **_WITH_TRIGGER[values["env"]]})
    return [word for name, value in {**values, **more}.items() for word in (f"--{name}", str(value))]


def varied(task: str, rng: Random) -> dict[str, object]:
    """Flags that differ from campaign to campaign, and not within one."""
    return {"num_policies": rng.randrange(2, 5)} if task == "population" else {}


def folder(task: str) -> Path | None:
    """Where the run is started; None: it does not matter. This process can import what lies there, too."""
    if task not in ("own", "sweep"):
        return None
    if str(_OWN_FOLDER) not in sys.path:
        sys.path.append(str(_OWN_FOLDER))
    return _OWN_FOLDER
