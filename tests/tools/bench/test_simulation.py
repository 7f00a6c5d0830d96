"""Bare simulation: its speed, or what a process said that failed."""

import json
import multiprocessing

import pytest

from sf.config import Config
from sf.run.planning import make_plan
from sf.tools.bench.layers import LAYERS
from sf.tools.bench.simulation import simulate


@pytest.mark.parametrize(
    ("fault", "said"), [("raise", "toy_faulty was asked to fail\n\nTraceback"), ("kill", "ended with exit code -9")]
)
def test_one_process_that_fails_ends_the_others_and_is_heard(fault, said, tmp_path):
    trigger = tmp_path / "trigger"
    trigger.write_text(fault)  # for the first one that finds it
    kwargs = json.dumps({"trigger": str(trigger)})
    plan = make_plan(Config().replace(env="toy_faulty", env_kwargs=kwargs, num_workers=2, device="cpu"))
    with pytest.raises(RuntimeError, match=said):
        simulate(plan, seconds=600.0)
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("layer", ["simulation", pytest.param("sampler", marks=pytest.mark.long)])
def test_random_actions_are_among_those_that_a_mask_allows(layer, tmp_path):
    """What is forbidden raises, and ends the measurement."""
    flags = {"num_workers": 1, "num_envs_per_worker": 4, "rollout": 8, "batch_size": 64, "train_dir": str(tmp_path)}
    plan = make_plan(Config().replace(env="masked_env:Masked", device="cpu", **flags))
    assert LAYERS[layer](plan, 0.2)["fps"] > 0
