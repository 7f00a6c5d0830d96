"""The layers: how long each is measured, the speed of the bare simulation, and what a process said that failed."""

import json
import multiprocessing

import pytest

from sf.config import Config
from sf.run.planning import make_plan
from sf.tools.bench import layers, simulation
from sf.tools.bench.layers import LAYERS
from sf.tools.bench.simulation import simulate


@pytest.fixture
def quick(request, monkeypatch):
    """Processes of the bare simulation are forked. The long tests start them as they are."""
    if request.node.get_closest_marker("long") is None:
        of_kind = multiprocessing.get_context
        monkeypatch.setattr(simulation.multiprocessing, "get_context", lambda _: of_kind("fork"))
        monkeypatch.setattr(simulation, "_WARMUP_S", 0.1)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("fault", "said"),
    [
        pytest.param("raise", "toy_faulty was asked to fail\n\nTraceback", marks=pytest.mark.long),
        ("kill", "terminated abruptly"),
    ],
)
def test_one_process_that_fails_ends_the_others_and_is_heard(fault, said, tmp_path):
    trigger = tmp_path / "trigger"
    trigger.write_text(fault)  # for the first one that finds it
    kwargs = json.dumps({"trigger": str(trigger)})
    plan = make_plan(Config().replace(env="toy_faulty", env_kwargs=kwargs, num_workers=2, device="cpu"))
    with pytest.raises(RuntimeError, match=said):
        simulate(plan, seconds=600.0)
    assert multiprocessing.active_children() == []


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("layer", ["simulation", pytest.param("sampler", marks=pytest.mark.long)])
def test_random_actions_are_among_those_that_a_mask_allows(layer, tmp_path):
    """What is forbidden raises, and ends the measurement."""
    flags = {"num_workers": 1, "num_envs_per_worker": 4, "rollout": 8, "batch_size": 64, "train_dir": str(tmp_path)}
    plan = make_plan(Config().replace(env="masked_env:Masked", device="cpu", **flags))
    assert LAYERS[layer](plan, 0.2)["fps"] > 0


def test_a_layer_is_measured_for_its_time_though_the_preset_of_a_run_ends_sooner(tmp_path, monkeypatch):
    made = []

    class FakeRun:
        def __init__(self, plan, run_dir, bodies):
            made.append(plan)

        def run(self):
            return {"stopped_by": "", "steady_env_frames_per_second": 1.0}

    monkeypatch.setattr(layers, "Run", FakeRun)
    ends = {"train_for_env_steps": 1_000, "train_for_env_frames": 100, "stop_at_return": 1.0}
    config = Config().replace(env="toy_bandit", device="cpu", train_dir=str(tmp_path), **ends)
    layers.LAYERS["training"](make_plan(config), 5.0)
    run = made[0].config.run
    assert not run.ends_by_steps
    assert (run.stop_at_return, run.train_for_seconds) == (None, 605.0)
