"""A run that finds by an intrinsic reward what it would not find by chance, and goes on with it."""

import json

from corridor_env import SETTINGS
from runs import train_here

from sf.storage.checkpoint import load_latest

FLAGS = [*SETTINGS, "--batch_size", "256", "--num_epochs", "4", "--learning_rate", "0.001"]


def test_curiosity_walks_through_a_corridor_and_is_kept_in_checkpoints(tmp_path):
    curious = [*FLAGS, "--intrinsic", "rnd", "--anneal", "intrinsic_coeff=1.0:0.5@20000"]
    summary = train_here(
        tmp_path, *curious, "--train_for_env_steps", "200000", "--stop_at_return", "0.5", env="corridor_env:Corridor"
    )
    assert summary["stopped_by"] == "stop_at_return"
    run = tmp_path / "corridor_env_Corridor"
    saved = load_latest(run / "checkpoints")[1]
    assert any(name.startswith("intrinsic/") for name in saved.tensors)
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert any(record.get("train/intrinsic/bonus", 0) > 0 for record in records)
