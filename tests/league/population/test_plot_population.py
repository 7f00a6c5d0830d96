"""The picture of a population: who took over from whom."""

import json

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from plot_population import draw, load

from sf.league.population.evolution import Decision, Member
from sf.league.population.record import PopulationRecord

MILLION = 1_000_000
NAN = float("nan")


def test_a_replaced_policy_jumps_to_the_one_it_copied_and_the_band_follows_the_weights_of_the_best(tmp_path):
    learned = {"learning_rate": 1e-4, "gamma": 0.99, "shaping/DEATH": -0.5, "shaping/NONE": 0.0}
    record = PopulationRecord(tmp_path, {0: learned, 1: learned})
    received = {**learned, "learning_rate": 3e-4, "gamma": 0.98, "shaping/DEATH": -0.6}
    members = [Member(0, 0.2, learned), Member(1, 2.0, learned)]
    record.add([Decision(0, 1, received)], members, {0: 2 * MILLION, 1: 2 * MILLION})
    with (tmp_path / "metrics.jsonl").open("w") as file:
        for million, objectives in enumerate([(0.0, 0.0), (0.1, 1.0), (0.2, 2.0), (5.0, 3.0), (6.0, 4.0)]):
            steps = million * MILLION
            fields = {f"policy_{idx:02d}/env_steps": steps for idx in range(2)}
            fields |= {f"policy_{idx:02d}/true_objective": objective for idx, objective in enumerate(objectives)}
            file.write(json.dumps({"env_steps": 2 * steps, "env_frames": 8 * steps, **fields}) + "\n")
    top, *panels = draw(load(tmp_path, "true_objective"), "true_objective").axes
    assert [axis.get_title() for axis in panels] == ["learning_rate", "1 / (1 - gamma)", "-shaping/DEATH"]
    band, replaced, _ = (np.array(line.get_data()) for line in top.lines)  # millions of frames, and the objective
    np.testing.assert_allclose(band, [[0, 4, 8, 12, 16], [0, 1, 2, 5, 6]])
    np.testing.assert_allclose(replaced, [[0, 4, 8, 8, 8, 8, 12, 16], [0, 0.1, 0.2, 0.2, NAN, 2, 5, 6]])
    assert len(top.texts) == 1  # the arrow
