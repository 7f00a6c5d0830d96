"""The layers that are runs: how long each is measured."""

from sf.config import Config
from sf.run.planning import make_plan
from sf.tools.bench import layers


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
