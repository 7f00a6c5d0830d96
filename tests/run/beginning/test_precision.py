"""What a run says of its precision."""

import pytest

import sf
from sf.run.beginning import startup_messages


@pytest.mark.parametrize(
    ("has_it", "precision", "says"), [(False, "bfloat16", True), (True, "bfloat16", False), (False, "float32", False)]
)
def test_a_precision_for_which_there_are_no_instructions_is_said(has_it, precision, says, tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(startup_messages, "resolve_bfloat16", lambda precision, device: has_it)
    small = {"num_workers": 1, "num_envs_per_worker": 2, "rollout": 8, "batch_size": 16, "device": "cpu"}
    sf.train(env="toy_identity", train_for_env_steps=64, train_dir=str(tmp_path), precision=precision, **small)
    said = "".join(capfd.readouterr())
    assert ("precision is bfloat16, for which this CPU has no instructions" in said) == says
