"""Which precision matrix products have."""

import pytest

from sf.run import planning
from sf.run.startup.starting_flags import make_config
from sf.system.processes import torch_runtime


@pytest.mark.parametrize(
    ("precision", "has_it", "has_memory", "is_bfloat16"),
    [
        ("auto", True, False, True),
        ("auto", False, True, False),
        ("recurrent", True, True, True),
        ("recurrent", True, False, False),
        ("recurrent", False, True, False),
        ("bfloat16", False, False, True),
        ("float32", True, True, False),
    ],
)
def test_precision_follows_the_hardware_and_the_core(precision, has_it, has_memory, is_bfloat16, monkeypatch):
    monkeypatch.setattr(torch_runtime, "has_bfloat16", lambda device: has_it)
    assert torch_runtime.resolve_bfloat16(precision, "cpu", has_memory) == is_bfloat16


@pytest.mark.parametrize("core", ["none", "gru", "lstm", "mingru", "transformer"])
def test_the_preset_for_vectors_has_bfloat16_with_a_recurrent_core_alone(core, monkeypatch):
    monkeypatch.setattr(torch_runtime, "has_bfloat16", lambda device: True)
    found = {
        env: planning.make_plan(make_config(env=env, core=core, device="cpu")).bfloat16
        for env in ("CartPole-v1", "Pendulum-v1")
    }
    assert found == {"CartPole-v1": core != "none", "Pendulum-v1": False}
