"""The bench of data: weights that arrive late, and the table of runs that are there."""

import sys

import bench_data
import pytest
import torch
from data_questions.held_back import HeldBackWeights

from sf.shared.weights import SharedWeightsSpec


def test_weights_arrive_as_many_versions_late_as_asked_for(monkeypatch):
    monkeypatch.setattr(HeldBackWeights, "versions", 2)
    weights = HeldBackWeights.create(SharedWeightsSpec.allocate("cpu", 3))
    flat, out, seen = torch.zeros(3), torch.zeros(4), []
    for version in range(1, 6):
        flat.fill_(version)
        weights.publish(flat, version)
        seen.append((weights.read(out), out[0].item()))
    assert seen == [(1, 1.0), (1, 1.0), (1, 1.0), (2, 2.0), (3, 3.0)]


def test_runs_that_are_there_are_not_made_again_and_a_score_not_reached_is_a_bound(tmp_path, monkeypatch, capsys):
    def result(task, variation, seed, frames, score):
        made.append(seed)
        reached = {"env_steps": 400, "seconds": 4.0} if seed == 1 else {"env_steps": None, "seconds": None}
        return {
            **reached,
            "last": 3.0,
            "env_steps_at_the_end": 600,
            "seconds_at_the_end": 6.0,
            "lag": 1.5,
            "reuse": 4.0,
        }

    made = []
    monkeypatch.setattr(bench_data, "_run", result)
    monkeypatch.setattr(sys, "argv", ["bench_data.py", "--json", str(tmp_path / "data.jsonl"), "--questions", "reuse"])
    bench_data.main()
    assert capsys.readouterr().out.splitlines()[-1] == "| reuse (4 epochs) | 1 epoch | 400 | 4 | 3 | 1.5 | 4 |"
    sys.argv += ["--seeds", "1", "2", "--picture", str(tmp_path / "data.png")]
    bench_data.main()
    assert made == [1, 2]
    assert "| more than 500 | more than 5 |" in capsys.readouterr().out
    assert (tmp_path / "data.png").stat().st_size > 1000


@pytest.mark.parametrize("task", sorted(bench_data.TASKS))
def test_the_flags_of_all_runs_are_flags(task):
    table = bench_data.TASKS[task]
    for variations in table.questions.values():
        for variation in variations.values():
            bench_data.cli.parse(bench_data.shlex.split(f"{table.flags} {variation.flags}"))
