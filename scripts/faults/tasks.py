"""What is trained in a campaign: small runs that save and report often, and may restart without end.

`pair` is a population of two with an evaluator.
"""

from __future__ import annotations

import json
from pathlib import Path

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
}
_TOY = {"env": "toy_faulty", "encoder_mlp_layers": "16", "normalize_input": "false"}

TASKS = {
    "toy": {**_TOY, "policy_workers_per_policy": 2},
    "toy_sync": {**_TOY, "async_rl": "false", "batch_size": 32, "core": "gru", "rnn_size": 16},
    "pair": {
        **_TOY,
        "num_policies": 2,
        "with_pbt": "true",
        "pbt_start_mutation": 20_000,
        "pbt_period_env_steps": 10_000,
        "eval_every_env_steps": 5_000,
        "eval_episodes": 4,
    },
    "atari": {"env": "atari_pong"},
    "doom": {"env": "doom_basic"},
}


def trigger_of(train_dir: Path) -> Path:
    """The file that makes an environment of the toy tasks fail, in the way that is its text."""
    return train_dir / "trigger"


def flags(task: str, train_dir: Path, **more: object) -> list[str]:
    """Of sf-train, for a run in train_dir/task."""
    values = {**_COMMON, **TASKS[task], "train_dir": train_dir, "experiment": task}
    if values["env"] == "toy_faulty":
        values["env_kwargs"] = json.dumps({"trigger": str(trigger_of(train_dir))})
    return [word for name, value in {**values, **more}.items() for word in (f"--{name}", str(value))]
